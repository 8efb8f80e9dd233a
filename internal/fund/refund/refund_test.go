package refund

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/moves/movestest"
	"backstop/internal/base/seal"
	"backstop/internal/compensation"
	"backstop/internal/compensation/replaycall"
	"backstop/internal/fund/booking"
	"backstop/internal/ledger"
	"backstop/internal/ledger/fact"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/settings"
	"backstop/internal/supplier"
)

// till is a refund machine with orders, a supplier and operators.
type till struct {
	*paymenttest.Fixture
	t     *testing.T
	m     *Machine
	desk  *approval.Desk
	ops   *access.Operators
	fake  *paymenttest.Fake
	limit Limits
}

func each(t *testing.T, test func(k *till)) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) { test(newTill(t, d)) })
}

func newTill(t *testing.T, d *db.DB) *till {
	t.Helper()
	k := &till{t: t, limit: Limits{Auto: 100_000, AutoDay: 1_000_000}}
	k.Fixture = paymenttest.New(t, d, paymenttest.Options{
		Fakes: paymenttest.NewFakes("f1"),
		Refunds: func(f *paymenttest.Fixture) payment.Refunds {
			k.m = New(Options{
				Deps: f.Books(time.Second, time.Minute), Calls: f.Calls,
				Propose: func(ctx context.Context, tx db.Tx, r approval.Request) (*approval.Approval, error) {
					return k.desk.Ask(ctx, tx, r)
				},
				Recall: func(ctx context.Context, tx db.Tx, id int64, m string) error { return k.desk.Recall(ctx, tx, id, m) },
				Limits: func(int64, string) Limits { return k.limit }, Window: func(int64) time.Duration { return time.Hour },
				CheckURL: func(string) error { return nil },
			})
			return k.m
		},
	})
	movestest.Enforce(t, d, Moves)
	k.fake = k.Fakes["f1"]
	keys, err := seal.NewKeyring([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	policy, err := access.NewPolicy()
	if err != nil {
		t.Fatal(err)
	}
	log := audit.New(d, keys)
	k.ops = access.NewOperators(d, log)
	for _, role := range []string{access.Lead, access.Finance} {
		if _, err := d.NewRaw(
			"INSERT INTO operators (id, name, role, password_hash, must_change, created_at, updated_at) VALUES (?, ?, ?, 'x', FALSE, 1, 1)",
			d.NewID(), role, role).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	k.desk = approval.NewDesk(approval.Options{
		DB: d, Audit: log, Policy: policy, Rules: func() settings.Rules { return settings.Rules{SecondPerson: true} }, Life: time.Hour,
		Operators: k.ops, Log: slog.New(slog.DiscardHandler),
	}, k.m.Decision())
	return k
}

// paid returns a paid order of m1 of 1999 at f1.
func (k *till) paid() *order.Order {
	k.t.Helper()
	o, _, err := k.Processor.Create(k.t.Context(), k.M1, payment.CreateRequest{
		OutTradeNo: k.Out(), Amount: 1999, Currency: "CNY",
		Supplier: "f1",
	})
	if err != nil {
		k.t.Fatal(err)
	}
	m := k.Callback(o.OrderNo, "T-"+o.OrderNo, 1999)
	m.Supplier = k.Entry(k.t, "f1")
	m.Source.Actor = "supplier:f1"
	out, err := k.Processor.Submit(k.t.Context(), m)
	if err != nil || out.Name != payment.Paid {
		k.t.Fatalf("%v %+v", err, out)
	}
	return k.order(o)
}

func (k *till) order(o *order.Order) *order.Order {
	k.t.Helper()
	o, err := order.ByID(k.t.Context(), k.DB, o.ID)
	if err != nil {
		k.t.Fatal(err)
	}
	return o
}

func (k *till) create(o *order.Order, amount int64) (*Refund, error) {
	r, _, err := k.m.Create(k.t.Context(), k.M1, Request{OrderNo: o.OrderNo, OutRefundNo: k.Out(), Amount: amount, Reason: "broken"})
	return r, err
}

func (k *till) mustCreate(o *order.Order, amount int64) *Refund {
	k.t.Helper()
	r, err := k.create(o, amount)
	if err != nil {
		k.t.Fatal(err)
	}
	return r
}

func (k *till) reload(r *Refund) *Refund {
	k.t.Helper()
	got, err := byID(k.t.Context(), k.DB, r.ID)
	if err != nil {
		k.t.Fatal(err)
	}
	return got
}

// run runs the refund's open compensation once and writes its result, as the runner does.
func (k *till) run(r *Refund) compensation.Result {
	k.t.Helper()
	return k.runWith(k.m, r)
}

func (k *till) runWith(m *Machine, r *Refund) compensation.Result {
	k.t.Helper()
	var items []compensation.Item
	if err := k.DB.NewRaw("SELECT * FROM compensations WHERE subject_kind = 'refund' AND subject_id = ? AND state = 'waiting' ORDER BY id",
		r.ID).Scan(k.t.Context(), &items); err != nil || len(items) == 0 {
		k.t.Fatalf("%d open compensations: %v", len(items), err)
	}
	x := items[0]
	x.Attempts++
	result := replaycall.Kind(replaycall.Subjects{Op: m.Subject()}).Run(k.t.Context(), x)
	state := "waiting"
	if result.IsDone() {
		state = "done"
	}
	k.exec("UPDATE compensations SET attempts = attempts + 1, state = ? WHERE id = ?", state, x.ID)
	return result
}

func (k *till) exec(query string, args ...any) {
	k.t.Helper()
	if _, err := k.DB.NewRaw(query, args...).Exec(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
}

// later lets time pass for a refund by dating its calls back.
func (k *till) later(r *Refund, d time.Duration) {
	k.t.Helper()
	k.exec("UPDATE refunds SET first_call_at = first_call_at - ?, last_call_at = last_call_at - ?, short_at = short_at - ? WHERE id = ?",
		d.Microseconds(), d.Microseconds(), d.Microseconds(), r.ID)
}

// balances checks the accounts of m1, of refunds in transit, and of the supplier.
func (k *till) balances(what string, merchant, away, at int64) {
	k.t.Helper()
	for code, want := range map[string]int64{"merchant:m1": merchant, "refund:f1": away, "supplier:f1": at} {
		var got int64
		err := k.DB.Tx(k.t.Context(), func(ctx context.Context, tx db.Tx) (err error) {
			got, err = k.Ledger.Balance(ctx, tx, code, "CNY")
			return err
		})
		if err != nil || got != want {
			k.t.Errorf("%s: %s has %d, want %d (%v)", what, code, got, want, err)
		}
	}
}

// is checks a refund, what really happened at its supplier, and its notifications.
func (k *till) is(what string, r *Refund, status Status, moved int, told string) *Refund {
	k.t.Helper()
	got := k.reload(r)
	if got.Status != status {
		k.t.Errorf("%s: the refund is %s, want %s", what, got.Status, status)
	}
	if n := k.fake.RefundOf(r.RefundNo).Moved; n != moved {
		k.t.Errorf("%s: money moved %d times, want %d", what, n, moved)
	}
	events := map[string][]string{"": nil, "both": {"refund.succeeded", "refund.failed"}}[told]
	if told != "" && told != "both" {
		events = []string{told}
	}
	for _, event := range events {
		k.Want(k.t, 1, "SELECT count(*) FROM deliveries WHERE subject_id = ? AND event_type = ?", r.ID, event)
	}
	k.Want(k.t, int64(len(events)), "SELECT count(*) FROM deliveries WHERE subject_id = ?", r.ID)
	k.Want(k.t, got.Version, "SELECT coalesce(max(version), 0) FROM fund_history WHERE subject = 'refund' AND subject_id = ?", r.ID)
	return got
}

// Every way in which a refund can end, with its entries, calls and notification.
func TestEveryEndOfARefund(t *testing.T) {
	t.Parallel()
	type cell struct {
		fault   paymenttest.RefundFault
		status  Status // after the first run
		then    func(k *till, r *Refund)
		end     Status
		moved   int
		told    string
		balance [3]int64 // merchant, refund, supplier; of 1999 paid and 700 refunded
	}
	const back, gone = 1999, 1299
	success := [3]int64{gone, 0, -gone}
	none := [3]int64{back, 0, -back}
	held := [3]int64{gone, 700, -back}
	heal := func(k *till, _ *Refund) { k.fake.OnRefund(nil) }
	for name, c := range map[string]cell{
		"success":          {"", Succeeded, nil, Succeeded, 1, "refund.succeeded", success},
		"definite failure": {paymenttest.RefundNo, Failed, nil, Failed, 0, "refund.failed", none},
		"answer lost after acting": {paymenttest.RefundLost, Unknown, func(k *till, r *Refund) {
			heal(k, r)
			k.run(r)
		}, Succeeded, 1, "refund.succeeded", success},
		"wrong signature after acting": {paymenttest.RefundWrong, Unknown, func(k *till, r *Refund) {
			heal(k, r)
			k.run(r)
		}, Succeeded, 1, "refund.succeeded", success},
		"timeout, never arrived": {paymenttest.RefundDeaf, Unknown, func(k *till, r *Refund) {
			heal(k, r)
			k.run(r) // not found, too early to believe
			if got := k.fake.RefundOf(r.RefundNo); got.Calls != 0 {
				k.t.Errorf(`requested again after %d calls, before "not found" counted`, got.Calls)
			}
			k.later(r, 3*time.Minute)
			k.run(r)
		}, Succeeded, 1, "refund.succeeded", success},
		"unknown stays unknown": {paymenttest.RefundVague, Unknown, func(k *till, r *Refund) {
			for range 12 { // it is time that counts, not how often somebody looks
				k.run(r)
			}
			k.Want(k.t, 0, "SELECT count(*) FROM exceptions WHERE subject = ?", r.RefundNo)
			k.later(r, 22*time.Hour)
			k.run(r)
			k.Want(k.t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'refund_failed' AND subject = ?", r.RefundNo)
		}, Unknown, 1, "", held},
		"processing, then success": {paymenttest.RefundLazy, Submitted, func(k *till, r *Refund) {
			k.fake.SetRefund(r.RefundNo, supplier.RefundSucceeded)
			k.run(r)
		}, Succeeded, 1, "refund.succeeded", success},
		"processing, then failed": {paymenttest.RefundLazy, Submitted, func(k *till, r *Refund) {
			k.fake.SetRefund(r.RefundNo, supplier.RefundFailed)
			k.run(r)
		}, Failed, 0, "refund.failed", none},
		"stuck at the supplier": {paymenttest.RefundStuck, Unknown, func(k *till, r *Refund) {
			k.Want(k.t, 1, "SELECT count(*) FROM exceptions WHERE kind = 'refund_failed' AND subject = ?", r.RefundNo)
			k.run(r)
		}, Unknown, 0, "", held},
		"short of funds, then paid": {paymenttest.RefundShort, Submitted, func(k *till, r *Refund) {
			heal(k, r)
			k.later(r, time.Hour)
			k.run(r)
		}, Succeeded, 1, "refund.succeeded", success},
		"short of funds for three days": {paymenttest.RefundShort, Submitted, func(k *till, r *Refund) {
			k.later(r, 73*time.Hour)
			k.run(r)
		}, Failed, 0, "refund.failed", none},
		"returned at once": {paymenttest.RefundLazy, Submitted, func(k *till, r *Refund) {
			k.fake.SetRefund(r.RefundNo, supplier.RefundSucceeded)
			k.fake.SetRefund(r.RefundNo, supplier.RefundReturned)
			k.run(r)
		}, Returned, 1, "both", none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(k *till) {
				o := k.paid()
				r := k.mustCreate(o, 700)
				k.balances("held", gone, 700, -back)
				k.is("held", r, Approved, 0, "")
				k.fake.OnRefund(func(supplier.Refund) paymenttest.RefundFault { return c.fault })
				k.run(r)
				if got := k.reload(r); got.Status != c.status {
					k.t.Errorf("after the call it is %s, want %s", got.Status, c.status)
				}
				if c.then != nil {
					c.then(k, r)
				}
				k.is("end", r, c.end, c.moved, c.told)
				k.balances("end", c.balance[0], c.balance[1], c.balance[2])
				want := int64(0)
				if c.end == Succeeded {
					want = 700
				}
				k.Want(t, want, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
				status := map[bool]string{true: "partial", false: "none"}[want > 0]
				k.Want(t, 1, "SELECT count(*) FROM orders WHERE id = ? AND refund_status = ? AND status = 'paid'", o.ID, status)
				if got := k.fake.RefundOf(r.RefundNo); got.Moved > 1 {
					t.Errorf("money moved %d times", got.Moved)
				}
			})
		})
	}
}

// The supplier forgets numbers: a refund that it does not find is never sent again.
func TestANumberThatIsNotKnownForLifeIsOrderedOnce(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		k.fake.Repeat = 0
		r := k.mustCreate(k.paid(), 700)
		k.fake.OnRefund(func(supplier.Refund) paymenttest.RefundFault { return paymenttest.RefundDeaf })
		k.run(r)
		k.fake.OnRefund(func(supplier.Refund) paymenttest.RefundFault { return paymenttest.RefundOnce })
		for range 5 {
			k.later(r, 24*time.Hour)
			k.run(r)
		}
		k.is("not found", r, Unknown, 0, "")
		if got := k.fake.RefundOf(r.RefundNo); got.Calls != 0 || got.Queried != 5 {
			t.Errorf("%+v", got)
		}

		// Stripe: it may be repeated within 20 hours; after that, a refund that is not listed was never made.
		k.fake.Repeat, k.fake.Absent = 20*time.Hour, true
		r = k.mustCreate(k.paid(), 700)
		k.fake.OnRefund(func(supplier.Refund) paymenttest.RefundFault { return paymenttest.RefundDeaf })
		k.run(r)
		k.fake.OnRefund(nil)
		k.later(r, 21*time.Hour)
		k.run(r)
		k.is("after 20 hours", r, Failed, 0, "refund.failed")
		if got := k.fake.RefundOf(r.RefundNo); got.Calls != 0 {
			t.Errorf("requested after 20 hours: %+v", got)
		}
	})
}

// A crash at each point between two commits: the next run continues from what is stored.
func TestACrashLosesNothingAndPaysOnce(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		const gone = 1299
		// After the commit that it may have been sent, before the call.
		r := k.mustCreate(k.paid(), 700)
		if _, err := k.m.submit(t.Context(), r.ID, k.Entry(t, "f1")); err != nil {
			t.Fatal(err)
		}
		k.run(r) // asked: not found, too early
		k.is("before the call", r, Submitted, 0, "")
		k.later(r, 3*time.Minute)
		k.run(r)
		k.is("before the call, then", r, Succeeded, 1, "refund.succeeded")
		k.balances("before the call", gone, 0, -gone)

		// After the call, before its result is written.
		r = k.mustCreate(k.paid(), 700)
		sent, err := k.m.submit(t.Context(), r.ID, k.Entry(t, "f1"))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := k.m.call(t.Context(), sent, k.Entry(t, "f1"), "refund"); err != nil {
			t.Fatal(err)
		}
		k.is("after the call", r, Submitted, 1, "")
		k.run(r)
		k.is("after the call, then", r, Succeeded, 1, "refund.succeeded")
		k.balances("after the call", 2*gone, 0, -2*gone)

		// After the result is written, before the compensation has ended: it runs again.
		k.exec("UPDATE compensations SET state = 'waiting' WHERE subject_id = ?", r.ID)
		if got := k.run(r); got.Class != compensation.Over {
			t.Errorf("again: %+v", got)
		}
		k.is("again", r, Succeeded, 1, "refund.succeeded")
		k.balances("again", 2*gone, 0, -2*gone)
	})
}

