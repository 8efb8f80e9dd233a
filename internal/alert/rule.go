// Package alert notifies operators of trouble: rules with hysteresis, one row per rule and
// subject, and messages that are grouped, limited in number and repeated until they arrive.
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

// Names of the rules about levels.
const (
	QueueLength      = "queue_length"        // due tasks and rows, per queue
	SuccessRate      = "success_rate"        // attempts that merchants acknowledged, in hundredths of a percent
	ErrorRate        = "error_rate"          // notifications given up, of those finished, in hundredths of a percent
	AnswerTime       = "answer_time"         // mean response time of merchants, in ms
	SlowMerchant     = "slow_merchant"       // p95 response time of one merchant, in ms
	SupplierSilent   = "supplier_silent"     // callbacks in percent of the usual number at this hour
	DatabaseDown     = "database_down"       // 100 = a node cannot use it
	RedisDown        = "redis_down"          // 100 = a node cannot use it
	ClockSkew        = "clock_skew"          // between two clocks, in ms
	WrongKey         = "wrong_key"           // 100 = a node does not have the master key in use
	TestModeDown     = "test_mode_down"      // 100 = test mode does not run on a node
	NodesDiffer      = "nodes_differ"        // 100 = running nodes differ in what must agree
	OurFault         = "our_fault"           // notifications waiting because of a fault of ours, in hundredths
	StuckOrders      = "stuck_orders"        // orders without a result half an hour after the third query, in hundredths
	MerchantNegative = "merchant_negative"   // currencies in which a merchant's balance is below its overdraft, in hundredths
	Unreadable       = "settings_unreadable" // 100 = a supplier, merchant or subscription cannot be read
	QueueForecast    = "queue_forecast"      // minutes until the backlog reaches the limit of QueueLength
	QueuePaused      = "queue_paused"        // 100 = an operator has paused a queue
	RateForecast     = "rate_forecast"       // minutes until the success rate falls below the limit of SuccessRate
)

// Names of the rules about events.
const (
	ExceptionOpened = "exception_opened"
	DisputeOpened   = "dispute_opened" // separate from other exceptions because it has a deadline
	DisputeDue      = "dispute_due"    // evidence is due within three days, and none is recorded
	NotifyExhausted = "notify_exhausted"
	BreakerOpened   = "breaker_opened"
	BreakerClosed   = "breaker_closed"
	TargetDisabled  = "target_disabled" // an endpoint answered 410
	// CompensationDead means that a compensation has run out of attempts.
	CompensationDead = "compensation_dead"
	// ProposalWaits means that proposals wait for a decision, one of them for an hour; then again
	// every four hours. All that wait are one alert.
	ProposalWaits = "proposal_waits"
	// SupplierUnreachable means that the breaker of a supplier has opened, and no calls are
	// made to it.
	SupplierUnreachable = "supplier_unreachable"
	// SupplierReachable means that the supplier answers again, and calls to it resume.
	SupplierReachable = "supplier_reachable"
	// PayoutRefused means that a request for a payout had the wrong key or came from an address
	// that is not allowed; see RefusedPayout.
	PayoutRefused = "payout_refused"
	// BreakGlass means that the operator for emergencies has signed in by password.
	BreakGlass = "break_glass"
	// SupplierShort means that our account at a supplier has too little money for a payout or refund.
	SupplierShort  = "supplier_short"
	ClockStep      = "clock_step"      // a node's wall clock was set
	BatchStopped   = "batch_stopped"   // a batch ended early by itself
	CountersDiffer = "counters_differ" // a counter did not match the rows it counts
	BooksDiffer    = "books_differ"    // an invariant of `verify` does not hold
)

// Rule says when an alert fires and how often it is repeated.
type Rule struct {
	bun.BaseModel `bun:"table:alert_rules,alias:ar"`

	Name    string `bun:"name,pk"`
	Enabled bool   `bun:"enabled"`
	// Fire is the level at which the alert fires, Clear the level at which it ends. If Clear is
	// below Fire, the alert is about too much, else about too little. The gap between them
	// keeps a level that hovers around one limit from alerting each time.
	Fire  int64 `bun:"fire"`
	Clear int64 `bun:"clear"`
	// HoldS is for how many seconds the level must stay beyond Fire before the alert fires.
	HoldS int64 `bun:"hold_s"`
	// QuietS is for how many seconds after an alert the same subject does not alert again.
	QuietS int64 `bun:"quiet_s"`
	// WindowS is the number of seconds over which the level is measured, in whole minutes; 0 =
	// a momentary level.
	WindowS int64 `bun:"window_s"`
	// NextMessageAt is the earliest time of the rule's next message (Unix µs).
	NextMessageAt int64 `bun:"next_message_at"`
	UpdatedAt     int64 `bun:"updated_at"`
}

