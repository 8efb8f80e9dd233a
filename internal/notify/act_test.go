package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/queue"
	"backstop/internal/base/seal/sealtest"
	"backstop/internal/breaker"
	"backstop/internal/exception"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/recipient"
	"backstop/internal/report"
)

// resendFixture is a merchant with orders whose notifications can be sent again.
type resendFixture struct {
	*testing.T
	db       *db.DB
	acts     *act.Registry
	kinds    []act.Kind
	breakers *breaker.Cache
	nudged   []int64
}

func newResendDesk(t *testing.T, d *db.DB) *resendFixture {
	t.Helper()
	policy, err := access.NewPolicy()
	if err != nil {
		t.Fatal(err)
	}
	k := &resendFixture{T: t, db: d, breakers: breaker.NewCache(d, func(recipient.Recipient) breaker.Policy {
		return breaker.Policy{Failures: 3, Open: time.Hour, Window: time.Minute}
	})}
	book := merchant.NewDirectory([]*merchant.Merchant{{
		ID: 1, Code: "m1",
		Endpoints: []merchant.Endpoint{{Name: "main", URL: "https://a.test"}},
	}}, nil)
	k.kinds = notify.Acts{
		DB: d, Directory: func() *merchant.Directory { return book }, Breakers: k.breakers, Pings: notify.Pinger{DB: d},
		Nudge: func(all []queue.Nudge) {
			for _, n := range all {
				k.nudged = append(k.nudged, n.Delivery)
			}
		},
	}.Kinds()
	k.acts = act.New(d, audit.New(d, sealtest.Ring(t, 1)), policy, k.kinds...)
	return k
}

func (k *resendFixture) insert(rows ...any) {
	k.Helper()
	for _, r := range rows {
		if _, err := k.db.NewInsert().Model(r).Exec(k.Context()); err != nil {
			k.Fatal(err)
		}
	}
}

func (k *resendFixture) exec(query string, args ...any) {
	k.Helper()
	if _, err := k.db.NewRaw(query, args...).Exec(k.Context()); err != nil {
		k.Fatal(err)
	}
}

func (k *resendFixture) texts(query string) (all []string) {
	k.Helper()
	if err := k.db.Read.NewRaw(query).Scan(k.Context(), &all); err != nil {
		k.Fatal(err)
	}
	return all
}

// exhausted writes an order with a notification that has several deliveries, all of
// them exhausted, and its exception. It returns the order's number, the notification's
// id and the deliveries.
func (k *resendFixture) exhausted(n int) (no, id string, deliveries []int64) {
	k.Helper()
	now, o, event := k.db.Now(), k.db.NewID(), k.db.NewID()
	no, id = fmt.Sprint(o), "ntf_"+strconv.FormatInt(o, 36)+"-order-paid-0"
	k.insert(
		&order.Order{
			ID: o, OrderNo: no, OutTradeNo: no, MerchantID: 1, SupplierID: 1, Amount: 1999, Currency: "CNY", Status: order.Paid,
			Version: 2, CreatedAt: now,
		},
		&notify.Event{
			ID: event, MerchantID: 1, SubjectID: o, Type: "order.paid", Version: 2, Body: fmt.Sprintf(`{"id":%q}`, id),
			CreatedAt: now,
		},
		&exception.Item{
			ID: k.db.NewID(), Kind: exception.NotifyExhausted, State: "open", Subject: id, OrderNo: no,
			Detail: exception.Detail(nil), Seen: 1,
		},
	)
	for range n {
		x := notify.Delivery{
			ID: k.db.NewID(), EventID: event, RecipientID: 1, SubjectID: o, EventType: "order.paid",
			Channel: notify.Webhook, Status: notify.Exhausted, Attempts: 4, CreatedAt: now, FinishedAt: &now, Currency: "CNY", Amount: 1999,
			Shared: n > 1,
		}
		k.insert(&x)
		deliveries = append(deliveries, x.ID)
	}
	return no, id, deliveries
}

func (k *resendFixture) run(role string, ref act.Ref, how string) (act.Outcome, error) {
	return k.acts.Run(k.Context(), act.Call{
		Kind: notify.ResendAct, By: act.Actor{Name: "operator:li", Roles: access.RolesOf(role)}, Ref: ref,
		Params: json.RawMessage(fmt.Sprintf(`{"how":%q}`, how)), Reason: "asked for by phone",
	})
}