func TestRequestsAreChecked(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		o := k.paid()
		var exceeds *ExceedsError
		if _, err := k.create(o, 2000); !errors.As(err, &exceeds) || exceeds.Refundable != 1999 {
			t.Errorf("more than was paid: %v", err)
		}
		first := k.mustCreate(o, 1500)
		if _, err := k.create(o, 500); !errors.As(err, &exceeds) || exceeds.Refundable != 499 {
			t.Errorf("more than is left: %v", err)
		}
		again := Request{OrderNo: o.OrderNo, OutRefundNo: first.OutRefundNo, Amount: 1500, Reason: "broken"}
		if r, created, err := k.m.Create(t.Context(), k.M1, again); err != nil || created || r.RefundNo != first.RefundNo {
			t.Errorf("again: %v %v", created, err)
		}
		again.Amount = 1400
		if _, _, err := k.m.Create(t.Context(), k.M1, again); !errors.Is(err, ErrConflict) {
			t.Errorf("with different content: %v", err)
		}
		if _, _, err := k.m.Create(t.Context(), k.M2, Request{OrderNo: o.OrderNo, OutRefundNo: "x", Amount: 1}); !errors.Is(err,
			order.ErrNotFound) {
			t.Errorf("another merchant's: %v", err)
		}
		unpaid, _, err := k.Processor.Create(t.Context(), k.M1, payment.CreateRequest{
			OutTradeNo: k.Out(), Amount: 5, Currency: "CNY",
			Supplier: "f1",
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.create(unpaid, 1); !errors.Is(err, ErrNotRefundable) {
			t.Errorf("not paid: %v", err)
		}
		k.exec("UPDATE orders SET paid_at = paid_at - ? WHERE id = ?", (2 * time.Hour).Microseconds(), o.ID)
		if _, err := k.create(o, 1); !errors.Is(err, ErrNotRefundable) {
			t.Errorf("after its time: %v", err)
		}
		// The merchant has already spent the money.
		other := k.paid()
		k.spend(2400)
		if _, err := k.create(other, 1999); !errors.Is(err, ledger.ErrInsufficient) {
			t.Errorf("nothing left: %v", err)
		}
		k.limit.Overdraft = 5000
		k.mustCreate(other, 1999)
		k.Want(t, 2, "SELECT count(*) FROM refunds")
	})
}

