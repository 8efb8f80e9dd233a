package payout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/exception"
	"backstop/internal/ledger"
	"backstop/internal/ledger/fact"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
)

func TestRequestsAreChecked(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		k.fund("m1", 10*sum)
		for field, change := range map[string]func(*Request){
			"amount":   func(r *Request) { r.Amount = 0 },
			"currency": func(r *Request) { r.Currency = "XXY" },
			"supplier": func(r *Request) { r.Supplier = "sp-main" },
			"account":  func(r *Request) { r.AccountCode = "other" },
		} {
			r := k.request(sum)
			change(&r)
			if _, _, err := k.m.Create(t.Context(), k.M1, r); !isField(err, field) {
				t.Errorf("%s: %v", field, err)
			}
		}
		free := k.request(sum)
		free.AccountCode, free.Free = "", &Free{supplier.PayeeBankCard, "Li", "6222020200119999", "ICBC"}
		if _, _, err := k.m.Create(t.Context(), k.M1, free); !isField(err, "account") {
			t.Errorf("another card: %v", err)
		}
		free.Free.Number = secret
		first, created, err := k.m.Create(t.Context(), k.M1, free)
		if err != nil || !created {
			t.Fatal(err)
		}
		for range 2 {
			if p, created, err := k.m.Create(t.Context(), k.M1, free); err != nil || created || p.PayoutNo != first.PayoutNo ||
				p.Debit != Success {
				t.Errorf("again: %v %v %+v", created, err, p)
			}
		}
		k.fake.PayoutCurrency = "USD"
		if _, _, err := k.m.Create(t.Context(), k.M1, k.request(sum)); !isField(err, "currency") {
			t.Errorf("in a currency that the supplier does not pay out: %v", err)
		}
		// What was asked for while the supplier took it is found all the same.
		if p, created, err := k.m.Create(t.Context(), k.M1, free); err != nil || created || p.PayoutNo != first.PayoutNo {
			t.Errorf("again, not acceptable any more: %v %v", created, err)
		}
		changed := free
		changed.Free = &Free{supplier.PayeeBankCard, "Li", "6222020200119999", "ICBC"}
		if _, _, err := k.m.Create(t.Context(), k.M1, changed); !isField(err, "currency") {
			t.Errorf("to another card, not acceptable any more: %v", err)
		}
		k.fake.PayoutCurrency = ""
		other := free
		other.Amount++
		if _, _, err := k.m.Create(t.Context(), k.M1, other); !errors.Is(err, ErrConflict) {
			t.Errorf("with different content: %v", err)
		}
		other = free
		other.Free = &Free{supplier.PayeeBankCard, "Li", "6222020200119999", "ICBC"}
		if _, _, err := k.m.Create(t.Context(), k.M1, other); !errors.Is(err, ErrConflict) {
			t.Errorf("to another card: %v", err)
		}
		k.Want(t, 1, "SELECT count(*) FROM payouts")

		var limit *LimitError
		k.limit = Limits{Auto: 100_000, Each: sum - 1}
		if _, err := k.create(sum); !errors.As(err, &limit) || limit.Field != "payout_each" {
			t.Errorf("above the limit of each: %v", err)
		}
		k.limit = Limits{Auto: 100_000, Day: 2*sum + 1}
		k.mustCreate(sum)
		if _, err := k.create(2); !errors.As(err, &limit) || limit.Field != "payout_day" || limit.Left != 1 {
			t.Errorf("above the limit of the day: %v", err)
		}
		k.mustCreate(1)
		k.exec("UPDATE payouts SET debited_at = debited_at - ?", (24 * time.Hour).Microseconds())
		k.mustCreate(sum) // the next day

		k.limit = Limits{Auto: 100_000}
		k.book.disabled = true
		if _, err := k.create(sum); !isField(err, "account") {
			t.Errorf("to a disabled account: %v", err)
		}
		k.book.disabled = false
		k.exec("INSERT INTO freezes (approval_id, merchant_id, currency, amount, at) VALUES (1, ?, 'USD', 0, 1)", k.M1.ID)
		if _, err := k.create(sum); !errors.Is(err, ErrFrozen) {
			t.Errorf("frozen: %v", err)
		}
		k.exec("UPDATE freezes SET lifted_at = 2")
		k.fee = 1
		if _, err := k.create(int64(k.balance("merchant:m1"))); !errors.Is(err, ledger.ErrInsufficient) {
			t.Errorf("nothing left for the fee: %v", err)
		}
		k.limit.Overdraft = 1
		k.mustCreate(k.balance("merchant:m1"))
		if _, err := k.create(1); !errors.Is(err, ledger.ErrInsufficient) {
			t.Errorf("below zero: %v", err)
		}
		if _, err := ByOut(t.Context(), k.DB, k.M2.ID, first.OutPayoutNo); !errors.Is(err, ErrNotFound) {
			t.Errorf("another merchant's: %v", err)
		}
	})
}

