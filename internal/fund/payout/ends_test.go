package payout

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/moves/movestest"
	"backstop/internal/compensation"
	"backstop/internal/exception"
	"backstop/internal/fund/booking"
	"backstop/internal/ledger/fact"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
)

const (
	sum  = 700
	cost = 5 // our fee
	all  = 2000
)

// Every way in which a payout can end, with its cell, entries, calls and notifications.
func TestEveryEndOfAPayout(t *testing.T) {
	t.Parallel()
	paid := [4]int64{all - sum - cost, 0, sum - all, cost}
	back := [4]int64{all, 0, -all, 0}
	away := [4]int64{all - sum - cost, sum, -all, cost}
	heal := func(k *till) { k.fake.OnPayout(nil) }
	for name, c := range map[string]struct {
		fault   paymenttest.PayoutFault
		first   string // the cell after the first call
		then    func(k *till, p *Payout)
		cell    string
		status  Status
		moved   int
		told    []string
		balance [4]int64 // merchant, in transit, supplier, fees
	}{
		"success": {"", "P8", nil, "P8", Succeeded, 1, []string{"payout.succeeded"}, paid},
		"definite failure": {paymenttest.PayoutNo, "P6", func(k *till, p *Payout) {
			k.run(p) // queried too early: not found is not believed
			k.is("early", p, "P6", Crediting, 0)
			k.later(p, 31*time.Minute)
			k.run(p)
			if got := k.fake.PayoutOf(p.PayoutNo); got.Calls != 1 {
				k.t.Errorf("it was sent %d times", got.Calls)
			}
		}, "P11", Reversed, 0, []string{"payout.failed"}, back},
		"a final word, and yet it was paid": {paymenttest.PayoutNo, "P6", func(k *till, p *Payout) {
			k.fake.SetPayout(p.PayoutNo, supplier.PayoutSucceeded)
			k.later(p, 31*time.Minute)
			k.run(p)
		}, "P8", Succeeded, 1, []string{"payout.succeeded"}, paid},
		"timeout, it never arrived": {paymenttest.PayoutDeaf, "P7", func(k *till, p *Payout) {
			heal(k)
			k.run(p)
			if got := k.fake.PayoutOf(p.PayoutNo); got.Calls != 0 {
				k.t.Errorf("sent again after %d calls, before the answer counted", got.Calls)
			}
			k.later(p, 3*time.Minute)
			k.run(p)
		}, "P8", Succeeded, 1, []string{"payout.succeeded"}, paid},
		"timeouts for ever": {paymenttest.PayoutDeaf, "P7", func(k *till, p *Payout) {
			for range 2 { // more, and the supplier's breaker opens
				k.run(p)
			}
			k.is("after many queries at once", p, "P7", Unknown, 0)
			k.later(p, 22*time.Hour)
			k.run(p)
			k.exceptions("given up", p, exception.PayoutStuck, 1)
			k.run(p)
		}, "P14", Stuck, 0, nil, away},
		"the answer is lost after acting": {paymenttest.PayoutLost, "P7", func(k *till, p *Payout) {
			heal(k)
			k.run(p)
		}, "P8", Succeeded, 1, []string{"payout.succeeded"}, paid},
		"wrong signature after acting": {paymenttest.PayoutWrong, "P7", func(k *till, p *Payout) {
			k.run(p)
			k.is("wrong again", p, "P7", Unknown, 1)
			heal(k)
			k.run(p)
		}, "P8", Succeeded, 1, []string{"payout.succeeded"}, paid},
		"unknown for ever": {paymenttest.PayoutVague, "P7", func(k *till, p *Payout) {
			k.later(p, 22*time.Hour)
			k.run(p)
		}, "P14", Stuck, 1, nil, away},
		"stuck, then the supplier says success": {paymenttest.PayoutVague, "P7", func(k *till, p *Payout) {
			k.later(p, 22*time.Hour)
			k.run(p)
			heal(k)
			k.run(p)
			k.exceptions("said", p, exception.PayoutStuck, 0)
		}, "P8", Succeeded, 1, []string{"payout.succeeded"}, paid},
		"processing, then success": {paymenttest.PayoutLazy, "P6", func(k *till, p *Payout) {
			k.fake.SetPayout(p.PayoutNo, supplier.PayoutSucceeded)
			k.run(p)
		}, "P8", Succeeded, 1, []string{"payout.succeeded"}, paid},
		"processing, then failed": {paymenttest.PayoutLazy, "P6", func(k *till, p *Payout) {
			k.fake.SetPayout(p.PayoutNo, supplier.PayoutFailed)
			k.run(p)
			k.is("early", p, "P6", Crediting, 0)
			k.later(p, 31*time.Minute)
			k.run(p)
		}, "P11", Reversed, 0, []string{"payout.failed"}, back},
		"failed, and no query confirms it": {paymenttest.PayoutLazy, "P6", func(k *till, p *Payout) {
			k.fake.SetPayout(p.PayoutNo, supplier.PayoutFailed)
			k.run(p)
			k.fake.OnPayout(func(supplier.Payout) paymenttest.PayoutFault { return paymenttest.PayoutVague })
			k.later(p, 31*time.Minute)
			k.run(p)
			k.is("an answer that says nothing", p, "P7", Unknown, 0)
			heal(k)
			k.run(p)
		}, "P11", Reversed, 0, []string{"payout.failed"}, back},
		"processing for days": {paymenttest.PayoutLazy, "P6", func(k *till, p *Payout) {
			k.later(p, 48*time.Hour)
			k.run(p)
			k.exceptions("slow", p, exception.PayoutStuck, 1)
		}, "P6", Crediting, 0, nil, away},
		"short of funds, then paid": {paymenttest.PayoutShort, "P6", func(k *till, p *Payout) {
			k.exceptions("short", p, exception.SupplierShort, 1)
			heal(k)
			k.run(p)
			k.is("not before half an hour", p, "P6", Crediting, 0)
			k.later(p, 31*time.Minute)
			k.run(p)
			k.exceptions("paid", p, exception.SupplierShort, 0)
		}, "P8", Succeeded, 1, []string{"payout.succeeded"}, paid},
		"short of funds for three days": {paymenttest.PayoutShort, "P6", func(k *till, p *Payout) {
			for range 3 {
				k.later(p, 25*time.Hour)
				k.run(p)
			}
			k.is("not yet", p, "P6", Crediting, 0)
			k.later(p, 31*time.Minute)
			k.run(p)
		}, "P11", Reversed, 0, []string{"payout.failed"}, back},
		"returned at once": {paymenttest.PayoutLazy, "P6", func(k *till, p *Payout) {
			k.fake.SetPayout(p.PayoutNo, supplier.PayoutSucceeded)
			k.fake.SetPayout(p.PayoutNo, supplier.PayoutReturned)
			k.run(p)
			k.exceptions("returned", p, exception.PayoutReturned, 1)
		}, "P11", Reversed, 1, []string{"payout.succeeded", "payout.returned"}, back},
		"returned after success": {"", "P8", func(k *till, p *Payout) {
			k.fake.SetPayout(p.PayoutNo, supplier.PayoutReturned)
			k.callback(p)
			k.run(p)
			k.exceptions("returned", p, exception.PayoutReturned, 1)
		}, "P11", Reversed, 1, []string{"payout.succeeded", "payout.returned"}, back},
		"failed after success": {"", "P8", func(k *till, p *Payout) {
			k.fake.SetPayout(p.PayoutNo, supplier.PayoutFailed)
			k.callback(p)
			k.run(p)
			k.exceptions("contradicted", p, exception.PayoutReturned, 1)
		}, "P8", Succeeded, 1, []string{"payout.succeeded"}, paid},
		"it arrives after its reversal": {paymenttest.PayoutNo, "P6", func(k *till, p *Payout) {
			k.later(p, 31*time.Minute)
			k.run(p)
			k.is("reversed", p, "P11", Reversed, 0, "payout.failed")
			k.fake.SetPayout(p.PayoutNo, supplier.PayoutSucceeded)
			k.run(p)
			k.exceptions("late", p, exception.PayoutAfterReversal, 1)
			k.Want(k.t, 0, "SELECT count(*) FROM compensations WHERE subject_id = ? AND state = 'waiting'", p.ID)
		}, "P15", Reversed, 1, []string{"payout.failed"}, [4]int64{all - sum, 0, sum - all, 0}},
		"asked for a week after its reversal": {paymenttest.PayoutNo, "P6", func(k *till, p *Payout) {
			for range 7 {
				k.later(p, 23*time.Hour)
				if r := k.run(p); r.IsDone() {
					k.t.Errorf("no longer queried: %+v", r)
				}
			}
			k.later(p, 48*time.Hour)
			if r := k.run(p); !r.IsDone() {
				k.t.Errorf("still queried after a week: %+v", r)
			}
		}, "P11", Reversed, 0, []string{"payout.failed"}, back},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(k *till) {
				k.fee = cost
				k.fund("m1", all)
				p := k.mustCreate(sum)
				k.balances("debited", all-sum-cost, sum, -all, cost)
				k.is("debited", p, "P5", Crediting, 0)
				k.fake.OnPayout(func(supplier.Payout) paymenttest.PayoutFault { return c.fault })
				k.run(p)
				if got := k.reload(p); cellOf(got.Status, got.Steps) != c.first {
					t.Errorf("after the call it is %s (%+v), want %s", got.Status, got.Steps, c.first)
				}
				if c.then != nil {
					c.then(k, p)
				}
				k.is("end", p, c.cell, c.status, c.moved, c.told...)
				k.balances("end", c.balance[0], c.balance[1], c.balance[2], c.balance[3])
				k.keys(p)
			})
		})
	}
}