// spend takes money from m1, as a payout would.
func (k *till) spend(amount int64) {
	k.t.Helper()
	err := k.DB.Tx(k.t.Context(), func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		e := fact.Entry(fact.Adjust, fact.Values{
			From: "merchant:m1", To: "bank:x", ID: fmt.Sprint(k.DB.NewID()), Amount: amount,
			Currency: "CNY",
		})
		return errors.Join(k.Ledger.Post(ctx, tx, w, fact.Entries{e}), w.Exec(ctx))
	})
	if err != nil {
		k.t.Fatal(err)
	}
}

// Two concurrent refunds of one balance, and two of one payment: exactly one is made. The control
// holds no money and makes both.
func TestTwoAtOnceSpendABalanceOnce(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		race := func(orders ...*order.Order) (made int64) {
			var n atomic.Int64
			var wg sync.WaitGroup
			for _, o := range orders {
				wg.Go(func() {
					err := dbtest.Repeat(func() error { _, err := k.create(o, 1999); return err })
					if err == nil {
						n.Add(1)
					} else if e := (*ExceedsError)(nil); !errors.Is(err, ledger.ErrInsufficient) && !errors.As(err, &e) {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			return n.Load()
		}
		for range 10 {
			a, b := k.paid(), k.paid()
			k.spend(1999)
			if n := race(a, b, a, b); n != 1 {
				t.Fatalf("%d refunds of 1999 were made of a balance of 1999", n)
			}
			k.balances("after the race", 0, int64(k.Count(t, "SELECT count(*) FROM refunds"))*1999,
				-k.Count(t, "SELECT count(*) FROM orders")*1999)
		}
		o := k.paid()
		k.limit.Overdraft = 100_000
		if n := race(o, o, o, o); n != 1 {
			t.Errorf("%d refunds of one whole payment were made", n)
		}
	})
}

// The control: without the hold, both are made.
func TestWithoutTheHoldABalanceIsSpentTwice(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		a, b := k.paid(), k.paid()
		k.spend(1999)
		naive := func(o *order.Order) bool {
			ok := false
			err := k.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				balance, err := k.Ledger.Balance(ctx, tx, "merchant:m1", "CNY")
				if err != nil || balance < 1999 {
					return err
				}
				r, err := k.m.refundOf(ctx, tx, o, 1999)
				if err != nil {
					return err
				}
				ok = true
				x := k.m.begin(tx)
				x.insert(r, booking.Cause{Actor: "naive"})
				return x.Send(ctx)
			})
			return err == nil && ok
		}
		if !naive(a) || !naive(b) {
			t.Error("the control refuses the second refund, so the test above proves nothing")
		}
	})
}

