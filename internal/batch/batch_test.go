package batch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/money"
	"backstop/internal/base/queue"
	"backstop/internal/base/seal/sealtest"
	"backstop/internal/batch"
	"backstop/internal/breaker"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/report"
	"backstop/internal/settings"

	"github.com/uptrace/bun"
)

// put writes orders with notifications of the given status, ¥1.00 each.
func put(t testing.TB, d *db.DB, status notify.Status, currency string, n int) {
	t.Helper()
	now := d.Now()
	orders, deliveries := make([]order.Order, n), make([]notify.Delivery, n)
	for i := range n {
		o, id := d.NewID(), d.NewID()
		orders[i] = order.Order{
			ID: o, OrderNo: fmt.Sprint(o), OutTradeNo: fmt.Sprint(o), MerchantID: 1, SupplierID: 1, Amount: 100,
			Currency: currency, Status: order.Paid, Version: 2, CreatedAt: now,
		}
		deliveries[i] = notify.Delivery{
			ID: id, EventID: id, RecipientID: 1, SubjectID: o, EventType: "order.paid", Channel: notify.Webhook,
			Status: status, Attempts: 4, CreatedAt: now, Currency: currency, Amount: 100,
		}
		switch status {
		case notify.Exhausted, notify.Delivered, notify.Skipped:
			deliveries[i].FinishedAt = &now
		default:
			later := now + 3_600_000_000
			deliveries[i].NextAt = &later
		}
	}
	for _, rows := range []any{&orders, &deliveries} {
		if _, err := d.NewInsert().Model(rows).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func count(t *testing.T, d *db.DB, query string) (n int) {
	t.Helper()
	if err := d.Read.NewRaw(query).Scan(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// everything reads what a dry run must not change.
func everything(t *testing.T, d *db.DB) string {
	t.Helper()
	var all []map[string]any
	for _, table := range []string{"deliveries", "orders", "exceptions", "report_deltas", "report_unnotified", "audit", "form_keys"} {
		var rows []map[string]any
		if err := d.Read.NewRaw("SELECT * FROM "+table).Scan(t.Context(), &rows); err != nil {
			t.Fatal(err)
		}
		all = append(all, rows...)
	}
	return fmt.Sprint(all)
}

// desk plans and runs batches that resend notifications.
type desk struct {
	*batch.Batches
	testing.TB
	db     *db.DB
	policy *access.Policy
	rules  settings.Rules
	mu     sync.Mutex
	nudged map[int64]int // how often, by delivery
}

// fast is a rate that delays no test.
const fast = batch.MaxRate

func open(t testing.TB, d *db.DB, more ...act.Kind) *desk {
	t.Helper()
	policy, err := access.NewPolicy()
	if err != nil {
		t.Fatal(err)
	}
	k := &desk{TB: t, db: d, policy: policy, nudged: map[int64]int{}}
	k.rules.Above = map[string]settings.Above{}
	for _, currency := range []string{"CNY", "HKD", ""} {
		k.rules.Above[currency] = settings.Above{BatchAmount: 1 << 40, BatchRows: batch.MaxRows}
	}
	k.Batches = k.node(d, nil, more...)
	return k
}

// resending sends notifications again, and counts how often each is nudged.
func (k *desk) resending(d *db.DB) act.Kind {
	book := merchant.NewDirectory(nil, nil)
	return notify.Acts{
		DB: d, Directory: func() *merchant.Directory { return book }, Breakers: breaker.NewCache(d, nil),
		Nudge: func(all []queue.Nudge) {
			k.mu.Lock()
			defer k.mu.Unlock()
			for _, n := range all {
				k.nudged[n.Delivery]++
			}
		},
	}.Resending()
}

// node is another process with the same batches.
func (k *desk) node(d *db.DB, down func(int64) bool, more ...act.Kind) *batch.Batches {
	return k.nodeOf(d, down, append([]act.Kind{k.resending(d)}, more...)...)
}

func (k *desk) nodeOf(d *db.DB, down func(int64) bool, kinds ...act.Kind) *batch.Batches {
	log := audit.New(d, sealtest.Ring(k, 1))
	b := batch.New(batch.Options{
		DB: d, Audit: log, Rules: func() settings.Rules { return k.rules }, Rate: fast, Down: down,
		Log: slog.New(slog.DiscardHandler),
	})
	b.Use(act.New(d, log, k.policy, append(b.Acts(), kinds...)...), nil)
	return b
}

// rows returns the deliveries with one of the statuses, or all.
func (k *desk) rows(statuses ...notify.Status) (ids []int64) {
	k.Helper()
	q := k.db.Read.NewSelect().Table("deliveries").Column("id").OrderExpr("id")
	if len(statuses) > 0 {
		q = q.Where("status IN (?)", bun.List(statuses))
	}
	if err := q.Scan(k.Context(), &ids); err != nil {
		k.Fatal(err)
	}
	return ids
}

// li is an operator, as passed to the registry.
var li = act.Actor{Name: "operator:li", ID: 7, Roles: access.Ops}

func (k *desk) propose(ids []int64) (*batch.Batch, error) {
	return k.Plan(k.Context(), batch.Proposal{Action: "resend", Object: "delivery", By: li, Filter: "/notifications", IDs: ids})
}

func (k *desk) plan(ids []int64) *batch.Batch {
	k.Helper()
	p, err := k.propose(ids)
	if err != nil {
		k.Fatal(err)
	}
	return p
}

func (k *desk) find(id int64) *batch.Batch {
	k.Helper()
	p, err := batch.Find(k.Context(), k.db, id)
	if err != nil {
		k.Fatal(err)
	}
	return p
}

// start starts a plan with the amounts typed as displayed.
func (k *desk) start(p *batch.Batch, by act.Actor) error {
	amounts := map[string]string{}
	for _, s := range k.Typed(p) {
		amounts[s.Currency] = money.Format(s.Minor, s.Currency)
	}
	return k.startTyped(p, by, amounts)
}

func (k *desk) startTyped(p *batch.Batch, by act.Actor, amounts map[string]string) error {
	params, _ := json.Marshal(batch.StartParams{Amounts: amounts})
	_, err := k.Change(k.Context(), act.Call{
		Kind: batch.StartAct, By: by, Ref: act.Ref{Row: p.ID}, Params: params, Reason: "their server is back",
	})
	return err
}

// does runs one of the other acts.
func (k *desk) does(kind string, p *batch.Batch, params string) error {
	_, err := k.Change(k.Context(), act.Call{
		Kind: kind, By: li, Ref: act.Ref{Row: p.ID}, Params: json.RawMessage(params),
		Reason: "as agreed by phone",
	})
	return err
}

// run starts a plan, runs it, and returns the number of nudges.
func (k *desk) run(p *batch.Batch) int {
	k.Helper()
	if err := k.start(p, li); err != nil {
		k.Fatal(err)
	}
	before := len(k.nudged)
	if err := k.RunNow(k.Context(), p.ID); err != nil {
		k.Error(err)
	}
	return len(k.nudged) - before
}

// Plan outcomes for a notification.
const send, waits, final, blocked, done = string(act.Will), string(act.Waits), string(act.Final), string(act.Blocked), string(batch.RowDone)

func TestARunDoesWhatThePlanShowedAndNothingElse(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := open(t, d)
		put(t, d, notify.Exhausted, "CNY", 700)
		put(t, d, notify.RetryWait, "HKD", 3)
		put(t, d, notify.Delivered, "CNY", 5)
		put(t, d, notify.Sending, "CNY", 2)
		before := everything(t, d)
		p := k.plan(k.rows())
		want := batch.Tally{
			send:  {{Currency: "CNY", Orders: 700, Minor: 70000}, {Currency: "HKD", Orders: 3, Minor: 300}},
			final: {{Currency: "CNY", Orders: 5, Minor: 500}}, blocked: {{Currency: "CNY", Orders: 2, Minor: 200}},
		}
		if !reflect.DeepEqual(p.Planned, want) {
			t.Errorf("shown is %v, want %v", p.Planned, want)
		}
		if everything(t, d) != before || count(t, d, "SELECT count(*) FROM batches") != 1 {
			t.Error("a dry run wrote more than its plan")
		}
		put(t, d, notify.Exhausted, "CNY", 4) // after the plan
		if n := k.run(p); n != 703 {
			t.Errorf("%d were nudged", n)
		}
		if end := k.find(p.ID); end.State != batch.Done || !reflect.DeepEqual(end.Result[done], p.Planned[send]) || end.FinishedAt == nil {
			t.Errorf("the run ended %s with %v; the plan was %v", end.State, end.Result, p.Planned)
		}
		if n := len(k.rows(notify.Exhausted)); n != 4 {
			t.Errorf("%d later ones are unchanged, want 4", n)
		}
		if n := len(k.rows(notify.Delivered, notify.Sending)); n != 7 {
			t.Errorf("%d of those that were not to be sent are as they were, want 7", n)
		}
		acts, err := audit.List(t.Context(), d.Read, audit.Query{Object: batch.Object, ObjectID: p.No(), Oldest: true, Limit: 9})
		if err != nil || len(acts) != 2 || acts[0].Action != batch.StartAct || acts[1].Action != batch.EndAct ||
			acts[1].Actor != "operator:li" {
			t.Fatalf("on the record: %+v, %v", acts, err)
		}
		const sums = `"amounts":[{"Currency":"CNY","Orders":700,"Minor":70000},{"Currency":"HKD","Orders":3,"Minor":300}]`
		if acts[0].Params != `{"action":"resend",`+sums+
			`,"filter":"/notifications","object":"delivery","reason":"their server is back","rows":703}` || acts[1].Params != `{`+sums+
			`,"done":703,"rows":703,"state":"done"}` {
			t.Errorf("on the record: %s and %s", acts[0].Params, acts[1].Params)
		}
	})
}

func TestRunnersAtOnceSendEachNotificationOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := open(t, d)
		put(t, d, notify.Exhausted, "CNY", 1200)
		p := k.plan(k.rows())
		if err := k.start(p, li); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				for k.find(p.ID).State == batch.Running {
					if err := k.RunNow(context.Background(), p.ID); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		for id, n := range k.nudged {
			if n != 1 {
				t.Errorf("%d was sent %d times", id, n)
			}
		}
		if end := k.find(p.ID); end.State != batch.Done || end.Result.Count(done) != 1200 || len(k.nudged) != 1200 {
			t.Errorf("%s, %d sent, %d nudged", end.State, end.Result.Count(done), len(k.nudged))
		}
		if n := count(t, d, "SELECT count(*) FROM audit WHERE action = '"+batch.EndAct+"'"); n != 1 {
			t.Errorf("its end is %d times on the record", n)
		}
	})
}

