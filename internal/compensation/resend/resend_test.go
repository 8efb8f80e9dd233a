package resend_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/alert"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/queue"
	"backstop/internal/base/seal/sealtest"
	"backstop/internal/base/waittest"
	"backstop/internal/breaker"
	"backstop/internal/compensation"
	"backstop/internal/compensation/resend"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/recipient"
)

var quick = compensation.Schedule{time.Millisecond, time.Millisecond, time.Millisecond}

type desk struct {
	*paymenttest.Fixture
	t      *testing.T
	runner *compensation.Runner
	kind   compensation.Kind
	cache  *breaker.Cache
	nudged []queue.Nudge
}

func open(t *testing.T, d *db.DB) *desk {
	k := &desk{Fixture: paymenttest.New(t, d, paymenttest.Options{URL: "http://m1.test/n", ByHand: true}), t: t}
	k.kind = resend.Kind(resend.Options{DB: d, Schedule: quick, Nudge: func(n []queue.Nudge) { k.nudged = append(k.nudged, n...) }})
	k.runner = compensation.NewRunner(compensation.Options{
		DB: d, Kinds: []compensation.Kind{k.kind}, Schedule: quick, Concurrency: 1, PerLane: 1, Time: 10 * time.Second,
		Log: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(func() { k.runner.Close(context.Background()) })
	k.cache = breaker.NewCache(d, func(recipient.Recipient) breaker.Policy {
		return breaker.Policy{Failures: 1, Open: time.Hour, Window: time.Minute}
	})
	k.cache.Closes = func(w *db.Writes, c *breaker.Change) { quick.Open(w, d, resend.Closed(c.OwnerID, c.Generation)) }
	return k
}

func (k *desk) exec(query string, args ...any) {
	k.t.Helper()
	if _, err := k.DB.NewRaw(query, args...).Exec(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
}

// exhausted creates a paid order whose notification ran out of attempts the given time ago, and
// returns the delivery.
func (k *desk) exhausted(ago time.Duration) int64 {
	k.t.Helper()
	o, _, err := k.Processor.Create(k.t.Context(), k.M1, payment.CreateRequest{
		OutTradeNo: k.Out(), Amount: 10, Currency: "CNY",
		Supplier: "sp-main",
	})
	if err == nil {
		_, err = k.Processor.Submit(k.t.Context(), k.Callback(o.OrderNo, "T"+o.OrderNo, 10))
	}
	if err != nil {
		k.t.Fatal(err)
	}
	id := k.Count(k.t, "SELECT id FROM deliveries WHERE subject_id = ?", o.ID)
	at := k.DB.Now() - ago.Microseconds()
	k.exec("UPDATE deliveries SET status = 'exhausted', next_at = NULL, attempts = 9, finished_at = ? WHERE id = ?", at, id)
	k.exec("INSERT INTO exceptions (id, kind, state, supplier_id, merchant_id, order_id, order_no, subject, amount, currency, detail, seen, opened_at, updated_at)"+
		" VALUES (?, 'notify_exhausted', 'open', 0, ?, ?, ?, ?, 10, 'CNY', '{}', 1, ?, ?)", k.DB.NewID(), k.M1.ID, o.ID, o.OrderNo,
		fmt.Sprint("ntf", id), at, at)
	return id
}

// run runs what is due until nothing is open.
func (k *desk) run() {
	k.t.Helper()
	waittest.Until(k.t, "none is open", func() bool {
		lanes, _, err := compensation.DueLanes(k.t.Context(), k.DB, 0, 100)
		if err != nil {
			k.t.Fatal(err)
		}
		k.runner.Pull(lanes)
		return k.Count(k.t, "SELECT count(*) FROM compensations WHERE next_at IS NOT NULL") == 0
	})
}

// swing opens and closes the merchant's breaker.
func (k *desk) swing() {
	k.t.Helper()
	for _, act := range []breaker.Act{breaker.OpenIt, breaker.CloseIt} {
		err := k.DB.Tx(k.t.Context(), func(ctx context.Context, tx db.Tx) error {
			return k.cache.ByOperator(ctx, tx, k.M1.Recipient(), act, "operator:li", "their server is back")
		})
		if err != nil {
			k.t.Fatal(err)
		}
	}
}

// Notifications exhausted within three days are resent when their merchant's breaker closes,
// each once, however often that happens.
func TestABreakerThatClosesSendsWhatWasGivenUpOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := open(t, d)
		var ids []int64
		for range 3 {
			ids = append(ids, k.exhausted(time.Hour))
		}
		old, settled, delivered := k.exhausted(73*time.Hour), k.exhausted(time.Hour), k.exhausted(time.Hour)
		k.exec("UPDATE exceptions SET state = 'resolved' WHERE order_id = (SELECT subject_id FROM deliveries WHERE id = ?)", settled)
		k.exec("UPDATE deliveries SET status = 'delivered' WHERE id = ?", delivered)
		k.swing()
		k.Want(t, 1, "SELECT count(*) FROM compensations WHERE subject_kind = 'merchant' AND made_by = 'breaker'")
		k.run()
		k.Want(t, 3,
			"SELECT count(*) FROM compensations WHERE subject_kind = 'delivery' AND state = 'done' AND last_class = 'ok' AND amount = 10 AND currency = 'CNY'")
		for _, id := range ids {
			k.Want(t, 1,
				"SELECT count(*) FROM deliveries WHERE id = ? AND status = 'retry_wait' AND schedule_from = 9 AND next_at IS NOT NULL", id)
		}
		k.Want(t, 2, "SELECT count(*) FROM deliveries WHERE id IN (?, ?) AND status = 'exhausted'", old, settled)
		if len(k.nudged) != 3 {
			t.Errorf("%d nudges", len(k.nudged))
		}
		// It is exhausted again, and the breaker closes again.
		k.exec("UPDATE deliveries SET status = 'exhausted', next_at = NULL, finished_at = ? WHERE id = ?", d.Now(), ids[0])
		k.exec("UPDATE exceptions SET state = 'open' WHERE kind = 'notify_exhausted'")
		k.swing()
		k.run()
		k.Want(t, 1, "SELECT count(*) FROM deliveries WHERE id = ? AND status = 'exhausted'", ids[0])
		k.Want(t, 1, "SELECT count(*) FROM deliveries WHERE id = ? AND status = 'retry_wait'", settled) // opened again by a person
		k.Want(t, 4, "SELECT count(*) FROM compensations WHERE subject_kind = 'delivery'")
	})
}