func TestAboveTheLimitsTwoPeopleDecide(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		k.limit = Limits{Auto: 600, AutoDay: 1000}
		o := k.paid()
		small := k.mustCreate(o, 600)
		if !small.ByRule || small.Status != Approved {
			t.Errorf("%+v", small)
		}
		second := k.mustCreate(o, 500) // the day's sum
		if second.ByRule || second.Status != Requested {
			t.Errorf("%+v", second)
		}
		k.Want(t, 0, "SELECT count(*) FROM compensations WHERE subject_id = ?", second.ID)
		k.balances("both held", 1999-1100, 1100, -1999)
		a, err := approval.Find(t.Context(), k.DB, second.ApprovalID)
		if err != nil || a.MakerKind != approval.ByMerchant || a.Maker != k.M1.ID || a.State != approval.Waiting {
			t.Fatalf("%v %+v", err, a)
		}
		if a, err = k.desk.Approve(t.Context(), k.verdict(access.Lead, a)); err != nil || a.State != approval.Done {
			t.Fatalf("%v %+v", err, a)
		}
		k.is("approved", second, Approved, 0, "")
		k.run(second)
		k.is("ordered", second, Succeeded, 1, "refund.succeeded")

		third := k.mustCreate(o, 500)
		a, _ = approval.Find(t.Context(), k.DB, third.ApprovalID)
		if _, err = k.desk.Reject(t.Context(), k.verdict(access.Lead, a)); err != nil {
			t.Fatal(err)
		}
		k.is("rejected", third, Rejected, 0, "refund.failed")
		k.balances("rejected", 1999-1100, 600, -1499)

		// It is not decided in time.
		fourth := k.mustCreate(o, 500)
		k.exec("UPDATE approvals SET expires_at = 1 WHERE id = ?", fourth.ApprovalID)
		if n, err := k.desk.Expire(t.Context()); err != nil || n != 1 {
			t.Fatalf("%d %v", n, err)
		}
		k.is("expired", fourth, Rejected, 0, "refund.failed")

		// The merchant cancels it: its proposal is withdrawn too.
		fifth := k.mustCreate(o, 500)
		for range 2 {
			if r, err := k.m.Cancel(t.Context(), k.M1, fifth.RefundNo); err != nil || r.Status != Cancelled {
				t.Fatalf("%v %+v", err, r)
			}
		}
		k.Want(t, 1, "SELECT count(*) FROM approvals WHERE id = ? AND state = 'withdrawn'", fifth.ApprovalID)
		k.is("cancelled", fifth, Cancelled, 0, "")
		k.balances("cancelled", 1999-1100, 600, -1499)
		if _, err := k.m.Cancel(t.Context(), k.M1, second.RefundNo); !errors.Is(err, ErrStarted) {
			t.Errorf("after it was sent: %v", err)
		}
		k.exec("UPDATE refunds SET out_refund_no = '' WHERE id = ?", second.ID) // as if an operator had proposed it
		if _, err := k.m.Cancel(t.Context(), k.M1, second.RefundNo); !errors.Is(err, ErrNotOwn) {
			t.Errorf("an operator's: %v", err)
		}
		if _, err := k.m.Cancel(t.Context(), k.M2, fifth.RefundNo); !errors.Is(err, ErrNotFound) {
			t.Errorf("another merchant's: %v", err)
		}
	})
}

