package refund

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"backstop/internal/payment"
)

// sheet is a payment of 2000 with what was reported about it, and the rows that follow.
type sheet struct {
	facts
	now  int64
	rows []*Refund
	told []string
}

// reported is one thing that is known about the payment at some moment.
type reported struct {
	name string
	do   func(*sheet)
	// ours is a step of our own refund, whose order is fixed, also relative to totals.
	ours, total bool
}

func dated(amount, date int64) reported {
	return reported{name: fmt.Sprintf("total %d of day %d", amount, date), total: true, do: func(s *sheet) {
		for i := range s.totals {
			if t := &s.totals[i]; t.amount == amount {
				if date > t.until {
					t.until, t.newsAt = date, s.now
				}
				t.from = min(t.from, date)
				return
			}
		}
		s.totals = append(s.totals, total{amount: amount, firstAt: s.now, newsAt: s.now, from: date, until: date})
	}}
}

func sum(amount int64) reported { return dated(amount, 0) }

func theirs(no string, amount int64, g stage, date int64) reported {
	return reported{name: fmt.Sprintf("%s %d stage %d", no, amount, g), do: func(s *sheet) {
		for i := range s.numbers {
			if n := &s.numbers[i]; n.no == no {
				n.stage, n.failed = max(n.stage, g), max(n.failed, date)
				return
			}
		}
		s.numbers = append(s.numbers, number{no: no, amount: amount, stage: g, firstAt: s.now, failed: date})
	}}
}

func ours1(amount int64, status Status) reported {
	return reported{name: fmt.Sprintf("R1 %d %s", amount, status), ours: true, do: func(s *sheet) {
		if len(s.ours) == 0 {
			s.ours = []*Refund{{ID: 1, RefundNo: "R1", Amount: amount, Status: Requested}}
		}
		r, now := s.ours[0], s.now
		switch status {
		case Submitted:
			r.FirstCallAt = &now
		case Unknown:
			r.AcceptedAt = &now
		case Succeeded:
			r.AcceptedAt = &now
		}
		if r.Status != Cancelled { // it ended because it no longer fitted
			r.Status = status
		}
	}}
}

func payment1(amount int64) reported {
	return reported{name: "paid", do: func(s *sheet) { s.booked = amount }}
}

func disputed1(amount int64) reported {
	return reported{name: "disputed", do: func(s *sheet) { s.disputed = amount }}
}

// settle books what follows, as Machine.Settle does with rows of the database.
func (s *sheet) settle(t *testing.T) conclusion {
	t.Helper()
	c := s.conclude()
	for _, st := range s.plan(c.made, s.rows) {
		r := st.row
		switch {
		case r == nil:
			r = &Refund{Amount: st.amount, Status: Succeeded}
			s.rows, s.told = append(s.rows, r), append(s.told, fmt.Sprintf("+%d", st.amount))
		case st.amount < r.Amount:
			part := &Refund{Amount: st.amount, Status: Succeeded, SupplierRefundNo: r.SupplierRefundNo}
			r.Amount -= st.amount
			r, s.rows = part, append(s.rows, part)
		}
		if st.number != "" {
			r.SupplierRefundNo = st.number
		}
		if st.back {
			r.Status, s.told = Returned, append(s.told, fmt.Sprintf("-%d", st.amount))
		}
	}
	var booked int64
	for _, r := range s.rows {
		if r.Amount <= 0 {
			t.Fatalf("a row of %d", r.Amount)
		}
		if r.Status == Succeeded {
			booked += r.Amount
		}
	}
	if booked != c.made {
		t.Fatalf("%d are booked, want %d", booked, c.made)
	}
	if again := s.plan(c.made, s.rows); len(again) > 0 {
		t.Fatalf("the plan does not end: %+v", again)
	}
	for _, r := range s.ours {
		if r.Status == Requested && r.Amount > s.left()-c.made {
			r.Status = Cancelled
		}
	}
	return c
}

