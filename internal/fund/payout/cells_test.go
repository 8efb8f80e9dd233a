package payout

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/ledger/fact"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/supplier"
)

// outcomes are what may become of the next calls about a payout, in the order of the table below.
var outcomes = []string{"success", "failure", "unknown", "timeout", "lost", "signature", "returned", "crash"}

// Every cell of a payout's steps meets every outcome of its next calls: the cell that follows, and
// how often the supplier's money moved. A cell with a word after it has that status.
const everyCell = `
	                success failure unknown timeout lost    signature returned crash
	P1              P1.0    P1.0    P1.0    P1.0    P1.0    P1.0      P1.0     P1.0
	P2:approved     P8.1    P11.0   P7.1    P7.0    P7.1    P7.1      P11.1    P8.1
	P2:rejected     P2.0    P2.0    P2.0    P2.0    P2.0    P2.0      P2.0     P2.0
	P2:cancelled    P2.0    P2.0    P2.0    P2.0    P2.0    P2.0      P2.0     P2.0
	P3              P8.1    P11.0   P7.1    P7.0    P7.1    P7.1      P11.1    P8.1
	P4              P4.0    P4.0    P4.0    P4.0    P4.0    P4.0      P4.0     P4.0
	P5              P8.1    P11.0   P7.1    P7.0    P7.1    P7.1      P11.1    P8.1
	P6              P8.1    P11.0   P7.1    P7.0    P7.1    P7.1      P11.1    P8.1
	P7              P8.1    P11.0   P7.1    P7.0    P7.1    P7.1      P11.1    P8.1
	P8              P8.1    P8.1    P8.1    P8.1    P8.1    P8.1      P11.1    P11.1
	P9              P15.1   P11.0   P11.1   P11.0   P11.1   P11.1     P11.1    P15.1
	P10             P15.1   P11.0   P11.1   P11.0   P11.1   P11.1     P11.1    P15.1
	P11:failed      P15.1   P11.0   P11.1   P11.0   P11.1   P11.1     P11.1    P15.1
	P11:returned    P11.1   P11.1   P11.1   P11.1   P11.1   P11.1     P11.1    P11.1
	P12:failed      P8.1    P12.0   P12.1   P12.0   P12.1   P12.1     P11.1    P8.1
	P12:returned    P12.1   P12.1   P12.1   P12.1   P12.1   P12.1     P12.1    P12.1
	P13             P11.1   P11.1   P11.1   P11.1   P11.1   P11.1     P11.1    P11.1
	P14             P8.1    P11.0   P14.1   P14.0   P14.1   P14.1     P11.1    P8.1
	P15             P15.1   P15.1   P15.1   P15.1   P15.1   P15.1     P15.1    P15.1
`

func TestEveryCellMeetsEveryOutcome(t *testing.T) {
	t.Parallel()
	rows := strings.Split(strings.TrimSpace(everyCell), "\n")
	if !slices.Equal(strings.Fields(rows[0]), outcomes) {
		t.Fatalf("the columns are %s", rows[0])
	}
	seen := map[string]bool{}
	for _, row := range rows[1:] {
		cells := strings.Fields(row)
		start, _, _ := strings.Cut(cells[0], ":")
		seen[start] = true
		t.Run(cells[0], func(t *testing.T) {
			t.Parallel()
			each(t, func(k *till) {
				for i, outcome := range outcomes {
					k.meets(cells[0], outcome, cells[i+1])
				}
			})
		})
	}
	for _, c := range Cells {
		if !seen[c.No] {
			t.Errorf("%s is not tried", c.No)
		}
	}
}

// meets brings a payout to a cell, lets its next calls end in an outcome, and checks what follows.
func (k *till) meets(from, outcome, want string) {
	k.t.Helper()
	what := from + ", " + outcome
	k.fund("m1", all)
	k.fee = cost
	k.run(k.mustCreate(1)) // a healthy call, so that the supplier's breaker stays closed
	p := k.at(from)
	cell, word, _ := strings.Cut(from, ":")
	before := k.reload(p)
	if no := cellOf(before.Status, before.Steps); no != cell {
		k.t.Fatalf("%s: it begins in %q (%s %+v)", what, no, before.Status, before.Steps)
	}
	unsent := before.FirstCallAt == nil
	k.ends(p, outcome, unsent)

	got := k.reload(p)
	truth := k.fake.PayoutOf(p.PayoutNo)
	no := cellOf(got.Status, got.Steps)
	if is := fmt.Sprintf("%s.%d", no, truth.Moved); is != want {
		k.t.Errorf("%s: it ends as %s (%s %+v), want %s", what, is, got.Status, got.Steps, want)
		return
	}
	if truth.Calls > 1 || truth.Calls > 0 && !truth.Same {
		k.t.Errorf("%s: it was sent %d times, with the same content: %t", what, truth.Calls, truth.Same)
	}
	if slices.Contains([]string{"P1", "P2", "P4"}, no) && truth.Calls+truth.Queried > 0 {
		k.t.Errorf("%s: the supplier was called about it", what)
	}
	k.entries(what, got)
	k.notices(what, got, word)
	k.steps(p)
}

