// Package alert notifies operators of trouble: rules with hysteresis, one row per thing
// that is wrong, messages that are grouped, bounded in number and sent again until they
// arrive.
package alert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"backstop/internal/act"
	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Names of the rules that watch a level.
const (
	QueueLength    = "queue_length"        // tasks and rows that are due, per queue
	SuccessRate    = "success_rate"        // attempts that merchants confirmed, in hundredths of a percent
	ErrorRate      = "error_rate"          // notifications given up, of those that are over, in hundredths of a percent
	AnswerTime     = "answer_time"         // mean of merchants' answers, in ms
	SlowMerchant   = "slow_merchant"       // p95 of one merchant's answers, in ms
	SupplierSilent = "supplier_silent"     // callbacks in percent of what is usual at this hour
	DatabaseDown   = "database_down"       // 100 = a node cannot use it
	RedisDown      = "redis_down"          // 100 = a node cannot use it
	ClockSkew      = "clock_skew"          // between two clocks, in ms
	WrongKey       = "wrong_key"           // 100 = a node does not have the master key in use
	NodesDiffer    = "nodes_differ"        // 100 = running nodes differ in what must agree
	OurFault       = "our_fault"           // notifications that wait because of a fault of ours, in hundredths
	StuckOrders    = "stuck_orders"        // orders without a result half an hour after the third query, in hundredths
	Unreadable     = "settings_unreadable" // 100 = a supplier, merchant or subscription cannot be read
)

// Names of the rules about events.
const (
	ExceptionOpened = "exception_opened"
	DisputeOpened   = "dispute_opened" // separate from other exceptions: it must be answered in time
	NotifyExhausted = "notify_exhausted"
	BreakerOpened   = "breaker_opened"
	BreakerClosed   = "breaker_closed"
	TargetDisabled  = "target_disabled" // an endpoint answered 410
	// CompensationDead: what had to be done again ran out of tries.
	CompensationDead = "compensation_dead"
	// ProposalWaits: nobody has approved or rejected a proposal for an hour, or for four more.
	ProposalWaits = "proposal_waits"
	// SupplierUnreachable: the breaker of a supplier has opened, and nothing is asked of it.
	SupplierUnreachable = "supplier_unreachable"
	// SupplierReachable: it answers again, and is asked again.
	SupplierReachable = "supplier_reachable"
	BatchStopped      = "batch_stopped"   // a batch ended early by itself
	CountersDiffer    = "counters_differ" // a figure did not match the rows that it counts
	BooksDiffer       = "books_differ"    // an invariant of the books does not hold
)

// Rule is when an alert fires and how often it may be repeated.
type Rule struct {
	bun.BaseModel `bun:"table:alert_rules,alias:ar"`

	Name    string `bun:"name,pk"`
	Enabled bool   `bun:"enabled"`
	// Fire is the level that fires the alert, Clear the one that ends it. Where Clear is
	// below Fire the alert is about too much, else about too little: the gap between them
	// keeps a level that swings around one limit from alerting each time.
	Fire  int64 `bun:"fire"`
	Clear int64 `bun:"clear"`
	// HoldS is for how many seconds the level must stay beyond Fire first.
	HoldS int64 `bun:"hold_s"`
	// QuietS is for how many seconds after an alert the same subject does not alert again.
	QuietS int64 `bun:"quiet_s"`
	// WindowS is over how many seconds the level is measured, whole minutes; 0 where it is
	// a level of the moment.
	WindowS int64 `bun:"window_s"`
	// NextMessageAt keeps messages of one rule apart (Unix µs).
	NextMessageAt int64 `bun:"next_message_at"`
	UpdatedAt     int64 `bun:"updated_at"`
}

// Watches reports whether the rule watches a level whose limits an operator may set; the
// others are about events, or about what either works or does not.
func (r Rule) Watches() bool { return r.Fire != r.Clear && !measureOf(r.Name).onOff }

