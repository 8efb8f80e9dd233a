package dispute

import (
	"slices"
	"testing"

	"backstop/internal/ledger/fact"
	"backstop/internal/supplier"

	"pgregory.net/rapid"
)

// drawn is one random message about a dispute of 1000.
func drawn(t *rapid.T) *supplier.Dispute {
	stages := []supplier.DisputeStage{
		"", supplier.DisputeInquiry, supplier.DisputeOpened, supplier.DisputeAnswered, supplier.DisputeWon,
		supplier.DisputeLost,
	}
	return &supplier.Dispute{
		Stage: rapid.SampledFrom(stages).Draw(t, "stage"), Withdrawn: rapid.Bool().Draw(t, "withdrawn"),
		Reinstated: rapid.SampledFrom([]int64{0, 0, 400, 1000, 5000}).Draw(t, "reinstated"), Fee: rapid.SampledFrom([]int64{0, 15}).Draw(t,
			"fee"),
		FeeBack:     rapid.SampledFrom([]int64{0, 15, 99}).Draw(t, "fee back"),
		FeeCurrency: rapid.SampledFrom([]string{"CNY", "USD", ""}).Draw(t, "currency"),
	}
}

// book is what entries did to the reserve and to the merchant, and how often each was posted.
type book struct {
	reserve, merchant int64
	posted            map[fact.Name]int
}

func (b *book) post(p posting) {
	b.posted[p.fact]++
	switch p.fact {
	case fact.DisputeHeld:
		b.reserve, b.merchant = b.reserve+p.amount, b.merchant-p.amount
	case fact.DisputeReleased:
		b.reserve, b.merchant = b.reserve-p.amount, b.merchant+p.amount
	case fact.DisputeWithdrawn:
		b.reserve -= p.amount
	case fact.DisputeReinstated, fact.DisputeFeeBack:
		b.merchant += p.amount
	case fact.DisputeFee:
		b.merchant -= p.amount
	}
}

// Whatever messages come, and whenever the payment is found: each entry is posted at most once,
// none is taken back, the reserve is never below zero and is what the dispute says, and the
// merchant never gets more than it had.
func TestAnyMessagesKeepTheBooks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d, b := &Dispute{Amount: 1000, Currency: "CNY", Status: Opened}, book{posted: map[fact.Name]int{}}
		found := rapid.IntRange(0, 12).Draw(t, "found")
		for i := range 12 {
			before := d.postings()
			if i == found {
				d.OrderID = 7
				d.settle()
			}
			status, said := d.Status, drawn(t)
			d.learn(said)
			after := d.postings()
			for _, p := range before {
				if !slices.Contains(after, p) {
					t.Fatalf("%v was posted, but is missing after %+v: %v", p, said, after)
				}
			}
			for _, p := range after {
				if !slices.Contains(before, p) {
					b.post(p)
				}
				if b.posted[p.fact] != 1 || p.amount <= 0 {
					t.Fatalf("%v was posted %d times", p, b.posted[p.fact])
				}
			}
			switch {
			case b.reserve < 0 || b.reserve != d.reserved():
				t.Fatalf("the reserve is %d, the dispute says %d: %+v", b.reserve, d.reserved(), d)
			case b.merchant > 0:
				t.Fatalf("the merchant gained %d: %+v", b.merchant, d)
			case status.ended() && d.Status != status && (status != Lost || d.Status != Won):
				t.Fatalf("%s became %s", status, d.Status)
			case d.counts() < 0 || d.counts() > d.Amount:
				t.Fatalf("it counts %d", d.counts())
			}
		}
	})
}

// naive books each event as it arrives, by its type, as if they came in order.
func (b *book) naive(said *supplier.Dispute) {
	switch {
	case said.Reinstated > 0:
		b.post(posting{fact.DisputeReinstated, 1000})
	case said.Stage == supplier.DisputeWon && b.posted[fact.DisputeWithdrawn] == 0:
		b.post(posting{fact.DisputeReleased, 1000})
	case said.Stage == supplier.DisputeWon:
	case said.Withdrawn:
		b.post(posting{fact.DisputeWithdrawn, 1000})
	case said.Stage == supplier.DisputeOpened:
		b.post(posting{fact.DisputeHeld, 1000})
	}
}

// The control: booking by the type of the event breaks the reserve as soon as one is early.
func TestBookingByTheTypeOfEventIsSeen(t *testing.T) {
	t.Parallel()
	b := book{posted: map[fact.Name]int{}}
	for _, said := range []*supplier.Dispute{
		{Stage: supplier.DisputeOpened},
		{Stage: supplier.DisputeWon},
		{Stage: supplier.DisputeOpened, Withdrawn: true},
		{Reinstated: 1000},
	} {
		b.naive(said)
	}
	d, c := &Dispute{Amount: 1000, Currency: "CNY", Status: Opened, OrderID: 7}, book{posted: map[fact.Name]int{}}
	for _, said := range []*supplier.Dispute{
		{Stage: supplier.DisputeOpened},
		{Stage: supplier.DisputeWon},
		{Stage: supplier.DisputeOpened, Withdrawn: true},
		{Reinstated: 1000},
	} {
		d.learn(said)
	}
	for _, p := range d.postings() {
		c.post(p)
	}
	if b.reserve >= 0 || c.reserve != 0 || c.merchant != 0 {
		t.Errorf("by type %+v, by what is known %+v", b, c)
	}
}

func TestEveryPairOfStatuses(t *testing.T) {
	t.Parallel()
	for _, from := range Moves.Statuses() {
		for _, to := range Moves.Statuses() {
			want := from == Opened && to != Opened || from == Answered && to.ended() || from == Lost && to == Won
			if Moves.Can(from, to) != want {
				t.Errorf("%s to %s: %v", from, to, !want)
			}
		}
	}
}
