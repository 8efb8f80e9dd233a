package refund

import "slices"

// What follows from the formula for the rows of refunds that were made at the supplier: each of
// its numbers has rows of its own, and the rest has one row per increase, without a number.

// step is one change of these rows.
type step struct {
	row    *Refund // nil = a new one
	number string  // that it gets; "" = it keeps what it has
	amount int64
	back   bool // the money came back
}

// plan returns the steps that bring the rows (oldest first, those that came back as well) to what
// was concluded. A step about less than its row splits it, which moves no money.
func (f facts) plan(made int64, rows []*Refund) []step {
	p := planner{named: map[string]int64{}, left: map[*Refund]int64{}, was: map[string]bool{}}
	for _, r := range rows {
		p.was[r.SupplierRefundNo] = true
		if r.Status == Succeeded {
			p.rows, p.left[r] = append(p.rows, r), r.Amount
			p.named[r.SupplierRefundNo] += r.Amount
		}
	}
	numbers, _ := f.others(done)
	share, unnumbered := map[string]int64{}, made
	for _, n := range numbers {
		share[n.no] = min(n.amount, unnumbered)
		unnumbered -= share[n.no]
	}
	for _, no := range p.numbers() {
		p.goesBack(no, "", p.named[no]-share[no])
	}
	for _, n := range numbers {
		p.takeUnnumbered(n.no, min(share[n.no]-p.named[n.no], p.named[""]-unnumbered))
	}
	lost, _ := f.others(failed)
	for _, n := range lost {
		if !p.was[n.no] {
			p.goesBack("", n.no, min(n.amount, p.named[""]-unnumbered))
		}
	}
	p.goesBack("", "", p.named[""]-unnumbered)
	for _, n := range numbers {
		p.adds(n.no, share[n.no]-p.named[n.no])
	}
	p.adds("", unnumbered-p.named[""])
	return p.steps
}

type planner struct {
	rows  []*Refund         // that are not back, oldest first
	left  map[*Refund]int64 // of their amounts, after the steps so far
	named map[string]int64  // sum by number; "" = without one
	was   map[string]bool   // numbers that rows have or had
	steps []step
}

// numbers returns the numbers of the rows, oldest first.
func (p *planner) numbers() (all []string) {
	for _, r := range p.rows {
		if no := r.SupplierRefundNo; no != "" && !slices.Contains(all, no) {
			all = append(all, no)
		}
	}
	return all
}

// take adds a step about a part of a row's amount.
func (p *planner) take(r *Refund, number string, amount int64, back bool) {
	p.steps = append(p.steps, step{r, number, amount, back})
	p.left[r] -= amount
	p.named[r.SupplierRefundNo] -= amount
	if !back {
		p.named[number] += amount
	}
}

// goesBack takes an amount from the rows of a number, the newest first; as is the number that
// they get.
func (p *planner) goesBack(number, as string, amount int64) {
	for _, r := range p.pick(number, amount) {
		if part := min(amount, p.left[r]); part > 0 {
			p.take(r, as, part, true)
			amount -= part
		}
	}
}

// takeUnnumbered gives a number rows without one.
func (p *planner) takeUnnumbered(number string, amount int64) {
	for _, r := range p.pick("", amount) {
		if part := min(amount, p.left[r]); part > 0 {
			p.take(r, number, part, false)
			amount -= part
		}
	}
}

// pick returns the rows of a number: first one of exactly this amount, then the newest.
func (p *planner) pick(number string, amount int64) (all []*Refund) {
	for i := len(p.rows) - 1; i >= 0; i-- {
		r := p.rows[i]
		switch {
		case r.SupplierRefundNo != number || p.left[r] == 0:
		case p.left[r] == amount && (len(all) == 0 || p.left[all[0]] != amount):
			all = slices.Insert(all, 0, r)
		default:
			all = append(all, r)
		}
	}
	return all
}

// adds adds a new row.
func (p *planner) adds(number string, amount int64) {
	if amount > 0 {
		p.steps = append(p.steps, step{number: number, amount: amount})
		p.named[number] += amount
	}
}