// at returns a payout in a cell. One that was sent before is being processed by its supplier, or
// has not been found there (P14).
func (k *till) at(cell string) *Payout {
	k.t.Helper()
	faulty := func(p *Payout, fault paymenttest.PayoutFault) {
		k.fake.OnPayout(func(supplier.Payout) paymenttest.PayoutFault { return fault })
		k.run(p)
		k.fake.OnPayout(nil)
	}
	refused := func() *Payout { // refused with a final word, and the denial counts by now
		p := k.mustCreate(sum)
		faulty(p, paymenttest.PayoutNo)
		k.later(p, 31*time.Minute)
		return p
	}
	waiting := func() *Payout {
		limit := k.limit
		k.limit.Auto = 0
		defer func() { k.limit = limit }()
		return k.mustCreate(sum)
	}
	var p *Payout
	switch cell {
	case "P1":
		p = waiting()
	case "P2:rejected":
		p = waiting()
		k.apply(p, Reject)
	case "P2:cancelled":
		p = waiting()
		k.apply(p, Withdraw)
	case "P2:approved":
		p = k.approvedAlone()
	case "P3":
		p = k.approvedAlone()
		k.apply(p, Begin)
	case "P4":
		p = k.approvedAlone()
		k.apply(p, Begin, Undebited)
	case "P5":
		p = k.mustCreate(sum)
	case "P6":
		p = k.mustCreate(sum)
		faulty(p, paymenttest.PayoutLazy)
	case "P7":
		p = k.mustCreate(sum)
		faulty(p, paymenttest.PayoutLazy)
		faulty(p, paymenttest.PayoutVague)
	case "P8":
		p = k.mustCreate(sum)
		k.run(p)
	case "P9":
		p = refused()
		k.apply(p, Refused)
	case "P10":
		p = refused()
		k.apply(p, Refused, Unbooked, Retried)
	case "P11:failed":
		p = refused()
		k.run(p)
	case "P12:failed":
		p = refused()
		k.apply(p, Refused, Unbooked)
	case "P11:returned", "P12:returned", "P13":
		p = k.mustCreate(sum)
		k.run(p)
		k.fake.SetPayout(p.PayoutNo, supplier.PayoutReturned)
		k.apply(p, Returned)
		switch k.callback(p); cell {
		case "P12:returned":
			k.apply(p, Unbooked)
		case "P11:returned":
			k.run(p)
		}
	case "P14":
		p = k.mustCreate(sum)
		faulty(p, paymenttest.PayoutDeaf)
		k.later(p, 22*time.Hour)
		faulty(p, paymenttest.PayoutDeaf)
	case "P15":
		p = refused()
		k.run(p)
		k.fake.SetPayout(p.PayoutNo, supplier.PayoutSucceeded)
		k.run(p)
	default:
		k.t.Fatalf("no payout is at %s", cell)
	}
	return p
}

