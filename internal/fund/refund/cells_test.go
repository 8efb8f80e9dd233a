package refund

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"backstop/internal/approval"
	"backstop/internal/ledger/fact"
	"backstop/internal/order"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
)

// everyCell is every status of a refund with every outcome of its next calls: the status that
// follows, and how often the supplier's money moved.
const everyCell = `
	          success     failure    unknown     timeout     lost        signature   returned    crash
	requested requested.0 requested.0 requested.0 requested.0 requested.0 requested.0 requested.0 requested.0
	approved  succeeded.1 failed.0   unknown.1   unknown.0   unknown.1   unknown.1   returned.1  succeeded.1
	rejected  rejected.0  rejected.0 rejected.0  rejected.0  rejected.0  rejected.0  rejected.0  rejected.0
	cancelled cancelled.0 cancelled.0 cancelled.0 cancelled.0 cancelled.0 cancelled.0 cancelled.0 cancelled.0
	submitted succeeded.1 failed.0   unknown.1   unknown.0   unknown.1   unknown.1   returned.1  succeeded.1
	unknown   succeeded.1 failed.0   unknown.1   unknown.0   unknown.1   unknown.1   returned.1  succeeded.1
	succeeded succeeded.1 returned.1 succeeded.1 succeeded.1 succeeded.1 succeeded.1 returned.1  returned.1
	failed    failed.0    failed.0   failed.0    failed.0    failed.0    failed.0    failed.0    failed.0
	returned  returned.1  returned.1 returned.1  returned.1  returned.1  returned.1  returned.1  returned.1
`

func TestEveryStatusMeetsEveryOutcome(t *testing.T) {
	t.Parallel()
	rows := strings.Split(strings.TrimSpace(everyCell), "\n")
	outcomes, seen := strings.Fields(rows[0]), map[Status]bool{}
	for _, row := range rows[1:] {
		cells := strings.Fields(row)
		seen[Status(cells[0])] = true
		t.Run(cells[0], func(t *testing.T) {
			t.Parallel()
			each(t, func(k *till) {
				for i, outcome := range outcomes {
					k.meets(Status(cells[0]), outcome, cells[i+1])
				}
			})
		})
	}
	for _, s := range Moves.Rows {
		if !seen[s.Status] {
			t.Errorf("%s is not tried", s.Status)
		}
	}
}

// meets brings a refund to a status, lets its next calls end in an outcome, and checks what follows.
func (k *till) meets(from Status, outcome, want string) {
	k.t.Helper()
	what := string(from) + ", " + outcome
	k.run(k.mustCreate(k.paid(), 1)) // a healthy call, so that the supplier's breaker stays closed
	o := k.paid()
	r := k.at(from, o)
	before := k.reload(r)
	if before.Status != from {
		k.t.Fatalf("%s: it begins as %s", what, before.Status)
	}
	k.ends(o, r, outcome, before.FirstCallAt == nil)

	got, truth := k.reload(r), k.fake.RefundOf(r.RefundNo)
	if is := fmt.Sprintf("%s.%d", got.Status, truth.Moved); is != want {
		k.t.Errorf("%s: it ends as %s, want %s", what, is, want)
		return
	}
	if truth.Calls > 1 {
		k.t.Errorf("%s: it was sent %d times", what, truth.Calls)
	}
	if slices.Contains([]Status{Requested, Rejected, Cancelled}, got.Status) && truth.Calls+truth.Queried > 0 {
		k.t.Errorf("%s: the supplier was called about it", what)
	}
	facts := map[Status][]fact.Name{
		Succeeded: {fact.RefundHeld, fact.RefundDone}, Failed: {fact.RefundHeld, fact.RefundBack},
		Rejected:  {fact.RefundHeld, fact.RefundBack},
		Cancelled: {fact.RefundHeld, fact.RefundBack}, Returned: {fact.RefundHeld, fact.RefundDone, fact.RefundReturned, fact.RefundBack},
	}[got.Status]
	if facts == nil {
		facts = []fact.Name{fact.RefundHeld}
	}
	k.same(what+": entries", "SELECT ref FROM transfers WHERE ref LIKE ?", "refund:"+r.key()+":%", func() (all []string) {
		for _, f := range facts {
			all = append(all, fact.Ref(f, fact.Values{ID: r.key()}))
		}
		return all
	}())
	k.same(what+": notifications", "SELECT event_type FROM deliveries WHERE subject_id = ?", r.ID, map[Status][]string{
		Succeeded: {"refund.succeeded"}, Failed: {"refund.failed"}, Rejected: {"refund.failed"},
		Returned: {"refund.succeeded", "refund.failed"},
	}[got.Status])
	sum := int64(0)
	if got.Status == Succeeded {
		sum = r.Amount
	}
	k.Want(k.t, sum, "SELECT refunded_amount FROM orders WHERE id = ?", o.ID)
}