// Watches reports whether the rule has limits that an operator may set. Other rules are about
// events, or about components that either work or do not.
func (r Rule) Watches() bool { return r.Fire != r.Clear && !measureOf(r.Name).onOff }

// Beyond reports whether the level fires the rule, if it stays there for the hold time.
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

// defaults are all rules, as they are until an operator changes them.
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
	{Rule{Name: TestModeDown, Fire: 50, Clear: 0, HoldS: 0, QuietS: 3600}, onOff},
	{Rule{Name: NodesDiffer, Fire: 50, Clear: 0, HoldS: 20, QuietS: 3600}, onOff},
	{Rule{Name: OurFault, Fire: 50, Clear: 0, HoldS: 0, QuietS: 300}, waiting}, // a single one is enough
	{Rule{Name: StuckOrders, Fire: 50, Clear: 0, HoldS: 0, QuietS: 300}, waiting},
	{Rule{Name: MerchantNegative, Fire: 50, Clear: 0, HoldS: 0, QuietS: 3600}, waiting},
	{Rule{Name: Unreadable, Fire: 50, Clear: 0, HoldS: 0, QuietS: 300}, unreadable},
	{Rule{Name: QueuePaused, Fire: 50, Clear: 0, HoldS: 0, QuietS: 60}, onOff},
	{Rule{Name: QueueForecast, Fire: 30, Clear: 60, HoldS: 300, QuietS: 1800}, minutes},
	{Rule{Name: RateForecast, Fire: 60, Clear: 120, HoldS: 300, QuietS: 1800}, minutes},
	{Rule{Name: ExceptionOpened, QuietS: 300}, count},
	// No quiet time: a second dispute on the same day may be due that day.
	{Rule{Name: DisputeOpened}, count},
	{Rule{Name: DisputeDue}, count},
	{Rule{Name: NotifyExhausted, QuietS: 300}, count},
	{Rule{Name: CompensationDead, QuietS: 300}, count},
	{Rule{Name: PayoutRefused, QuietS: 300}, count},
	{Rule{Name: BreakGlass}, count}, // each sign-in
	{Rule{Name: SupplierShort, QuietS: 3600}, count},
	{Rule{Name: ClockStep, QuietS: 300}, count},
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

// Names lists the names of all rules.
var Names = func() (names []string) {
	for _, r := range defaults {
		names = append(names, r.Name)
	}
	return names
}()

// Rules returns all rules with the operators' changes, in the order of the defaults.
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

// ForecastLimit has the limits of the levels that are forecast.
type ForecastLimit struct {
	Backlog float64 // deliveries
	Rate    float64 // 0 to 1
}

// ForecastLimits returns the limits that forecasts are about: those at which the alerts about the
// levels themselves fire.
func ForecastLimits(ctx context.Context, q bun.IDB) (l ForecastLimit, err error) {
	rules, err := Rules(ctx, q)
	if err != nil {
		return l, err
	}
	for _, r := range rules {
		switch r.Name {
		case QueueLength:
			l.Backlog = float64(r.Fire)
		case SuccessRate:
			l.Rate = float64(r.Fire) / 10_000
		}
	}
	return l, nil
}

// find returns the rule with this name.
func find(rules []Rule, name string) (Rule, error) {
	for _, r := range rules {
		if r.Name == name {
			return r, nil
		}
	}
	return Rule{}, fmt.Errorf("there is no rule %q", name)
}

// Save stores a changed rule, by compare-and-set on the time of the previous change. Errors:
// ErrRule, act.ErrChanged.
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

// longest bounds the hold and quiet times of rules: to get less than one alert a week, turn the
// rule off.
const longest = 7 * 24 * time.Hour

// maxWindow bounds windows, which are read minute by minute.
const maxWindow = time.Hour

// check returns what is wrong with a rule, as an ErrRule.
func (r Rule) check() error {
	if err := r.problem(); err != nil {
		return fmt.Errorf("%w: %w", ErrRule, err)
	}
	return nil
}

// ErrRule means that a rule is not valid.
var ErrRule = errors.New("invalid rule")

func (r Rule) problem() error {
	for _, d := range defaults {
		if d.Name != r.Name {
			continue
		}
		if (d.Clear < d.Fire) != (r.Clear < r.Fire) {
			return fmt.Errorf("rule %s: clear (%d) must be on the same side of fire (%d) as in the default (clear %d, fire %d)", r.Name,
				r.Clear, r.Fire, d.Clear, d.Fire)
		}
		if r.Watches() && !r.beyond(0) && !r.beyond(d.measure.highest) {
			return fmt.Errorf("rule %s: no level is ever beyond %d: levels range from 0 to %d", r.Name, r.Fire, d.measure.highest)
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