// Beyond reports whether the level fires the rule, once it has stayed there for the hold
// time.
func (r Rule) Beyond(value int64) bool { return r.Enabled && r.beyond(value) }

func (r Rule) beyond(value int64) bool { return r.worse(value, r.Fire) }

// back reports whether the level ends the rule's alert.
func (r Rule) back(value int64) bool { return !r.worse(value, r.Clear) }

// worse reports whether a level is further beyond the limit than another.
func (r Rule) worse(value, than int64) bool {
	if r.Clear < r.Fire {
		return value > than
	}
	return value < than
}

// defaults are all rules as they are until an operator changes them.
var defaults = []struct {
	Rule
	measure measure
}{
	{Rule{Name: QueueLength, Fire: 1000, Clear: 800, HoldS: 20, QuietS: 300}, count},
	{Rule{Name: SuccessRate, Fire: 9500, Clear: 9700, HoldS: 30, QuietS: 300, WindowS: 300}, rate},
	{Rule{Name: ErrorRate, Fire: 500, Clear: 300, HoldS: 30, QuietS: 300, WindowS: 300}, rate},
	{Rule{Name: AnswerTime, Fire: 5000, Clear: 4000, HoldS: 30, QuietS: 300, WindowS: 300}, answerTime},
	{Rule{Name: SlowMerchant, Fire: 3000, Clear: 2000, HoldS: 30, QuietS: 3600, WindowS: 300}, answerTime},
	{Rule{Name: SupplierSilent, Fire: 5, Clear: 20, HoldS: 60, QuietS: 1800, WindowS: 600}, percent},
	{Rule{Name: DatabaseDown, Fire: 50, Clear: 0, HoldS: 0, QuietS: 60}, onOff},
	{Rule{Name: RedisDown, Fire: 50, Clear: 0, HoldS: 0, QuietS: 60}, onOff},
	{Rule{Name: ClockSkew, Fire: 2000, Clear: 1000, HoldS: 20, QuietS: 3600}, milliseconds},
	{Rule{Name: WrongKey, Fire: 50, Clear: 0, HoldS: 0, QuietS: 60}, onOff},
	{Rule{Name: NodesDiffer, Fire: 50, Clear: 0, HoldS: 20, QuietS: 3600}, onOff},
	{Rule{Name: OurFault, Fire: 50, Clear: 0, HoldS: 0, QuietS: 300}, waiting}, // one that waits is enough
	{Rule{Name: StuckOrders, Fire: 50, Clear: 0, HoldS: 0, QuietS: 300}, waiting},
	{Rule{Name: Unreadable, Fire: 50, Clear: 0, HoldS: 0, QuietS: 300}, unreadable},
	{Rule{Name: ExceptionOpened, QuietS: 300}, count},
	// No quiet time: the second dispute of a day may be due on the same day.
	{Rule{Name: DisputeOpened}, count},
	{Rule{Name: NotifyExhausted, QuietS: 300}, count},
	{Rule{Name: CompensationDead, QuietS: 300}, count},
	{Rule{Name: BatchStopped, QuietS: 60}, count},
	{Rule{Name: ProposalWaits}, count},
	{Rule{Name: BreakerOpened, QuietS: 60}, count},
	{Rule{Name: BreakerClosed, QuietS: 60}, count},
	{Rule{Name: SupplierUnreachable, QuietS: 60}, count},
	{Rule{Name: SupplierReachable, QuietS: 60}, count},
	{Rule{Name: TargetDisabled, QuietS: 300}, count},
	{Rule{Name: CountersDiffer, QuietS: 300}, count},
	{Rule{Name: BooksDiffer, QuietS: 300}, count},
}

// Names are the names of all rules.
var Names = func() (names []string) {
	for _, r := range defaults {
		names = append(names, r.Name)
	}
	return names
}()