// callback takes a message of the supplier that names a payout.
func (k *till) callback(p *Payout) {
	k.t.Helper()
	m := k.Callback(p.PayoutNo, "T-"+p.PayoutNo+k.Out(), p.Amount)
	m.Supplier = k.Entry(k.t, "f1")
	m.Content.Status = supplier.Other
	out, err := k.Processor.Submit(k.t.Context(), m)
	if err != nil || out.Name == exception.UnknownOrder {
		k.t.Fatalf("%v %+v", err, out)
	}
}

// keys checks that no key of a payout's steps has left the house, and that there is one of each.
func (k *till) keys(p *Payout) {
	k.t.Helper()
	k.Want(k.t, 0, "SELECT count(*) FROM supplier_calls WHERE call_key LIKE '%:%' OR reference <> ?", p.PayoutNo)
	k.Want(k.t, 0, "SELECT count(*) FROM fund_steps WHERE payout_id = ? AND key NOT IN (?, ?, ?)", p.ID, p.PayoutNo+":D", p.PayoutNo+":C",
		p.PayoutNo+":R")
	k.Want(k.t, 0, "SELECT count(*) FROM supplier_calls WHERE request LIKE ? OR answer LIKE ?", "%"+secret+"%", "%"+secret+"%")
}

// The supplier may forget numbers: a payout that it does not find is never sent again.
func TestANumberThatIsNotKnownForLifeIsSentOnce(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		k.fake.PayoutRepeat = false
		if err := k.Settings.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		k.fund("m1", all)
		p := k.mustCreate(sum)
		k.fake.OnPayout(func(supplier.Payout) paymenttest.PayoutFault { return paymenttest.PayoutDeaf })
		k.run(p)
		k.fake.OnPayout(func(supplier.Payout) paymenttest.PayoutFault { return paymenttest.PayoutOnce })
		for range 5 {
			k.later(p, 24*time.Hour)
			k.run(p)
		}
		k.is("not found", p, "P14", Stuck, 0)
		if got := k.fake.PayoutOf(p.PayoutNo); got.Calls != 0 || got.Queried != 5 {
			t.Errorf("%+v", got)
		}
		k.balances("not found", all-sum, sum, -all, 0)
	})
}