func isField(err error, field string) bool {
	f, ok := errors.AsType[*act.FieldError](err)
	return ok && f.Field == field
}

// rounds is the number of rounds of a race; make soak runs the full number.
func rounds() int {
	if os.Getenv("E2E_FULL") == "1" {
		return 1000
	}
	return 20
}

// race asks for 50 payouts of 100 at once and returns how many passed.
func (k *till) race(one func() error) int64 {
	var made atomic.Int64
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			switch err := dbtest.Repeat(one); {
			case err == nil:
				made.Add(1)
			case !errors.Is(err, ledger.ErrInsufficient):
				k.t.Error(err)
			}
		})
	}
	wg.Wait()
	return made.Load()
}

func TestFiftyAtOnceDrawTheBalanceExactly(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		for round := range rounds() {
			k.fund("m1", 1000)
			if n := k.race(func() error { _, err := k.create(100); return err }); n != 10 {
				t.Fatalf("round %d: %d payouts of 100 were made of a balance of 1000", round, n)
			}
			k.balances("after the race", 0, int64(round+1)*1000, -int64(round+1)*1000, 0)
		}
	})
}

// The control: a debit that reads the balance without its lock draws more than there is.
func TestWithoutTheLockMoreIsDrawnThanThereIs(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		if !k.DB.IsPostgres() { // SQLite has one writer: nothing can come between
			k.t.Skip("one writer")
		}
		var read atomic.Int64
		two := make(chan struct{})
		naive := func() error {
			return k.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				var has int64
				err := tx.NewRaw(
					"SELECT coalesce(sum(CASE WHEN c.id = t.credit_account THEN t.amount ELSE -t.amount END), 0) FROM transfers t JOIN accounts c ON c.id IN (t.credit_account, t.debit_account) WHERE c.code = 'merchant:m1'").Scan(ctx, &has)
				if err != nil {
					return err
				}
				if has < 100 {
					return ledger.ErrInsufficient
				}
				if read.Add(1) == 2 {
					close(two)
				}
				<-two // another one reads the same
				w := tx.Writes()
				e := fact.Entry(fact.PayoutDebit, fact.Values{
					ID: fmt.Sprint(k.DB.NewID()), Merchant: "m1", Supplier: "f1", Amount: 100,
					Currency: "CNY",
				})
				return errors.Join(k.Ledger.Post(ctx, tx, w, fact.Entries{e}), w.Exec(ctx))
			})
		}
		k.fund("m1", 100)
		if n := k.race(naive); n <= 1 {
			t.Errorf("the control pays %d times, so the test above proves nothing", n)
		}
	})
}