func TestTheDeliveryThatNeedsItMostIsSentAgain(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newResendDesk(t, d)
		no, id, deliveries := k.exhausted(3)
		other, _, _ := k.exhausted(1)
		k.exec("UPDATE deliveries SET status = 'delivered' WHERE id = ?", deliveries[0])
		var field *act.FieldError
		var denied *act.Denied
		for name, c := range map[string]struct {
			role string
			ref  act.Ref
			how  string
			want func(error) bool
		}{
			"of another order": {
				access.Support,
				act.Ref{ID: other, Part: id},
				"",
				func(err error) bool { return errors.Is(err, act.ErrNotFound) },
			},
			"of no delivery": {
				access.Support,
				act.Ref{ID: no, Part: id, Row: 1},
				"",
				func(err error) bool { return errors.Is(err, act.ErrNotFound) },
			},
			"of no notification": {
				access.Support,
				act.Ref{ID: no, Part: "ntf_1"},
				"",
				func(err error) bool { return errors.As(err, &field) && field.Field == "notification" },
			},
			"in no way that it is": {
				access.Support,
				act.Ref{ID: no, Part: id},
				"mail",
				func(err error) bool { return errors.As(err, &field) && field.Field == "how" },
			},
			"by closing": {
				access.Support,
				act.Ref{ID: no, Part: id},
				"close",
				func(err error) bool { return errors.As(err, &denied) && denied.Permission == access.ControlBreakers },
			},
			"by a viewer": {access.Viewer, act.Ref{ID: no, Part: id}, "", func(err error) bool {
				return errors.As(err, &denied) &&
					denied.Permission == access.Resend
			}},
		} {
			if _, err := k.run(c.role, c.ref, c.how); err == nil || !c.want(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if len(k.nudged) != 0 {
			t.Fatalf("what was refused nudged %v", k.nudged)
		}
		out, err := k.run(access.Support, act.Ref{ID: no, Part: id}, "")
		if err != nil || len(k.nudged) != 1 || k.nudged[0] != deliveries[1] {
			t.Errorf("sent again %v: %+v, %v", k.nudged, out, err)
		}
		if _, err := k.run(access.Support, act.Ref{ID: no, Part: id, Row: deliveries[0]}, "probe"); err != nil ||
			k.nudged[1] != deliveries[0] {
			t.Errorf("the one that is named: %v, %v", k.nudged, err)
		}
		k.exec("UPDATE deliveries SET status = 'sending' WHERE id = ?", deliveries[2])
		if _, err := k.run(access.Support, act.Ref{ID: no, Part: id, Row: deliveries[2]}, ""); !errors.Is(err, notify.ErrSending) {
			t.Errorf("while sending: %v", err)
		}
		want := fmt.Sprintf(`{"delivery":"%d","notification":%q,"reason":"asked for by phone"}`, deliveries[1], id)
		if kept := k.texts("SELECT params FROM audit ORDER BY number"); len(kept) != 2 || kept[0] != want {
			t.Errorf("stored %v, want %s", kept, want)
		}
	})
}

func TestWhatABreakerHoldsBackIsSentAsChosen(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newResendDesk(t, d)
		no, id, _ := k.exhausted(1)
		ref := act.Ref{ID: no, Part: id}
		k.insert(&breaker.Row{OwnerID: 1, OwnerKind: recipient.Merchant, State: breaker.Open, ByHand: true, Generation: 2})
		var denied *act.Denied
		if _, err := k.run(access.Support, ref, "probe"); !errors.As(err, &denied) || denied.Permission != access.ControlBreakers {
			t.Errorf("a probe past another's hand: %v", err)
		}
		k.exec("UPDATE breakers SET by_hand = FALSE")
		for _, c := range []struct{ role, how string }{
			{access.Support, ""},
			{access.Support, "probe"},
			{access.Ops, "close"},
			{access.Ops, "close"},
		} {
			if _, err := k.run(c.role, ref, c.how); err != nil {
				t.Fatalf("%s: %v", c.how, err)
			}
			if c.how == "probe" {
				if _, err := k.run(access.Support, ref, "probe"); !errors.Is(err, breaker.ErrProbing) {
					t.Errorf("while another probe runs: %v", err)
				}
				if r := k.breakers.Of(recipient.OfMerchant(1)); r == nil || r.State != breaker.HalfOpen || r.ProbeDelivery == 0 {
					t.Errorf("this node has not seen the probe: %+v", r)
				}
			}
		}
		if r := k.breakers.Of(recipient.OfMerchant(1)); r.Tripped() {
			t.Errorf("it is still open here: %+v", r)
		}
		got := strings.Join(k.texts(`SELECT action || ' ' || object_id || ' ' || params FROM audit ORDER BY number`), "\n")
		for _, text := range []string{
			`"how":"queue"`, `"how":"probe"`, "breaker.close m1 " + `{"reason":"asked for by phone"}`,
			`"how":"close"`,
		} {
			if strings.Count(got, text) != 1 {
				t.Errorf("the audit does not say %s once:\n%s", text, got)
			}
		}
	})
}