// A crash at each point between two commits: the next run goes on from what is stored.
func TestACrashLosesNothingAndPaysOnce(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		k.fund("m1", 5*sum)
		entry := k.Entry(t, "f1")
		// After the commit that it may have been sent, before the call.
		p := k.mustCreate(sum)
		if _, err := k.m.submit(t.Context(), p.ID, entry); err != nil {
			t.Fatal(err)
		}
		k.run(p) // not found, too early
		k.is("before the call", p, "P6", Crediting, 0)
		k.later(p, 3*time.Minute)
		k.run(p)
		k.is("before the call, then", p, "P8", Succeeded, 1, "payout.succeeded")
		k.balances("before the call", 4*sum, 0, -4*sum, 0)

		// After the call, before its result is written.
		p = k.mustCreate(sum)
		sent, err := k.m.submit(t.Context(), p.ID, entry)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := k.m.call(t.Context(), sent.p, entry, "payout", sent.call); err != nil {
			t.Fatal(err)
		}
		k.is("after the call", p, "P6", Crediting, 1)
		k.run(p)
		k.is("after the call, then", p, "P8", Succeeded, 1, "payout.succeeded")
		k.balances("after the call", 3*sum, 0, -3*sum, 0)

		// After the result is written, before the compensation has ended: it runs again.
		k.exec("UPDATE compensations SET state = 'waiting' WHERE subject_id = ?", p.ID)
		if got := k.run(p); got.Class != compensation.Over {
			t.Errorf("again: %+v", got)
		}
		k.is("again", p, "P8", Succeeded, 1, "payout.succeeded")

		// P2, P3: approved, and the debit was lost.
		p = k.approvedAlone()
		k.is("approved", p, "P2", Approved, 0)
		k.run(p)
		k.is("approved, then", p, "P8", Succeeded, 1, "payout.succeeded")
		k.balances("approved, then", 2*sum, 0, -2*sum, 0)

		// The same, and meanwhile the merchant has spent its money.
		p = k.approvedAlone()
		k.mustCreate(2 * sum)
		k.run(p)
		if got := k.is("nothing left", p, "P4", Failed, 0, "payout.failed"); got.Failure != "insufficient_balance" {
			t.Errorf("it failed for %q", got.Failure)
		}

		// P9: it failed for certain, and the reversal was lost.
		k.fund("m1", sum)
		p = k.mustCreate(sum)
		k.apply(p, Sent, Refused)
		k.is("refused", p, "P9", Reversing, 0)
		k.run(p)
		k.is("refused, then", p, "P11", Reversed, 0, "payout.failed")
		if got := k.balance("merchant:m1"); got != sum {
			t.Errorf("the merchant has %d", got)
		}

		// P12: another entry has the reference of the reversal, until two people decide.
		p = k.mustCreate(sum)
		odd := fact.Entry(fact.PayoutReversal, fact.Values{ID: p.key(), Merchant: "m2", Supplier: "f1", Amount: 1, Currency: "CNY"})
		k.post(odd)
		k.apply(p, Sent, Refused)
		k.run(p)
		k.is("not booked", p, "P12", Stuck, 0)
		k.exceptions("not booked", p, exception.PayoutStuck, 1)
		k.resolve(p, resolution{"failed", "the statement of today"}, approval.Done)
		k.is("resolved", p, "P11", Reversed, 0, "payout.failed")
	})
}