// Of payouts that wait for people, the limits and the balance are checked again at the debit.
func TestTwoPeopleDecide(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		k.limit = Limits{}
		k.fund("m1", all)
		p := k.mustCreate(sum)
		k.is("waits", p, "P1", Created, 0)
		k.balances("waits", all, 0, -all, 0)
		k.Want(t, 0, "SELECT count(*) FROM compensations WHERE subject_id = ?", p.ID)
		a := k.approval(p)
		if a.MakerKind != approval.ByMerchant || a.Maker != k.M1.ID {
			t.Errorf("%+v", a)
		}
		if a, err := k.desk.Approve(t.Context(), k.verdict(access.Lead, a)); err != nil || a.State != approval.Done {
			t.Fatalf("%v %+v", err, a)
		}
		k.is("approved", p, "P5", Crediting, 0)
		k.balances("approved", all-sum, sum, -all, 0)
		k.run(p)
		k.is("sent", p, "P8", Succeeded, 1, "payout.succeeded")

		rejected := k.mustCreate(sum)
		if _, err := k.desk.Reject(t.Context(), k.verdict(access.Lead, k.approval(rejected))); err != nil {
			t.Fatal(err)
		}
		k.is("rejected", rejected, "P2", Rejected, 0, "payout.failed")
		expired := k.mustCreate(sum)
		k.exec("UPDATE approvals SET expires_at = 1 WHERE id = ?", expired.ApprovalID)
		if n, err := k.desk.Expire(t.Context()); err != nil || n != 1 {
			t.Fatalf("%d %v", n, err)
		}
		k.is("expired", expired, "P2", Rejected, 0, "payout.failed")

		cancelled := k.mustCreate(sum)
		for range 2 {
			if p, err := k.m.Cancel(t.Context(), k.M1, cancelled.PayoutNo); err != nil || p.Status != Cancelled {
				t.Fatalf("%v %+v", err, p)
			}
		}
		k.Want(t, 1, "SELECT count(*) FROM approvals WHERE id = ? AND state = 'withdrawn'", cancelled.ApprovalID)
		k.is("cancelled", cancelled, "P2", Cancelled, 0)
		if _, err := k.m.Cancel(t.Context(), k.M1, p.PayoutNo); !errors.Is(err, ErrStarted) {
			t.Errorf("after the debit: %v", err)
		}
		if _, err := k.m.Cancel(t.Context(), k.M2, cancelled.PayoutNo); !errors.Is(err, ErrNotFound) {
			t.Errorf("another merchant's: %v", err)
		}

		// What changed while it waited ends it: P4.
		for word, change := range map[string]func(){
			"frozen": func() {
				k.exec("INSERT INTO freezes (approval_id, merchant_id, currency, amount, at) VALUES (1, ?, 'CNY', 0, 1)", k.M1.ID)
			},
			"account":     func() { k.book.disabled = true },
			"payout_each": func() { k.limit.Each = 1 },
			"payout_day":  func() { k.limit.Day = sum },
			"insufficient_balance": func() {
				k.post(fact.Entry(fact.Adjust, fact.Values{
					From: "merchant:m1", To: "bank:x", ID: k.Out(), Amount: all - sum,
					Currency: "CNY",
				}))
			},
		} {
			waits := k.mustCreate(sum)
			change()
			if a, err := k.desk.Approve(t.Context(), k.verdict(access.Lead, k.approval(waits))); err != nil || a.State != approval.Done {
				t.Fatalf("%s: %v %+v", word, err, a)
			}
			k.exec("DELETE FROM freezes")
			k.book.disabled, k.limit = false, Limits{}
			if word == "insufficient_balance" {
				k.fund("m1", all-sum)
			}
			if got := k.is(word, waits, "P4", Failed, 0, "payout.failed"); got.Failure != word {
				t.Errorf("%s: it failed for %q", word, got.Failure)
			}
		}
	})
}

func (k *till) approval(p *Payout) *approval.Approval {
	k.t.Helper()
	a, err := approval.Find(k.t.Context(), k.DB, k.reload(p).ApprovalID)
	if err != nil {
		k.t.Fatal(err)
	}
	return a
}

func (k *till) person(name string) act.Actor {
	k.t.Helper()
	id, err := access.IDOf(k.t.Context(), k.DB, name)
	if err != nil || id == 0 {
		k.t.Fatalf("%s: %v", name, err)
	}
	return act.Actor{ID: id, Name: "operator:" + name, Roles: access.RolesOf(name)}
}

func (k *till) verdict(name string, a *approval.Approval) approval.Verdict {
	k.t.Helper()
	return approval.Verdict{ID: a.ID, Hash: a.Hash, Reason: "looked at the statement", By: k.person(name)}
}

type resolution struct{ credit, evidence string }

// propose proposes how a stuck payout ended.
func (k *till) propose(p *Payout, r resolution) (*approval.Approval, error) {
	k.t.Helper()
	p = k.reload(p)
	return k.desk.Propose(k.t.Context(), approval.Proposal{
		Action: Resolve, Object: Object, ObjectID: p.PayoutNo, Params: fmt.Appendf(nil, `{"credit":%q,"evidence":%q}`, r.credit,
			r.evidence),
		Reason: "asked the supplier", Amount: act.Subject{Amount: p.Amount, Currency: p.Currency}.TypedAmount(),
		By: k.person(access.Finance),
	})
}

// resolve has two people decide how a stuck payout ended.
func (k *till) resolve(p *Payout, r resolution, want approval.State) {
	k.t.Helper()
	a, err := k.propose(p, r)
	if err != nil {
		k.t.Fatal(err)
	}
	if a, err = k.desk.Approve(k.t.Context(), k.verdict(access.Lead, a)); err != nil || a.State != want {
		k.t.Fatalf("%v %+v", err, a)
	}
}