// same compares texts of the database with what they should be, in any order.
func (k *till) same(what, query string, arg any, want []string) {
	k.t.Helper()
	var got []string
	if err := k.DB.NewRaw(query, arg).Scan(k.t.Context(), &got); err != nil {
		k.t.Fatal(err)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		k.t.Errorf("%s are %v, want %v", what, got, want)
	}
}

// at returns a refund in a status. One that was sent and has not ended is being processed by its
// supplier.
func (k *till) at(status Status, o *order.Order) *Refund {
	k.t.Helper()
	faulty := func(r *Refund, fault paymenttest.RefundFault) {
		k.fake.OnRefund(func(supplier.Refund) paymenttest.RefundFault { return fault })
		k.run(r)
		k.fake.OnRefund(nil)
	}
	limit := k.limit
	if slices.Contains([]Status{Requested, Rejected, Cancelled}, status) {
		k.limit.Auto = 0
	}
	r := k.mustCreate(o, 700)
	k.limit = limit
	switch status {
	case Rejected:
		a, err := approval.Find(k.t.Context(), k.DB, r.ApprovalID)
		if err == nil {
			_, err = k.desk.Reject(k.t.Context(), k.verdict("lead", a))
		}
		if err != nil {
			k.t.Fatal(err)
		}
	case Cancelled:
		if _, err := k.m.Cancel(k.t.Context(), k.M1, r.RefundNo); err != nil {
			k.t.Fatal(err)
		}
	case Submitted:
		faulty(r, paymenttest.RefundLazy)
	case Unknown:
		faulty(r, paymenttest.RefundLazy)
		faulty(r, paymenttest.RefundVague)
	case Failed:
		faulty(r, paymenttest.RefundNo)
	case Succeeded:
		k.run(r)
	case Returned:
		k.run(r)
		k.fake.SetRefund(r.RefundNo, supplier.RefundReturned)
		k.turn(o, r)
	}
	return r
}

// ends lets the next calls about a refund end in an outcome. unsent = none was made yet.
func (k *till) ends(o *order.Order, r *Refund, outcome string, unsent bool) {
	k.t.Helper()
	truth := func(all ...supplier.RefundState) {
		if is := k.fake.RefundOf(r.RefundNo).State; unsent || is != supplier.RefundProcessing && is != supplier.RefundSucceeded {
			return // it decides when it is called, or has decided
		}
		for _, s := range all {
			k.fake.SetRefund(r.RefundNo, s)
		}
	}
	fails := func(fault paymenttest.RefundFault) {
		k.fake.OnRefund(func(supplier.Refund) paymenttest.RefundFault { return fault })
		k.turn(o, r)
		k.fake.OnRefund(nil)
	}
	switch outcome {
	case "success":
		truth(supplier.RefundSucceeded)
		k.turn(o, r)
	case "failure":
		truth(supplier.RefundFailed)
		fails(paymenttest.RefundNo)
	case "timeout":
		fails(paymenttest.RefundDeaf)
	case "returned":
		if unsent {
			k.turn(o, r)
			unsent = k.fake.RefundOf(r.RefundNo).Calls == 0
		}
		truth(supplier.RefundSucceeded, supplier.RefundReturned)
		k.turn(o, r)
	case "crash": // after the supplier has acted
		if k.fake.RefundOf(r.RefundNo).State == supplier.RefundSucceeded {
			truth(supplier.RefundReturned) // there is nothing else to learn
		} else {
			truth(supplier.RefundSucceeded)
		}
		k.fake.OnAnswered(runtime.Goexit)
		ended := make(chan bool)
		go func() {
			defer close(ended)
			k.turn(o, r)
		}()
		<-ended
		k.fake.OnAnswered(nil)
		k.turn(o, r)
	default:
		truth(supplier.RefundSucceeded)
		fails(map[string]paymenttest.RefundFault{
			"unknown": paymenttest.RefundVague, "lost": paymenttest.RefundLost,
			"signature": paymenttest.RefundWrong,
		}[outcome])
	}
}

// turn has the supplier name the refund in a message, and runs what is due then.
func (k *till) turn(o *order.Order, r *Refund) {
	k.t.Helper()
	k.says(o, "named "+k.Out(), r.Amount, func(c *supplier.Callback) {
		c.Status, c.RawStatus, c.RefundNo = supplier.Unknown, "refund.updated", r.RefundNo
	})
	if k.Count(k.t, "SELECT count(*) FROM compensations WHERE subject_kind = 'refund' AND subject_id = ? AND state = 'waiting'", r.ID) > 0 {
		k.run(r)
	}
}
