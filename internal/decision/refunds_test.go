package decision_test

import (
	"errors"
	"fmt"
	"testing"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/compensation"
	"backstop/internal/compensation/replaycall"
	"backstop/internal/decision"
	"backstop/internal/exception"
	"backstop/internal/fund/refund"
	"backstop/internal/order"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/settings"
	"backstop/internal/supplier"
)

// run runs the open compensation of a refund once.
func (k *office) run(r *refund.Refund) compensation.Result {
	k.t.Helper()
	var item compensation.Item
	if err := k.DB.NewRaw("SELECT * FROM compensations WHERE subject_id = ? AND state = 'waiting'", r.ID).Scan(k.t.Context(),
		&item); err != nil {
		k.t.Fatal(err)
	}
	result := replaycall.Kind(replaycall.Subjects{refund.Op: k.refunds.Subject()}).Run(k.t.Context(), item)
	if result.IsDone() {
		k.exec("UPDATE compensations SET state = 'done', next_at = NULL WHERE id = ?", item.ID)
	}
	return result
}

// unclear returns a refund of 700 that a day of calls has left unknown, and its exception. The
// supplier says that it does not find it.
func (k *office) unclear() (*refund.Refund, *exception.Item) {
	k.t.Helper()
	k.auto = 100_000
	defer func() { k.auto = 0 }()
	o := k.order(order.Paid, "f1")
	r, _, err := k.refunds.Create(k.t.Context(), k.M1, refund.Request{OrderNo: o.OrderNo, OutRefundNo: k.Out(), Amount: 700, Reason: "broken"})
	if err != nil {
		k.t.Fatal(err)
	}
	k.Fakes["f1"].OnRefund(func(supplier.Refund) paymenttest.RefundFault { return paymenttest.RefundVague })
	k.run(r)
	k.exec("UPDATE refunds SET first_call_at = first_call_at - ? WHERE id = ?", compensation.Daily.Microseconds(), r.ID)
	k.run(r)
	k.Fakes["f1"].OnRefund(nil)
	k.Fakes["f1"].SetRefund(r.RefundNo, supplier.RefundNotFound)
	x := k.newest(exception.RefundFailed)
	if r = k.reread(r); r.Status != refund.Unknown || x.Subject != r.RefundNo {
		k.t.Fatalf("the refund is %s, the exception about %s", r.Status, x.Subject)
	}
	return r, x
}

func (k *office) reread(r *refund.Refund) *refund.Refund {
	k.t.Helper()
	got, err := refund.ByNo(k.t.Context(), k.DB, r.RefundNo)
	if err != nil {
		k.t.Fatal(err)
	}
	return got
}

// resolving proposes an outcome for the refund of an exception.
func resolving(x *exception.Item, outcome string, more string) approval.Proposal {
	p := wish(decision.ResolveRefund, x.ID, `{"outcome":"`+outcome+`","evidence":"the statement of today"`+more+`}`)
	p.Amount = "7.00"
	return p
}

func TestARefundWithoutAClearAnswerIsResolvedByTwo(t *testing.T) {
	t.Parallel()
	each(t, func(k *office) {
		k.AddSKU(t, "tea", 100)
		for outcome, want := range map[string]struct {
			status  refund.Status
			key     string
			event   string
			outcome exception.Outcome
		}{
			"failed":    {refund.Failed, "R", "refund.failed", exception.RefundNotMade},
			"succeeded": {refund.Succeeded, "C", "refund.succeeded", exception.RefundMade},
		} {
			r, x := k.unclear()
			k.Want(t, 0, "SELECT count(*) FROM transfers WHERE ref IN (?, ?)", fmt.Sprintf("refund:%d:R", r.ID),
				fmt.Sprintf("refund:%d:C", r.ID))
			a := k.decided(resolving(x, outcome, ""))
			k.wantEnded(x, a, exception.Resolved, want.outcome)
			if got := k.reread(r); got.Status != want.status || got.FinishedAt == nil {
				t.Errorf("%s: the refund is %s", outcome, got.Status)
			}
			k.Want(t, 1, "SELECT count(*) FROM transfers WHERE ref = ?", fmt.Sprintf("refund:%d:%s", r.ID, want.key))
			k.Want(t, 1, "SELECT count(*) FROM transfers WHERE ref LIKE ? AND ref NOT LIKE '%:D'", fmt.Sprintf("refund:%d:%%", r.ID))
			k.Want(t, 1, "SELECT count(*) FROM deliveries WHERE subject_id = ? AND event_type = ?", r.ID, want.event)
			k.Want(t, 1,
				"SELECT count(*) FROM fund_history WHERE subject = 'refund' AND subject_id = ? AND to_status = ? AND source_kind = 'approval' AND source_id = ?",
				r.ID, want.status, a.ID)
			k.books()
			// Its compensation calls nobody any more.
			before := k.Fakes["f1"].RefundOf(r.RefundNo)
			if result := k.run(r); !result.IsDone() || k.Fakes["f1"].RefundOf(r.RefundNo) != before {
				t.Errorf("%s: the compensation says %+v", outcome, result)
			}
			if _, err := k.propose(access.Finance, resolving(x, outcome, "")); err == nil {
				t.Errorf("%s is decided again", outcome)
			}
			k.books()
		}
	})
}