// They are opened in more than one transaction.
func TestManyAreOpenedInSteps(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := open(t, d)
		first := k.exhausted(time.Hour)
		for i := range 1200 {
			k.exec("INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, attempts, created_at, finished_at)"+
				" SELECT ?, event_id, recipient_id, ?, event_type, channel, url, status, attempts, created_at, finished_at FROM deliveries WHERE id = ?", 5000+i, 9000+i, first)
			k.exec("INSERT INTO exceptions (id, kind, state, supplier_id, merchant_id, order_id, order_no, subject, amount, currency, detail, seen, opened_at, updated_at)"+
				" VALUES (?, 'notify_exhausted', 'open', 0, ?, ?, ?, 'x', 10, 'CNY', '{}', 1, 1, 1)", 20000+i, k.M1.ID, 9000+i,
				fmt.Sprint("O", i))
		}
		got := k.kind.Run(t.Context(), compensation.Item{Payload: json.RawMessage(fmt.Sprintf(`{"merchant":%d}`, k.M1.ID))})
		if got.Class != compensation.OK {
			t.Errorf("%+v", got)
		}
		k.Want(t, 1201, "SELECT count(*) FROM compensations WHERE subject_kind = 'delivery' AND state = 'waiting'")
	})
}

func TestWhatIsOverIsNotSentAgain(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := open(t, d)
		id := k.exhausted(time.Hour)
		run := func(payload string, want compensation.Class) {
			t.Helper()
			if got := k.kind.Run(t.Context(), compensation.Item{Payload: json.RawMessage(payload)}); got.Class != want {
				t.Errorf("%s: %+v, want %s", payload, got, want)
			}
		}
		body := k.Count(t, "SELECT length(body) FROM deliveries WHERE id = ?", id)
		run(fmt.Sprintf(`{"delivery":%d}`, id), compensation.OK)
		k.Want(t, body, "SELECT length(body) FROM deliveries WHERE id = ?", id)
		run(fmt.Sprintf(`{"delivery":%d}`, id), compensation.Over)
		run(`{"delivery":42}`, compensation.Over)

		k.exec("INSERT INTO alert_messages (id, target, title, body, status, attempts, created_at, finished_at) VALUES (5, 'x', 'title', 'body', 'failed', 10, 1, 2)")
		run(`{"message":5}`, compensation.OK)
		k.Want(t, 1,
			"SELECT count(*) FROM alert_messages WHERE status = 'waiting' AND attempts = 0 AND next_at IS NOT NULL AND finished_at IS NULL AND body = 'body'")
		run(`{"message":5}`, compensation.Over)
	})
}