func TestTwoPeopleEndAStuckPayout(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		k.fund("m1", 3*sum)
		stuck := func() *Payout {
			p := k.mustCreate(sum)
			k.fake.OnPayout(func(supplier.Payout) paymenttest.PayoutFault { return paymenttest.PayoutVague })
			k.run(p)
			k.later(p, 22*time.Hour)
			k.run(p)
			return p
		}
		p := stuck()
		if _, err := k.propose(p, resolution{"perhaps", "x"}); !isField(err, "params.credit") {
			t.Errorf("no answer: %v", err)
		}
		if _, err := k.propose(p, resolution{"failed", ""}); err == nil {
			t.Error("without evidence")
		}
		k.resolve(p, resolution{"success", "line 7 of the statement"}, approval.Done)
		k.is("it was paid", p, "P8", Succeeded, 1, "payout.succeeded")
		k.exceptions("it was paid", p, exception.PayoutStuck, 0)
		k.balances("it was paid", 2*sum, 0, -2*sum, 0)
		if _, err := k.propose(p, resolution{"failed", "line 7"}); err == nil {
			t.Error("decided although it is not stuck")
		}

		p = stuck()
		k.resolve(p, resolution{"failed", "not on the statement"}, approval.Done)
		k.is("it was not paid", p, "P11", Reversed, 1, "payout.failed")
		k.balances("it was not paid", 2*sum, 0, -2*sum, 0)

		// The supplier says otherwise.
		p = stuck()
		k.fake.OnPayout(nil)
		var live *approval.LiveError
		if _, err := k.propose(p, resolution{"failed", "not on the statement"}); !errors.As(err, &live) {
			t.Errorf("against the supplier's answer: %v", err)
		}
		k.is("it was paid, says the supplier", p, "P14", Stuck, 1)

		// It arrived and came back, says the supplier: that is booked as such, not as a failure.
		k.fake.SetPayout(p.PayoutNo, supplier.PayoutReturned)
		if _, err := k.propose(p, resolution{"failed", "not on the statement"}); !errors.As(err, &live) {
			t.Errorf("it came back: %v", err)
		}
		k.is("it came back, says the supplier", p, "P14", Stuck, 1)
		k.run(p)
		k.is("it came back", p, "P11", Reversed, 1, "payout.succeeded", "payout.returned")

		// It was not there when the statement was read. It is sent again before the second person
		// decides, and nobody can ask the supplier then.
		p = k.mustCreate(sum)
		k.fake.OnPayout(func(supplier.Payout) paymenttest.PayoutFault { return paymenttest.PayoutDeaf })
		k.run(p)
		k.later(p, 22*time.Hour)
		k.run(p)
		k.is("not sent", p, "P14", Stuck, 0)
		a, err := k.propose(p, resolution{"failed", "not on the statement"})
		if err != nil {
			t.Fatal(err)
		}
		k.fake.OnPayout(func(supplier.Payout) paymenttest.PayoutFault {
			if k.fake.PayoutOf(p.PayoutNo).Calls+k.fake.PayoutOf(p.PayoutNo).Queried < 3 {
				return "" // not found
			}
			return paymenttest.PayoutVague
		})
		k.run(p)
		k.is("sent again", p, "P14", Stuck, 1)
		if a, err = k.desk.Approve(k.t.Context(), k.verdict(access.Lead, a)); !errors.Is(err, act.ErrChanged) {
			t.Errorf("by a statement from before: %v %+v", err, a)
		}
		k.is("by a statement from before", p, "P14", Stuck, 1)
	})
}

// A message that names a payout makes its query due now, whatever it says.
func TestAMessageAboutAPayoutMakesItsQueryDue(t *testing.T) {
	t.Parallel()
	each(t, func(k *till) {
		k.fund("m1", all)
		p := k.mustCreate(sum)
		k.fake.OnPayout(func(supplier.Payout) paymenttest.PayoutFault { return paymenttest.PayoutLazy })
		k.run(p)
		later := "SELECT count(*) FROM compensations WHERE subject_id = ? AND next_at > ?"
		k.Want(t, 1, later, p.ID, k.DB.Now())
		k.callback(p)
		k.Want(t, 0, later, p.ID, k.DB.Now())
		k.is("told", p, "P6", Crediting, 0)
		k.Want(t, 0, "SELECT count(*) FROM exceptions")
		k.fake.SetPayout(p.PayoutNo, supplier.PayoutSucceeded)
		k.run(p)
		k.callback(p) // of an ended one: it is queried once more
		k.run(p)
		k.is("told again", p, "P8", Succeeded, 1, "payout.succeeded")
		k.Want(t, 0, "SELECT count(*) FROM compensations WHERE subject_id = ? AND state = 'waiting'", p.ID)
	})
}