func TestARefundIsNotResolvedAgainstTheSupplier(t *testing.T) {
	t.Parallel()
	each(t, func(k *office) {
		k.AddSKU(t, "tea", 100)
		_, x := k.unclear()
		no := x.Subject
		for _, c := range []struct {
			says    supplier.RefundState
			outcome string
		}{
			{supplier.RefundSucceeded, "failed"},
			{supplier.RefundFailed, "succeeded"},
			{supplier.RefundReturned, "succeeded"},
			{supplier.RefundShort, "succeeded"},
			{supplier.RefundProcessing, "failed"},
			{supplier.RefundProcessing, "succeeded"},
			{supplier.RefundAbnormal, "failed"},
			{supplier.RefundAbnormal, "succeeded"},
		} {
			k.Fakes["f1"].SetRefund(no, c.says)
			var live *approval.LiveError
			if a, err := k.propose(access.Lead, resolving(x, c.outcome, `,"unverified":true`)); !errors.As(err, &live) ||
				live.Answer != string(c.says) {
				t.Errorf("%s where the supplier says %s: %+v, %v", c.outcome, c.says, a, err)
			}
		}
		k.Want(t, 0, "SELECT count(*) FROM approvals")
		// It is queried again when the second person approves.
		k.Fakes["f1"].SetRefund(no, supplier.RefundNotFound)
		a, err := k.propose(access.Finance, resolving(x, "failed", ""))
		if err != nil {
			t.Fatal(err)
		}
		k.Fakes["f1"].SetRefund(no, supplier.RefundSucceeded)
		var live *approval.LiveError
		if _, err := k.approve(access.Lead, a); !errors.As(err, &live) {
			t.Errorf("approved against the supplier: %v", err)
		}
		k.Want(t, 1, "SELECT count(*) FROM refunds WHERE refund_no = ? AND status = 'unknown'", no)
		k.Want(t, 0, "SELECT count(*) FROM transfers WHERE ref LIKE 'refund:%:R' OR ref LIKE 'refund:%:C'")
		k.books()
	})
}

// The supplier's answer ends the refund while a proposal waits: the decision comes too late, even
// where it says the same.
func TestARefundThatEndedMeanwhileIsNotResolved(t *testing.T) {
	t.Parallel()
	each(t, func(k *office) {
		k.AddSKU(t, "tea", 100)
		r, x := k.unclear()
		a, err := k.propose(access.Finance, resolving(x, "succeeded", ""))
		if err != nil {
			t.Fatal(err)
		}
		k.Fakes["f1"].SetRefund(r.RefundNo, supplier.RefundSucceeded)
		k.run(r)
		if got := k.reread(r); got.Status != refund.Succeeded {
			t.Fatalf("the refund is %s", got.Status)
		}
		if end, err := k.approve(access.Lead, a); err == nil && end.State == approval.Done {
			t.Errorf("a refund that is over was resolved: %+v", end)
		}
		k.Want(t, 1, "SELECT count(*) FROM transfers WHERE ref LIKE 'refund:%:C'")
		k.Want(t, 1, "SELECT count(*) FROM fund_history WHERE subject = 'refund' AND to_status = 'succeeded'")
		k.books()
	})
}

func TestNobodyResolvesARefundAlone(t *testing.T) {
	t.Parallel()
	each(t, func(k *office) {
		k.AddSKU(t, "tea", 100)
		k.rules = settings.Rules{Above: map[string]settings.Above{"CNY": {Amount: 1_000_000}}}
		_, x := k.unclear()
		for _, c := range []struct{ field, params string }{
			{"params.outcome", `{"outcome":"kept","evidence":"e"}`},
			{"params.outcome", `{"evidence":"e"}`},
			{"params.evidence", `{"outcome":"failed"}`},
			{"params.evidence", `{"outcome":"failed","evidence":" "}`},
		} {
			p := resolving(x, "failed", "")
			p.Params = []byte(c.params)
			var field *act.FieldError
			if _, err := k.propose(access.Lead, p); !errors.As(err, &field) || field.Field != c.field {
				t.Errorf("%s: %v, want the field %s", c.params, err, c.field)
			}
		}
		a, err := k.propose(access.Lead, resolving(x, "failed", ""))
		if err != nil || a.State != approval.Waiting || a.SinglePerson {
			t.Fatalf("%+v %v", a, err)
		}
		if _, err := k.approve(access.Lead, a); err == nil {
			t.Error("its maker approved it")
		}
		if a, err = k.approve(access.Finance, a); err != nil || a.State != approval.Done {
			t.Errorf("%+v %v", a, err)
		}
		// Where the supplier does not answer, a lead takes the responsibility.
		_, x = k.unclear()
		k.Fakes["f1"].OnRefund(func(supplier.Refund) paymenttest.RefundFault { return paymenttest.RefundVague })
		var field *act.FieldError
		if _, err := k.propose(access.Finance, resolving(x, "succeeded", "")); !errors.As(err, &field) ||
			field.Field != "params.unverified" {
			t.Errorf("not verified, and not said so: %v", err)
		}
		if a, err = k.propose(access.Lead, resolving(x, "succeeded", `,"unverified":true`)); err != nil {
			t.Fatal(err)
		}
		if _, err := k.approve(access.Finance, a); err == nil {
			t.Error("finance approved what the supplier does not confirm")
		}
		if a, err = k.approve("lead2", a); err != nil || a.State != approval.Done {
			t.Errorf("%+v %v", a, err)
		}
		k.books()
	})
}