func TestARunStopsWhereTheAmountIsAnotherOne(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := open(t, d)
		put(t, d, notify.Exhausted, "CNY", 200)
		deliver := func(n int) {
			t.Helper()
			if _, err := d.NewRaw(
				"UPDATE deliveries SET status = 'delivered' WHERE id IN (SELECT id FROM deliveries WHERE status = 'exhausted' ORDER BY id LIMIT ?)", n).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		p := k.plan(k.rows(notify.Exhausted))
		deliver(3) // 1.5 %
		if err := k.start(p, li); !errors.Is(err, batch.ErrDrifted) {
			t.Errorf("a start although the amount was another one: %v", err)
		}
		p = k.plan(k.rows(notify.Exhausted))
		if err := k.start(p, li); err != nil {
			t.Fatal(err)
		}
		deliver(3)
		if err := k.RunNow(t.Context(), p.ID); err != nil || len(k.nudged) != 0 {
			t.Errorf("%d were sent although the amount was another one, %v", len(k.nudged), err)
		}
		if p := k.find(p.ID); p.State != batch.Stopped || p.StoppedBecause != batch.ByDrift {
			t.Errorf("it ended %s because %s", p.State, p.StoppedBecause)
		}
		put(t, d, notify.Exhausted, "CNY", 3)
		p = k.plan(k.rows(notify.Exhausted))
		deliver(1) // 0.5 %
		if n := k.run(p); n != 196 {
			t.Errorf("%d were sent, want all but the one that was delivered meanwhile", n)
		}
		if p := k.find(p.ID); p.State != batch.Done || p.Result.Count(final) != 1 {
			t.Errorf("it ended %s with %v", p.State, p.Result)
		}
	})
}