// Rules are all rules, as operators changed them, in the order of the defaults.
func Rules(ctx context.Context, q bun.IDB) ([]Rule, error) {
	var changed []Rule
	if err := q.NewSelect().Model(&changed).Limit(int64(len(defaults))).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the rules of alerts: %w", err)
	}
	by := map[string]Rule{}
	for _, r := range changed {
		by[r.Name] = r
	}
	all := make([]Rule, len(defaults))
	for i, d := range defaults {
		r := d.Rule
		r.Enabled = true
		if own, ok := by[r.Name]; ok {
			if own.WindowS == 0 {
				own.WindowS = r.WindowS
			}
			r = own
		}
		all[i] = r
	}
	return all, nil
}

// find is the rule of a name.
func find(rules []Rule, name string) (Rule, error) {
	for _, r := range rules {
		if r.Name == name {
			return r, nil
		}
	}
	return Rule{}, fmt.Errorf("there is no rule %q", name)
}

// Save stores a changed rule, by compare-and-set on the time of the change before.
// Errors: ErrRule, act.ErrChanged.
func Save(ctx context.Context, q bun.IDB, d *db.DB, r Rule) error {
	if err := r.check(); err != nil {
		return err
	}
	was := r.UpdatedAt
	r.UpdatedAt = max(d.Now(), was+1)
	res, err := q.NewInsert().Model(&r).On("CONFLICT (name) DO UPDATE").Set("enabled = EXCLUDED.enabled").Set("fire = EXCLUDED.fire").
		Set("clear = EXCLUDED.clear").Set("hold_s = EXCLUDED.hold_s").Set("quiet_s = EXCLUDED.quiet_s").
		Set("window_s = EXCLUDED.window_s").Set("updated_at = EXCLUDED.updated_at").Where("ar.updated_at = ?", was).Exec(ctx)
	if err != nil {
		return fmt.Errorf("save the rule %s: %w", r.Name, err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(act.ErrChanged, err)
	}
	return nil
}

// longest bounds times of rules: for less than one alert a week the rule can be turned off.
const longest = 7 * 24 * time.Hour

// maxWindow bounds windows: they are read minute by minute.
const maxWindow = time.Hour

// check returns what is wrong with a rule, as an ErrRule.
func (r Rule) check() error {
	if err := r.problem(); err != nil {
		return fmt.Errorf("%w: %w", ErrRule, err)
	}
	return nil
}

// ErrRule means that a rule cannot be stored as it is.
var ErrRule = errors.New("the rule cannot be kept")

func (r Rule) problem() error {
	for _, d := range defaults {
		if d.Name != r.Name {
			continue
		}
		if (d.Clear < d.Fire) != (r.Clear < r.Fire) {
			return fmt.Errorf("rule %s: clear (%d) must lie on the other side of fire (%d), as in the default %d and %d", r.Name, r.Clear, r.Fire, d.Clear, d.Fire)
		}
		if r.Watches() && !r.beyond(0) && !r.beyond(d.measure.highest) {
			return fmt.Errorf("rule %s: no level is ever beyond %d: there are levels from 0 to %d", r.Name, r.Fire, d.measure.highest)
		}
		if all := Limits(r.Name); all != nil && (!slices.Contains(all, r.Fire) || !slices.Contains(all, r.Clear)) {
			return fmt.Errorf("rule %s: fire and clear must each be one of %v", r.Name, all)
		}
		if most := int64(longest / time.Second); r.HoldS < 0 || r.QuietS < 0 || r.HoldS > most || r.QuietS > most {
			return fmt.Errorf("rule %s: hold and quiet must be 0 to %d seconds", r.Name, most)
		}
		if d.WindowS == 0 && r.WindowS != 0 || r.WindowS%60 != 0 || r.WindowS < 0 || r.WindowS > int64(maxWindow/time.Second) {
			return fmt.Errorf("rule %s: the window must be whole minutes, at most %s", r.Name, maxWindow)
		}
		return nil
	}
	return fmt.Errorf("there is no rule %q", r.Name)
}