func (k *till) verdict(name string, a *approval.Approval) approval.Verdict {
	k.t.Helper()
	id, err := access.IDOf(k.t.Context(), k.DB, name)
	if err != nil || id == 0 {
		k.t.Fatalf("%s: %v", name, err)
	}
	return approval.Verdict{ID: a.ID, Hash: a.Hash, Reason: "looked at the parcel", By: act.Actor{
		ID: id, Name: "operator:" + name,
		Roles: access.RolesOf(name),
	}}
}

// Two nodes settle one refund concurrently: its money moves once.
func TestTwoAnswersOfOneRefundCountOnce(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		for range 5 {
			r := k.mustCreate(k.paid(), 700)
			sent, err := k.m.submit(t.Context(), r.ID, k.Entry(t, "f1"))
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					answer, done, err := k.m.call(t.Context(), sent, k.Entry(t, "f1"), "refund")
					if err != nil {
						t.Error(err)
						return
					}
					k.m.settle(t.Context(), compensation.Item{SubjectID: r.ID, Attempts: 1}, sent, repeats{}, answer, done)
				})
			}
			wg.Wait()
			k.is("four answers", r, Succeeded, 1, "refund.succeeded")
			k.Want(t, 2, "SELECT count(*) FROM transfers WHERE ref LIKE ?", "refund:"+r.key()+":%")
		}
	})
}

func TestTheMovesOfARefund(t *testing.T) {
	t.Parallel()
	movestest.Check(t, Moves, `
		          requested approved rejected cancelled submitted unknown succeeded failed returned
		requested .         x        x        x         .         .       .         .      .
		approved  .         .        .        x         x         .       .         x      .
		rejected  .         .        .        .         .         .       .         .      .
		cancelled .         .        .        .         .         .       .         .      .
		submitted .         .        .        .         .         x       x         x      .
		unknown   .         .        .        .         .         .       x         x      .
		succeeded .         .        .        .         .         .       .         .      x
		failed    .         .        .        .         .         .       .         .      .
		returned  .         .        .        .         .         .       .         .      .
	`)
	raw, err := json.Marshal(View{})
	if err != nil || len(raw) == 0 {
		t.Fatal(err)
	}
}