func TestAPlanIsRunOnceByWhoMadeItAndSoon(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := open(t, d)
		for _, ids := range [][]int64{nil, {1, 2}} {
			if _, err := k.propose(ids); !errors.Is(err, batch.ErrNothing) {
				t.Errorf("of nothing: %v", err)
			}
		}
		if _, err := k.propose(make([]int64, batch.MaxRows+1)); !errors.Is(err, batch.ErrTooMany) {
			t.Errorf("of too many: %v", err)
		}
		put(t, d, notify.Exhausted, "CNY", 3)
		ids := k.rows()
		p := k.plan(ids[:2])
		if p.Planned.Count(send) != 2 {
			t.Fatalf("of two that were picked: %+v", p)
		}
		if err := k.start(p, act.Actor{Name: "operator:wang", ID: 8, Roles: access.Lead}); !errors.Is(err, batch.ErrMaker) {
			t.Errorf("by another operator: %v", err)
		}
		k.run(p)
		if err := k.start(p, li); !errors.Is(err, batch.ErrState) {
			t.Errorf("for the second time: %v", err)
		}
		old := k.plan(ids[2:])
		if _, err := d.NewRaw("UPDATE batches SET expires_at = ? WHERE id = ?", d.Now()-1, old.ID).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := k.start(old, li); !errors.Is(err, batch.ErrExpired) {
			t.Errorf("too late: %v", err)
		}
		if err := k.start(&batch.Batch{ID: 1}, li); !errors.Is(err, act.ErrNotFound) {
			t.Errorf("of no plan: %v", err)
		}
		if len(k.rows(notify.Exhausted)) != 1 {
			t.Error("the third one was sent")
		}
	})
}