// open returns the rows that are not back, sorted.
func (s *sheet) open() string {
	var all []string
	for _, r := range s.rows {
		if r.Status == Succeeded {
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s %d", r.SupplierRefundNo, r.Amount)))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

type arrival struct {
	name      string
	all       []reported
	made      int64
	exceeds   int64
	doubt     int64
	rows      string // "" = any
	toldFirst string // in the order as written; "" = any
}

var arrivals = []arrival{
	{name: "1", all: []reported{theirs("re_1", 700, done, 0)}, made: 700, rows: "re_1 700"},
	{name: "2", all: []reported{sum(500), theirs("re_1", 500, done, 0)}, made: 500, rows: "re_1 500", toldFirst: "+500"},
	{name: "3", all: []reported{sum(500), sum(900), sum(2000)}, made: 2000, toldFirst: "+500 +400 +1100"},
	{name: "4", all: []reported{sum(2000), theirs("re_1", 500, done, 0)}, made: 2000, rows: "1500, re_1 500", toldFirst: "+2000"},
	{name: "5 done", all: []reported{ours1(500, Submitted), sum(500), ours1(500, Succeeded)}},
	{name: "5 open", all: []reported{ours1(500, Submitted), sum(500)}},
	{name: "5 refused", all: []reported{ours1(500, Submitted), sum(500), ours1(500, Failed)}, made: 500},
	{name: "5 failed later", all: []reported{ours1(500, Submitted), sum(500), ours1(500, Unknown), ours1(500, Failed)}},
	{name: "6 open", all: []reported{ours1(500, Submitted), sum(800)}, made: 300},
	{name: "6 refused", all: []reported{ours1(500, Submitted), sum(800), ours1(500, Failed)}, made: 800},
	{name: "7", all: []reported{sum(500), ours1(500, Submitted), sum(1000)}, made: 500, toldFirst: "+500"},
	{name: "7 done", all: []reported{sum(500), ours1(500, Submitted), sum(1000), ours1(500, Succeeded)}, made: 500, toldFirst: "+500"},
	{name: "8", all: []reported{ours1(1500, Requested), sum(2000)}, made: 2000},
	{name: "9", all: []reported{dated(800, 1), theirs("re_1", 800, failed, 2), theirs("re_2", 800, done, 0)}, made: 800, rows: "re_2 800", toldFirst: "+800 -800 +800"},
	{name: "9 again 8", all: []reported{dated(800, 1), theirs("re_1", 800, failed, 2), theirs("re_2", 800, done, 0), dated(800, 3)}, made: 800, rows: "re_2 800"},
	{name: "9 then 16", all: []reported{dated(800, 1), theirs("re_1", 800, failed, 2), theirs("re_2", 800, done, 0), dated(1600, 3)}, made: 800, rows: "re_2 800"},
	{name: "10", all: []reported{dated(800, 1), theirs("re_1", 800, failed, 2), dated(800, 3)}, doubt: 800},
	{name: "10 late", all: []reported{theirs("re_1", 800, failed, 2), dated(800, 3)}, doubt: 800},
	{name: "10 resent", all: []reported{dated(800, 1), theirs("re_1", 800, failed, 2), dated(800, 1)}},
	{name: "11", all: []reported{sum(2500)}, made: 2000, exceeds: 500},
	{name: "11 numbers", all: []reported{theirs("re_1", 1500, done, 0), theirs("re_2", 1000, done, 0)}, made: 2000, exceeds: 500},
	{name: "12", all: []reported{disputed1(2000), sum(2000)}, exceeds: 2000},
	{name: "13", all: []reported{sum(500), payment1(2000)}, made: 500},
	{name: "a reversal", all: []reported{sum(wholePayment), ours1(500, Submitted)}, made: 2000 - 500, exceeds: 500},
	{name: "a reversal of what is left", all: []reported{ours1(500, Submitted), ours1(500, Succeeded), sum(wholePayment)}, made: 1500},
	{name: "ours by its number", all: []reported{ours1(500, Submitted), theirs("R1", 500, done, 0)}},
	{name: "pending", all: []reported{theirs("re_1", 500, pending, 0)}},
	{name: "made, then failed", all: []reported{theirs("re_1", 500, pending, 0), theirs("re_1", 500, done, 0), theirs("re_1", 500, failed, 2), dated(500, 1)}},
	{name: "one of two", all: []reported{dated(1200, 1), theirs("re_1", 500, done, 0), theirs("re_2", 700, done, 0), theirs("re_2", 700, failed, 2)}, made: 500, rows: "re_1 500"},
	{name: "both of one", all: []reported{sum(500), sum(900), theirs("re_1", 900, done, 0)}, made: 900},
}

// Whatever arrives first, the same is booked in the end, and rows, told amounts and numbers fit.
func TestTheFormulaInEveryOrderOfArrival(t *testing.T) {
	t.Parallel()
	for _, a := range arrivals {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			n := 0
			for order := range permutations(len(a.all)) {
				if !legal(a.all, order) {
					continue
				}
				n++
				s := &sheet{now: 1000}
				if !slices.ContainsFunc(a.all, func(r reported) bool { return r.name == "paid" }) {
					s.booked = 2000
				}
				var names []string
				var c conclusion
				for _, i := range order {
					s.now++
					a.all[i].do(s)
					names = append(names, a.all[i].name)
					c = s.settle(t)
				}
				if (c != conclusion{a.made, a.exceeds, a.doubt}) {
					t.Errorf("%v: %+v, want %d, exceeds %d, doubt %d", names, c, a.made, a.exceeds, a.doubt)
				}
				if a.rows != "" && s.open() != a.rows {
					t.Errorf("%v: rows %q, want %q", names, s.open(), a.rows)
				}
				if told := strings.Join(s.told, " "); slices.IsSorted(order) && a.toldFirst != "" && told != a.toldFirst {
					t.Errorf("%v: told %q, want %q", names, told, a.toldFirst)
				}
			}
			if n == 0 {
				t.Error("no order is legal")
			}
		})
	}
}

// The statuses that take nothing are the same where held money is summed up.
func TestUnusedRefundsAreTheSameEverywhere(t *testing.T) {
	t.Parallel()
	for _, s := range Moves.Rows {
		if slices.Contains(dead, s.Status) != slices.Contains(payment.UnusedRefunds, string(s.Status)) {
			t.Errorf("%s", s.Status)
		}
	}
}

// A number that fails takes its row with it, and only that.
func TestANumberThatFailsTakesItsRowBack(t *testing.T) {
	t.Parallel()
	s := &sheet{facts: facts{booked: 2000}, now: 1}
	for _, r := range []reported{dated(2000, 1), theirs("re_1", 500, done, 0), theirs("re_1", 500, failed, 2)} {
		s.now++
		r.do(s)
		s.settle(t)
	}
	if got := s.open(); got != "1500" {
		t.Errorf("rows %q", got)
	}
	if back := s.rows[len(s.rows)-1]; back.Status != Returned || back.SupplierRefundNo != "re_1" || back.Amount != 500 {
		t.Errorf("%+v", back)
	}
}

// A complete list is believed before totals received until then.
func TestAListIsBelievedBeforeTotals(t *testing.T) {
	t.Parallel()
	f := facts{booked: 2000, totals: []total{{amount: 800, firstAt: 1, newsAt: 5, from: 1, until: 3}}, numbers: []number{
		{no: "re_1", amount: 800, stage: failed, failed: 2}, {no: "re_2", amount: 300, stage: done}, {no: "re_3", amount: 500, stage: pending},
	}}
	if c := f.conclude(); c != (conclusion{300, 0, 500}) {
		t.Errorf("without a list: %+v", c)
	}
	f.listedAt = 6
	if c := f.conclude(); c != (conclusion{300, 0, 0}) {
		t.Errorf("with it: %+v", c)
	}
	f.totals = append(f.totals, total{amount: 1700, firstAt: 7, newsAt: 7, from: 4, until: 4})
	if c := f.conclude(); c != (conclusion{900, 0, 0}) {
		t.Errorf("a total after it: %+v", c)
	}
}

// legal reports whether an order keeps what is fixed: the steps of our refund among themselves,
// and on which side of them each total is.
func legal(all []reported, order []int) bool {
	place := make([]int, len(order))
	for at, i := range order {
		place[i] = at
	}
	for i := range all {
		for j := range i {
			fixed := all[i].ours && all[j].ours || all[i].ours && all[j].total || all[i].total && all[j].ours
			if fixed && place[j] > place[i] {
				return false
			}
		}
	}
	return true
}

func permutations(n int) func(func([]int) bool) {
	return func(yield func([]int) bool) {
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		var permute func(k int) bool
		permute = func(k int) bool {
			if k == n {
				return yield(slices.Clone(order))
			}
			for i := k; i < n; i++ {
				order[k], order[i] = order[i], order[k]
				if !permute(k + 1) {
					return false
				}
				order[k], order[i] = order[i], order[k]
			}
			return true
		}
		permute(0)
	}
}
