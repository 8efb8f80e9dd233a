package console

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"backstop/internal/alert"
	"backstop/internal/breaker"
	"backstop/internal/callback"
	"backstop/internal/payment"
	"backstop/internal/recipient"
	"backstop/internal/report"
	"backstop/internal/supplier"
)

// SupplierHealth is how one supplier does.
type SupplierHealth struct {
	supplier.Entry
	Broken bool // its settings cannot be used on this node
	// Now counts its callbacks of the last hour by outcome, refused ones too; Before those of the
	// same hour a week ago, if HasBefore.
	Now, Before map[string]int64
	HasBefore   bool
	Last        int64         // minute of its last authentic callback, Unix µs; 0 = unknown
	Gap         time.Duration // without an authentic callback
	Flow        *report.Flow  // its usual flow; nil = too little is known
	Silent      bool
	Calls       []report.Calls // of the last hour, by kind
	Breaker     *breaker.Row   // nil = closed
	OpenSince   int64          // of an open breaker, Unix µs; failed probes do not count
	Expires     *supplier.Key  // the certificate that ends first; nil = none ends
	Waiting     report.Standing
	Paid        report.Standing // orders created today
	Today       int64           // when today began, Unix µs
}

const (
	// supplierSpan is the time over which suppliers are compared, and supplierBefore how much
	// earlier the time is that they are compared with.
	supplierSpan   = time.Hour
	supplierBefore = 7 * 24 * time.Hour
	// failingMin is the number of callbacks or calls from which a share means something.
	failingMin = 10
	// ExpirySoon is how long before its end a certificate needs an operator.
	ExpirySoon = 30 * 24 * time.Hour
)

// Suppliers returns all suppliers, those that need an operator first. Days begin in the zone.
func (b *Reader) Suppliers(ctx context.Context, zone *time.Location) ([]SupplierHealth, error) {
	registry := b.settings.Current().Suppliers
	var all []SupplierHealth
	for _, e := range registry.All() {
		all = append(all, SupplierHealth{Entry: e, Expires: firstToExpire(e)})
	}
	for _, code := range registry.AllBroken() {
		id, _ := registry.Broken(code)
		all = append(all, SupplierHealth{Entry: supplier.Entry{ID: id, Code: code}, Broken: true})
	}
	if len(all) == 0 {
		return nil, nil
	}
	for _, add := range []func(context.Context, []SupplierHealth) error{b.addFigures, b.addSilence, b.addSupplierBreakers} {
		if err := add(ctx, all); err != nil {
			return nil, err
		}
	}
	today := report.DayOf(b.db.Now(), zone)
	paid, err := report.PaidToday(ctx, b.db, today)
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Paid, all[i].Today = paid[all[i].ID], today
	}
	now := b.db.NowTime()
	slices.SortStableFunc(all, func(x, y SupplierHealth) int {
		return cmp.Or(cmp.Compare(y.Trouble(now).rank(), x.Trouble(now).rank()), cmp.Compare(y.Waiting.Orders(), x.Waiting.Orders()),
			cmp.Compare(x.Code, y.Code))
	})
	return all, nil
}

// addFigures adds the callbacks, the calls and the orders that wait.
func (b *Reader) addFigures(ctx context.Context, all []SupplierHealth) error {
	to := b.db.Now()
	from, earlier := to-supplierSpan.Microseconds(), supplierBefore.Microseconds()
	// The span in progress is part of the last hour; a week ago it was whole.
	now, err := report.SupplierOutcomes(ctx, b.db, from, to+report.Fine.Microseconds())
	if err != nil {
		return err
	}
	before, err := report.SupplierOutcomes(ctx, b.db, from-earlier, to-earlier)
	if err != nil {
		return err
	}
	oldest, err := report.SupplierFiguresFrom(ctx, b.db)
	if err != nil {
		return err
	}
	calls, err := report.SupplierCalls(ctx, b.db, from)
	if err != nil {
		return err
	}
	waiting, err := report.Awaiting(ctx, b.db)
	if err != nil {
		return err
	}
	for i := range all {
		s := &all[i]
		s.Now, s.Before, s.HasBefore = now[s.ID], before[s.ID], oldest > 0 && oldest <= from-earlier
		s.Calls, s.Waiting = calls[s.ID], waiting[s.ID]
	}
	return nil
}

func (b *Reader) addSilence(ctx context.Context, all []SupplierHealth) error {
	firing, err := alert.FiringByRule(ctx, b.db.Read, alert.SupplierSilent)
	if err != nil {
		return err
	}
	rule, flows, err := b.flows(ctx)
	if err != nil {
		return err
	}
	last, err := report.LastCallbacks(ctx, b.db, callback.Refused)
	if err != nil {
		return err
	}
	for i := range all {
		s := &all[i]
		if s.Last = last[s.ID]; s.Last > 0 {
			s.Gap = max(0, time.Duration(b.db.Now()-s.Last-time.Minute.Microseconds())*time.Microsecond)
		}
		for _, f := range flows {
			if _, known := f.Level(); f.Supplier == s.ID && known {
				s.Flow, s.Silent = &f, isSilent(s.Entry, f, rule, firing)
			}
		}
	}
	return nil
}