func TestALargePlanIsRunByItsAmounts(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	k := open(t, d)
	put(t, d, notify.Exhausted, "CNY", 20)
	put(t, d, notify.Exhausted, "HKD", 1)
	if p := k.plan(k.rows()[:20]); k.Typed(p) != nil {
		t.Errorf("of 20 are typed %v", k.Typed(p))
	}
	p := k.plan(k.rows())
	for _, c := range []struct {
		typed map[string]string
		want  string
	}{
		{nil, "amount_CNY"},
		{map[string]string{"CNY": "20.00"}, "amount_HKD"},
		{map[string]string{"CNY": "20.00", "HKD": "1"}, "amount_HKD"},
		{map[string]string{"CNY": "20.00", "HKD": "1.00", "USD": "1.00"}, "amount_USD"},
	} {
		err := k.startTyped(p, li, c.typed)
		var field *act.FieldError
		if !errors.As(err, &field) || field.Field != c.want {
			t.Errorf("with %s: %v, want the field %s", c.typed, err, c.want)
		}
	}
	if n := k.run(p); n != 21 {
		t.Errorf("%d were sent", n)
	}
}

// A failed ping is listed among exhausted notifications. It is sent while its requester waits,
// or not at all, and must not keep a batch from ending.
func TestAPlanLeavesPingsAlone(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := open(t, d)
		put(t, d, notify.Exhausted, "CNY", 3)
		id, now := d.NewID(), d.Now()
		ping := notify.Delivery{
			ID: id, EventID: id, RecipientID: 1, SubjectID: id, EventType: notify.Ping, Channel: notify.Webhook,
			Status: notify.Exhausted, Attempts: 1, CreatedAt: now, FinishedAt: &now,
		}
		if _, err := d.NewInsert().Model(&ping).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		put(t, d, notify.Exhausted, "CNY", 2)
		p := k.plan(k.rows(notify.Exhausted))
		if p.Planned.Count(send) != 5 || p.Planned.Count(final) != 1 {
			t.Fatalf("planned: %+v", p.Planned)
		}
		if n := k.run(p); n != 5 {
			t.Errorf("%d were nudged, want 5", n)
		}
		if p := k.find(p.ID); p.State != batch.Done {
			t.Errorf("it ended %s", p.State)
		}
	})
}

