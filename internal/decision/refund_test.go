package decision_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/decision"
	"backstop/internal/fund/refund"
	"backstop/internal/ledger"
	"backstop/internal/order"
)

// refundWish proposes to refund an amount of an order.
func refundWish(o *order.Order, minor int64, typed string) approval.Proposal {
	p := wish(decision.Refund, o.OrderNo, fmt.Sprintf(`{"amount":%d}`, minor))
	p.Object, p.Amount, p.Version = decision.OfOrder, typed, o.Version
	return p
}

func (k *office) refund(a *approval.Approval) *refund.Refund {
	k.t.Helper()
	r, err := refund.ByNo(context.Background(), k.DB, a.ObjectID)
	if err != nil {
		k.t.Fatal(err)
	}
	return r
}

func (k *office) available() int64 {
	k.t.Helper()
	all, err := ledger.Current(context.Background(), k.DB, "a.code = ?", ledger.MerchantAccount(k.M1.Code))
	if err != nil || len(all) != 1 {
		k.t.Fatalf("%v %v", all, err)
	}
	return all[0].Balance
}

// An operator's refund holds its money when it is proposed, and always waits for a second person.
func TestAnOperatorsRefundHoldsItsMoneyAndWaitsForASecondPerson(t *testing.T) {
	t.Parallel()
	each(t, func(k *office) {
		k.rules.SecondPerson = false // which never lets one person refund alone
		k.AddSKU(t, "tea", 100)
		o := k.order(order.Paid, "f1")
		before := k.available()
		a, err := k.propose(access.Finance, refundWish(o, 500, "5.00"))
		if err != nil || a.State != approval.Waiting || a.Object != refund.Object || a.Amount != 500 || a.Currency != "CNY" ||
			a.OrderNo != o.OrderNo || !a.Second || a.SinglePerson {
			t.Fatalf("%v %+v", err, a)
		}
		r := k.refund(a)
		if r.Status != refund.Requested || r.ApprovalID != a.ID || r.ByRule || r.Amount != 500 || r.OutRefundNo != "" ||
			k.available() != before-500 {
			t.Errorf("%+v, available %d of %d", r, k.available(), before)
		}
		if _, err := k.approve(access.Finance, a); !errors.Is(err, approval.ErrSelfApproval) {
			t.Errorf("approved by its maker: %v", err)
		}
		second, err := k.propose(access.Lead, refundWish(o, 1499, "14.99")) // all that is left
		if err != nil {
			t.Fatal(err)
		}
		if exceeds, ok := errors.AsType[*refund.ExceedsError](k.tries(refundWish(o, 1, "0.01"))); !ok || exceeds.Refundable != 0 {
			t.Errorf("more than is left: %v", exceeds)
		}
		if a, err = k.approve(access.Lead, a); err != nil || a.State != approval.Done {
			t.Fatalf("%v %+v", err, a)
		}
		if r = k.refund(a); r.Status != refund.Approved {
			t.Errorf("%+v", r)
		}
		k.Want(t, 1, "SELECT count(*) FROM compensations WHERE subject_id = ? AND subject_kind = 'refund'", r.ID)
		k.Want(t, 1,
			"SELECT count(*) FROM fund_history WHERE subject = 'refund' AND subject_id = ? AND from_status = '' AND actor = 'operator:finance' AND source_kind = 'approval' AND source_id = ?", r.ID, a.ID)
		k.Want(t, 1, "SELECT count(*) FROM fund_history WHERE subject = 'refund' AND subject_id = ? AND to_status = 'approved' AND actor = 'operator:lead'", r.ID)

		// Withdrawn by its maker, the money goes back; the order can be refunded again.
		if _, err := k.desk.Withdraw(t.Context(), approval.Verdict{
			ID: second.ID, Reason: "the buyer keeps it",
			By: k.person(access.Lead),
		}); err != nil {
			t.Fatal(err)
		}
		if r := k.refund(second); r.Status != refund.Rejected || k.available() != before-500 {
			t.Errorf("withdrawn: %+v, available %d of %d", r, k.available(), before)
		}
		third, err := k.propose(access.Finance, refundWish(o, 1499, "14.99"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.desk.Reject(t.Context(), approval.Verdict{
			ID: third.ID, Hash: third.Hash, Reason: "not agreed with the merchant",
			By: k.person(access.Lead),
		}); err != nil {
			t.Fatal(err)
		}
		if r := k.refund(third); r.Status != refund.Rejected || k.available() != before-500 {
			t.Errorf("rejected: %+v, available %d of %d", r, k.available(), before)
		}
		k.books()
	})
}

// tries proposes as finance and returns the error.
func (k *office) tries(p approval.Proposal) error {
	_, err := k.propose(access.Finance, p)
	return err
}

// What cannot be refunded is refused, and changes nothing.
func TestARefundThatCannotBeIsNotProposed(t *testing.T) {
	t.Parallel()
	each(t, func(k *office) {
		k.AddSKU(t, "tea", 100)
		o, unpaid := k.order(order.Paid, "f1"), k.order(order.Paying, "f1")
		field := func(p approval.Proposal, name string) func() error {
			return func() error {
				err := k.tries(p)
				if f, ok := errors.AsType[*act.FieldError](err); !ok || f.Field != name {
					t.Errorf("%s: %v", name, err)
				}
				return err
			}
		}
		stale := refundWish(o, 500, "5.00")
		stale.Version++
		unknown := refundWish(o, 500, "5.00")
		unknown.Params = []byte(`{"amount":500,"reference":"x"}`)
		k.unchanged("a refund", map[string]func() error{
			"with another amount typed": field(refundWish(o, 500, "5"), "amount"),
			"of nothing":                field(refundWish(o, 0, "0.00"), "params.amount"),
			"below zero":                field(refundWish(o, -5, "-0.05"), "params.amount"),
			"with an unknown parameter": field(unknown, "params.reference"),
			"of an unpaid order":        field(refundWish(unpaid, 500, "5.00"), "action"),
			"of too much":               func() error { return k.tries(refundWish(o, 2000, "20.00")) },
			"of an older version":       func() error { return k.tries(stale) },
			"by ops":                    func() error { _, err := k.propose(access.Ops, refundWish(o, 500, "5.00")); return err },
		})
		k.exec("UPDATE orders SET paid_at = 1 WHERE id = ?", o.ID)
		k.unchanged("after the window", map[string]func() error{"a refund": field(refundWish(o, 500, "5.00"), "action")})
	})
}