// Deliveries of one event share their money and their exception: sent again together,
// the money is at risk once, and the exception is over.
func TestASetIsSentAgainAsItsPartsWouldBe(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newResendDesk(t, d)
		_, _, both := k.exhausted(2)
		_, _, half := k.exhausted(2)
		_, _, gone := k.exhausted(1)
		subjects := func(ids ...int64) (all []act.Subject) {
			refs := make([]act.Ref, len(ids))
			for i, id := range ids {
				refs[i].Row = id
			}
			all, err := k.kinds[0].Load(t.Context(), d.Read, refs)
			if err != nil || len(all) != len(ids) {
				t.Fatalf("%d found, %v", len(all), err)
			}
			return all
		}
		set := subjects(both[0], both[1], half[0], gone[0])
		for _, s := range set {
			if s.Amount != 1999 || s.Currency != "CNY" || s.MerchantID != 1 || s.Effect != act.Will {
				t.Errorf("loaded %+v", s)
			}
		}
		k.exec("UPDATE deliveries SET status = 'delivered' WHERE id = ?", gone[0]) // since it was looked at
		var outs []act.Outcome
		params, _ := k.kinds[0].Params.Read(nil)
		if err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) (err error) {
			outs, err = k.kinds[0].Do(ctx, tx, act.Input{Params: params}, set)
			if len(k.nudged) != 0 {
				t.Error("nudged before the commit")
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if outs[0].Effect != act.Will || outs[3].Effect != act.Final || !errors.Is(outs[3].Err, act.ErrChanged) || len(k.nudged) != 3 {
			t.Errorf("outcomes %+v, nudged %v", outs, k.nudged)
		}
		if open := k.texts("SELECT order_no FROM exceptions WHERE state = 'open'"); len(open) != 2 {
			t.Errorf("open are %v: want those of the event of which one is still exhausted, and of what was left alone", open)
		}
		if _, err := report.Fold(t.Context(), d, time.UTC); err != nil {
			t.Fatal(err)
		}
		if risk := k.texts("SELECT orders || ' ' || amount FROM report_unnotified"); len(risk) != 1 || risk[0] != "2 3998" {
			t.Errorf("at risk are %v: want each order once", risk)
		}
		results, err := k.kinds[0].Set.ResultsOf(t.Context(), d.Read, []int64{both[0], half[1]})
		if want := map[int64]string{both[0]: notify.ResultWaiting, half[1]: notify.ResultRefused}; err != nil || !maps.Equal(results, want) {
			t.Errorf("results are %v, %v: want %v", results, err, want)
		}
	})
}

func TestAnEndpointIsPingedAndEnabledByItsName(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := newResendDesk(t, d)
		run := func(name string, ref act.Ref) (act.Outcome, error) {
			return k.acts.Run(t.Context(), act.Call{
				Kind: name, By: act.Actor{Name: "operator:li", Roles: access.Ops}, Ref: ref,
				Reason: "asked for by phone",
			})
		}
		k.exec("INSERT INTO endpoint_health (recipient_id, endpoint, failures, last_error, disabled_at, reason) VALUES (1, 'main', 0, '', 5, 'answered 410')")
		var field *act.FieldError
		for _, name := range []string{notify.PingAct("merchant"), notify.EnableAct} {
			if _, err := run(name, act.Ref{ID: "m1", Part: "none"}); !errors.As(err, &field) || field.Field != "endpoint" {
				t.Errorf("%s of no endpoint: %v", name, err)
			}
			if _, err := run(name, act.Ref{ID: "m9", Part: "main"}); !errors.Is(err, act.ErrNotFound) {
				t.Errorf("%s of no merchant: %v", name, err)
			}
		}
		if _, err := run(notify.EnableAct, act.Ref{ID: "m1"}); !errors.As(err, &field) {
			t.Errorf("whichever endpoint is enabled: %v", err)
		}
		if out, err := run(notify.PingAct("merchant"), act.Ref{ID: "m1"}); err != nil || out.After == nil {
			t.Errorf("a ping of the first one: %+v, %v", out, err)
		}
		if _, err := run(notify.EnableAct, act.Ref{ID: "m1", Part: "main"}); err != nil {
			t.Error(err)
		}
		if left := k.texts("SELECT endpoint FROM endpoint_health WHERE disabled_at IS NOT NULL"); len(left) != 0 {
			t.Errorf("disabled are %v", left)
		}
		if kept := strings.Join(k.texts("SELECT action || params FROM audit ORDER BY number"), " "); !strings.Contains(kept,
			`merchant.ping{"endpoint":"main","notification":"ntf_`) ||
			!strings.HasSuffix(kept, `{"endpoint":"main","reason":"asked for by phone"}`) {
			t.Errorf("stored %s", kept)
		}
	})
}