// Notifications held back by a breaker are an outcome of their own: neither about to be sent
// nor being sent. A run makes them due, and reports their stored state as the result.
func TestWhatWaitsForABreakerIsPlannedAndCountedAsSuch(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		k := open(t, d)
		exec := func(query string, args ...any) {
			t.Helper()
			if _, err := d.NewRaw(query, args...).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		put(t, d, notify.Exhausted, "CNY", 4)
		put(t, d, notify.RetryWait, "HKD", 3)
		put(t, d, notify.Queued, "CNY", 2)
		put(t, d, notify.Sending, "CNY", 1)
		put(t, d, notify.Delivered, "CNY", 5)
		exec("UPDATE deliveries SET recipient_id = 2 WHERE id = (SELECT max(id) FROM deliveries WHERE status = 'exhausted')")
		exec("INSERT INTO breakers (owner_id, state, by_hand, updated_at) VALUES (1, 'open', TRUE, ?)", d.Now())
		p := k.plan(k.rows())
		want := batch.Tally{
			send:    {{Currency: "CNY", Orders: 1, Minor: 100}},
			waits:   {{Currency: "CNY", Orders: 5, Minor: 500}, {Currency: "HKD", Orders: 3, Minor: 300}},
			blocked: {{Currency: "CNY", Orders: 1, Minor: 100}},
			final:   {{Currency: "CNY", Orders: 5, Minor: 500}},
		}
		if !reflect.DeepEqual(p.Planned, want) || p.ToDo != 9 || p.Rows != 15 {
			t.Errorf("shown is %v of %d, want %v of 9", p.Planned, p.ToDo, want)
		}
		if sums := p.Planned.Acts(); !reflect.DeepEqual(sums, []report.Sum{
			{Currency: "CNY", Orders: 6, Minor: 600},
			{Currency: "HKD", Orders: 3, Minor: 300},
		}) {
			t.Errorf("together they are %v", sums)
		}
		exec("UPDATE breakers SET state = 'closed', by_hand = FALSE, generation = 1, updated_at = ?", d.Now()) // which is no drift
		k.run(p)
		now := func(notified, refused, waiting int64) {
			t.Helper()
			p := k.find(p.ID)
			got, err := k.Results(t.Context(), p)
			if err != nil || p.State != batch.Done || got.Count(notify.ResultNotified) != notified ||
				got.Count(notify.ResultRefused) != refused || got.Count(notify.ResultWaiting) != waiting {
				t.Errorf("%s, by now %v, %v; want %d notified, %d refused, %d waiting", p.State, got, err, notified, refused, waiting)
			}
		}
		now(0, 0, 9)
		exec("UPDATE deliveries SET status = 'delivered', next_at = NULL WHERE status = 'retry_wait' AND currency = 'HKD'")
		exec("UPDATE deliveries SET status = 'exhausted', next_at = NULL WHERE recipient_id = 2")
		exec("UPDATE deliveries SET next_at = ? WHERE id = (SELECT min(id) FROM deliveries WHERE status = 'retry_wait')",
			d.Now()+time.Hour.Microseconds())
		now(3, 2, 4)
	})
}