// apply applies events as a program would that commits after each.
func (k *till) apply(p *Payout, all ...Event) {
	k.t.Helper()
	for _, e := range all {
		err := k.DB.Tx(k.t.Context(), func(ctx context.Context, tx db.Tx) error {
			q, err := k.m.lock(ctx, tx, p.ID)
			if err != nil {
				return err
			}
			x := k.m.begin(tx)
			return errors.Join(x.do(q, booking.Cause{Actor: "test"}, e), x.Send(ctx))
		})
		if err != nil {
			k.t.Fatal(err)
		}
	}
}

// approvedAlone returns a payout whose approval is committed and whose debit is lost.
func (k *till) approvedAlone() *Payout {
	k.t.Helper()
	auto := k.limit.Auto
	k.limit.Auto = 0
	p := k.mustCreate(sum)
	k.limit.Auto = auto
	k.apply(p, Approve)
	err := k.DB.Tx(k.t.Context(), func(ctx context.Context, tx db.Tx) error {
		x := k.m.begin(tx)
		x.Items = append(x.Items, k.m.item(p, compensation.SupplierUnknown, "test"))
		return x.Send(ctx)
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return p
}

// naive is a program that reverses a payout when a call times out: the control.
func TestReversingOnATimeoutPaysTwice(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		k.fund("m1", all)
		p := k.mustCreate(sum)
		k.fake.OnPayout(func(supplier.Payout) paymenttest.PayoutFault { return paymenttest.PayoutLost })
		k.run(p)
		k.fake.OnPayout(nil)
		err := k.m.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			q, err := k.m.lock(ctx, tx, p.ID)
			if err != nil {
				return err
			}
			x := k.m.begin(tx)
			if _, err := x.fail(ctx, q, booking.Cause{Actor: "naive"}); err != nil {
				return err
			}
			return x.Send(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		if k.fake.PayoutOf(p.PayoutNo).Moved != 1 || k.balance("merchant:m1") != all {
			t.Error("the control pays once, so the tests above prove nothing")
		}
	})
}

func TestTheMovesOfAPayout(t *testing.T) {
	t.Parallel()
	movestest.Check(t, Moves, `
		          created approved rejected cancelled debiting crediting unknown succeeded failed reversing reversed stuck
		created   .       x        x        x         .        .         .       .         .      .         .        .
		approved  .       .        .        x         x        .         .       .         .      .         .        .
		rejected  .       .        .        .         .        .         .       .         .      .         .        .
		cancelled .       .        .        .         .        .         .       .         .      .         .        .
		debiting  .       .        .        .         .        x         .       .         x      .         .        .
		crediting .       .        .        .         .        .         x       x         .      x         .        x
		unknown   .       .        .        .         .        .         .       x         .      x         .        x
		succeeded .       .        .        .         .        .         .       .         .      x         .        .
		failed    .       .        .        .         .        .         .       .         .      .         .        .
		reversing .       .        .        .         .        .         .       .         .      .         x        x
		reversed  .       .        .        .         .        .         .       .         .      .         x        .
		stuck     .       .        .        .         .        .         .       x         .      x         .        .
	`)
}

func TestTheViewShowsNoNumber(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		k.fund("m1", all)
		p := k.mustCreate(sum)
		raw, err := json.Marshal(k.m.ViewOf(k.reload(p)))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			`"account":{"code":"main","kind":"bank_card","holder":"Li","number":"•••• 2233","bank":"ICBC"}`,
			`"debit":"success","credit":"init","reversal":null`, `"merchant":"m1","supplier":"f1"`,
		} {
			if !strings.Contains(string(raw), want) {
				t.Errorf("%s lacks %s", raw, want)
			}
		}
		if k.book.opened != 0 {
			t.Errorf("the number was opened %d times without a call", k.book.opened)
		}
		k.run(p)
		if k.book.opened != 1 || k.fake.PayoutOf(p.PayoutNo).Payee.Number != secret {
			t.Errorf("opened %d times", k.book.opened)
		}
	})
}