func TestAPayloadNamesOneMessage(t *testing.T) {
	t.Parallel()
	kind := resend.Kind(resend.Options{})
	for payload, ok := range map[string]bool{
		`{"delivery":1}`: true, `{"message":1}`: true, `{"merchant":1}`: true, `{}`: false, `{"delivery":1,"message":2}`: false,
		`{"delivery":-1}`:  false,
		`{"delivery":"1"}`: false, `{"delivery":1,"x":2}`: false, `[]`: false, ``: false, `{"delivery":1} {}`: false,
	} {
		if err := kind.Check(json.RawMessage(payload)); (err == nil) != ok {
			t.Errorf("%s: %v", payload, err)
		}
	}
}

// sent is a target that counts what it gets.
type sent struct{ texts []string }

func (s *sent) Name() string { return "x" }
func (s *sent) Send(_ context.Context, title, body string) error {
	s.texts = append(s.texts, title+": "+body)
	return nil
}

// An operator sends an alert message again that was given up: it is a compensation, opened once
// however often it is asked for, and its target gets the same text.
func TestAnAlertMessageIsSentAgainByAPerson(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := open(t, d)
		policy, err := access.NewPolicy()
		if err != nil {
			t.Fatal(err)
		}
		acts := act.New(d, audit.New(d, sealtest.Ring(t, 1)), policy, resend.Acts(d, quick)...)
		again := func(role string, id int64) error {
			_, err := acts.Run(t.Context(), act.Call{
				Kind: resend.AlertAct, By: act.Actor{Name: "operator:li", Roles: access.Roles(role)}, Ref: act.Ref{Row: id}, Reason: "the chat is back",
			})
			return err
		}
		k.exec("INSERT INTO alert_messages (id, target, title, body, status, attempts, created_at, finished_at) VALUES (5, 'x', 'title', 'body', 'failed', 11, 1, 2), (6, 'x', 't', 'b', 'sent', 1, 1, 2)")
		if err := again(access.Auditor, 5); err == nil {
			t.Error("by an auditor")
		}
		if err := again(access.Ops, 7); !errors.Is(err, act.ErrNotFound) {
			t.Errorf("one that is not there: %v", err)
		}
		if err := again(access.Ops, 6); !errors.Is(err, resend.ErrNotFailed) {
			t.Errorf("one that was sent: %v", err)
		}
		k.Want(t, 0, "SELECT count(*) FROM compensations")
		for range 2 {
			if err := again(access.Ops, 5); err != nil {
				t.Fatal(err)
			}
		}
		k.Want(t, 1,
			"SELECT count(*) FROM compensations WHERE kind = 'resend' AND subject_kind = 'alert_message' AND subject_id = 5 AND made_by = 'operator:li'")
		k.run()
		k.Want(t, 1, "SELECT count(*) FROM compensations WHERE state = 'done' AND last_class = 'ok'")
		target := new(sent)
		if err := alert.Send(t.Context(), d, []alert.Target{target}, slog.New(slog.DiscardHandler)); err != nil ||
			fmt.Sprint(target.texts) != "[title: body]" {
			t.Errorf("sent %q, %v", target.texts, err)
		}
		k.Want(t, 1, "SELECT count(*) FROM alert_messages WHERE id = 5 AND status = 'sent'")
		if err := again(access.Ops, 5); !errors.Is(err, resend.ErrNotFailed) {
			t.Errorf("once it was sent: %v", err)
		}
	})
}