// ends lets the next calls about a payout end in an outcome. unsent = none was made yet.
func (k *till) ends(p *Payout, outcome string, unsent bool) {
	k.t.Helper()
	truth := func(all ...supplier.PayoutState) {
		is := k.fake.PayoutOf(p.PayoutNo).State
		if unsent || is == supplier.PayoutReturned || all[0] == supplier.PayoutFailed && is != supplier.PayoutProcessing {
			return // it decides when it is called, or has decided
		}
		for _, s := range all {
			k.fake.SetPayout(p.PayoutNo, s)
		}
	}
	switch fault := (map[string]paymenttest.PayoutFault{
		"failure": paymenttest.PayoutNo, "unknown": paymenttest.PayoutVague, "timeout": paymenttest.PayoutDeaf,
		"lost":      paymenttest.PayoutLost,
		"signature": paymenttest.PayoutWrong,
	})[outcome]; outcome {
	case "success":
		truth(supplier.PayoutSucceeded)
		k.turn(p)
	case "failure":
		truth(supplier.PayoutFailed)
		k.fake.OnPayout(func(supplier.Payout) paymenttest.PayoutFault { return fault })
		k.turn(p)
		k.later(p, 31*time.Minute)
		k.turn(p)
	case "returned":
		if unsent {
			k.turn(p)
			unsent = k.fake.PayoutOf(p.PayoutNo).Calls == 0
		}
		truth(supplier.PayoutSucceeded, supplier.PayoutReturned)
		k.turn(p)
	case "crash":
		if k.fake.PayoutOf(p.PayoutNo).State == supplier.PayoutSucceeded {
			truth(supplier.PayoutReturned) // there is nothing else to learn
		} else {
			truth(supplier.PayoutSucceeded)
		}
		k.fake.OnAnswered(runtime.Goexit)
		ended := make(chan bool)
		go func() {
			defer close(ended)
			k.turn(p)
		}()
		<-ended
		k.fake.OnAnswered(nil)
		k.turn(p)
	case "timeout":
		k.fake.OnPayout(func(supplier.Payout) paymenttest.PayoutFault { return fault })
		k.turn(p)
	default:
		truth(supplier.PayoutSucceeded)
		k.fake.OnPayout(func(supplier.Payout) paymenttest.PayoutFault { return fault })
		k.turn(p)
	}
	k.fake.OnPayout(nil)
}

// turn has the supplier name the payout in a message, and runs what is due then.
func (k *till) turn(p *Payout) {
	k.t.Helper()
	k.callback(p)
	if k.Count(k.t, "SELECT count(*) FROM compensations WHERE subject_kind = 'payout' AND subject_id = ? AND state = 'waiting'", p.ID) > 0 {
		k.run(p)
	}
}

// entries checks that the ledger has exactly the entries of a payout's steps.
func (k *till) entries(what string, p *Payout) {
	k.t.Helper()
	var want []string
	add := func(when bool, facts ...fact.Name) {
		if when {
			for _, f := range facts {
				want = append(want, fact.Ref(f, fact.Values{ID: p.key()}))
			}
		}
	}
	late := p.Reversal == Success && p.Credit == Success
	add(p.Debit == Success, fact.PayoutDebit, fact.PayoutFee)
	add(!late && (p.Credit == Success || p.Credit == CameBack), fact.PayoutCredit)
	add(p.Credit == CameBack, fact.PayoutReturned)
	add(p.Reversal == Success, fact.PayoutReversal, fact.PayoutFeeBack)
	add(late, fact.PayoutLate)
	var got []string
	if err := k.DB.NewRaw("SELECT ref FROM transfers WHERE ref LIKE ?", "payout:"+p.key()+":%").Scan(k.t.Context(), &got); err != nil {
		k.t.Fatal(err)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		k.t.Errorf("%s: the entries are %v, want %v", what, got, want)
	}
}

// notices checks the notifications of a payout.
func (k *till) notices(what string, p *Payout, word string) {
	k.t.Helper()
	var want []string
	switch p.Status {
	case Rejected, Failed:
		want = []string{noticeFailed}
	case Succeeded:
		want = []string{noticeSucceeded}
	case Reversed:
		want = []string{noticeFailed}
		if p.Credit == CameBack {
			want = []string{noticeReturned, noticeSucceeded}
		}
	case Stuck:
		if word == "returned" {
			want = []string{noticeSucceeded}
		}
	}
	var got []string
	if err := k.DB.NewRaw("SELECT event_type FROM deliveries WHERE subject_id = ? ORDER BY event_type", p.ID).Scan(k.t.Context(),
		&got); err != nil {
		k.t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		k.t.Errorf("%s: the merchant was notified of %v, want %v", what, got, want)
	}
}

// steps checks that each step of a payout has one key for life.
func (k *till) steps(p *Payout) {
	k.t.Helper()
	k.Want(k.t, 0, "SELECT count(*) FROM fund_steps WHERE payout_id = ? AND key NOT IN (?, ?, ?)", p.ID, p.PayoutNo+":D", p.PayoutNo+":C",
		p.PayoutNo+":R")
	k.Want(k.t, 0, "SELECT count(*) FROM supplier_calls WHERE call_key LIKE '%:%'")
}

// cellOf returns the number of the cell of a payout; "" = there is none, which is a bug.
func cellOf(status Status, s Steps) string {
	for _, c := range Cells {
		if slices.Contains(c.Status, status) && slices.Contains(c.Debit, s.Debit) && slices.Contains(c.Credit, s.Credit) &&
			slices.Contains(c.Reversal, s.Reversal) {
			return c.No
		}
	}
	return ""
}