func (b *Reader) addSupplierBreakers(ctx context.Context, all []SupplierHealth) error {
	owners := make([]recipient.Recipient, len(all))
	for i, s := range all {
		owners[i] = recipient.OfSupplier(s.ID)
	}
	rows, err := breaker.ReadAll(ctx, b.db.Read, owners)
	if err != nil {
		return err
	}
	var open []*breaker.Row
	for i := range all {
		all[i].Breaker = rows[all[i].ID]
		if all[i].Breaker.Tripped() {
			open = append(open, all[i].Breaker)
		}
	}
	since, err := breaker.OpenSince(ctx, b.db, open)
	for i := range all {
		all[i].OpenSince = since[owners[i]]
	}
	return err
}

func firstToExpire(e supplier.Entry) (first *supplier.Key) {
	for _, k := range supplier.KeysOf(e.Adapter) {
		if !k.NotAfter.IsZero() && (first == nil || k.NotAfter.Before(first.NotAfter)) {
			first = &k
		}
	}
	return first
}

func count(by map[string]int64) (n int64) {
	for _, c := range by {
		n += c
	}
	return n
}

// PerMinute returns the callbacks per minute within the last hour and within the same hour a week
// ago; false = that is not known.
func (s SupplierHealth) PerMinute() (now, before float64, known bool) {
	return float64(count(s.Now)) / supplierSpan.Minutes(), float64(count(s.Before)) / supplierSpan.Minutes(), s.HasBefore
}

// Verified returns the share of the callbacks that were authentic; false = there were none.
func (s SupplierHealth) Verified() (share float64, ok bool) {
	all := count(s.Now)
	return 1 - float64(s.refused())/float64(max(all, 1)), all > 0
}

func (s SupplierHealth) refused() (n int64) {
	for outcome, c := range s.Now {
		if callback.IsRefusal(outcome) {
			n += c
		}
	}
	return n
}

// PaidShare returns the share of the authentic callbacks, without repeats, that paid an order.
func (s SupplierHealth) PaidShare() (share float64, ok bool) {
	all := count(s.Now) - s.refused() - s.Now[payment.Repeat]
	return float64(s.Now[payment.Paid]) / float64(max(all, 1)), all > 0
}

// Failing is the number of callbacks that were refused with one outcome.
type Failing struct {
	Outcome string
	N       int64
}

// TopFailing returns the check that refused most callbacks within the last hour; N 0 = none. An
// authentic callback passed all checks, whatever became of it.
func (s SupplierHealth) TopFailing() (top Failing) {
	for _, outcome := range slices.Sorted(maps.Keys(s.Now)) {
		if n := s.Now[outcome]; n > top.N && callback.IsRefusal(outcome) {
			top = Failing{outcome, n}
		}
	}
	return top
}

// CallsOK returns the share of the calls within the last hour that a healthy supplier could have
// answered so, and their number.
func (s SupplierHealth) CallsOK() (share float64, all int64) {
	var healthy int64
	for _, c := range s.Calls {
		n, ok := c.All(), int64(0)
		for class, k := range c.Classes {
			if supplier.Class(class).Healthy() {
				ok += k
			}
		}
		all, healthy = all+n, healthy+min(ok, n)
	}
	return float64(healthy) / float64(max(all, 1)), all
}

// Trouble is what is wrong with a supplier.
type Trouble string

// Troubles, the worst last.
const (
	NoTrouble     Trouble = "ok"
	Quiet         Trouble = "quiet"    // no callbacks and no calls
	Disabled      Trouble = "disabled" // for new orders
	Expiring      Trouble = "expiring" // a certificate ends soon
	Refusing      Trouble = "refusing" // callbacks are refused
	CallsFail     Trouble = "calls"
	IsSilent      Trouble = "silent"
	IsUnreachable Trouble = "unreachable" // its breaker is open
	Unusable      Trouble = "unusable"    // its settings cannot be used
)

// Troubles are all of them.
var Troubles = []Trouble{NoTrouble, Quiet, Disabled, Expiring, Refusing, CallsFail, IsSilent, IsUnreachable, Unusable}

func (t Trouble) rank() int { return slices.Index(Troubles, t) }

// HealthyShare is the share of callbacks that verify, and of calls that are answered, below which
// something is wrong.
const HealthyShare = 0.9

// Trouble returns the worst that is wrong.
func (s SupplierHealth) Trouble(now time.Time) Trouble {
	verified, _ := s.Verified()
	answered, calls := s.CallsOK()
	switch {
	case s.Broken:
		return Unusable
	case s.Breaker.Tripped():
		return IsUnreachable
	case s.Silent:
		return IsSilent
	case calls >= failingMin && answered < HealthyShare:
		return CallsFail
	case s.refused() >= failingMin && verified < HealthyShare:
		return Refusing
	case s.Expires != nil && s.Expires.NotAfter.Sub(now) < ExpirySoon:
		return Expiring
	case !s.Enabled:
		return Disabled
	case count(s.Now) == 0 && calls == 0:
		return Quiet
	}
	return NoTrouble
}
