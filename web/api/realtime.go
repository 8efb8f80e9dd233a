package api

import (
	"math"
	"time"

	"backstop/internal/breaker"
	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/internal/recipient"
	"backstop/internal/report"

	"github.com/gofiber/fiber/v2"
)

// ratesView is the results of attempts within a span. Rates are 0 to 1, null if undefined;
// times are null if nothing was measured.
type ratesView struct {
	Attempts    int64    `json:"attempts"`
	OK          int64    `json:"ok"`
	Retried     int64    `json:"retried"`
	Failed      int64    `json:"failed"`
	SuccessRate *float64 `json:"success_rate"` // acknowledged, of all attempts
	RetryRate   *float64 `json:"retry_rate"`   // to be retried, of all attempts
	ErrorRate   *float64 `json:"error_rate"`   // given up, of the notifications that ended
	MeanMS      *float64 `json:"mean_ms"`
	P50MS       *float64 `json:"p50_ms"`
	P95MS       *float64 `json:"p95_ms"`
	P99MS       *float64 `json:"p99_ms"`
	// Over means that the percentile exceeds the value given.
	P50Over bool `json:"p50_over"`
	P95Over bool `json:"p95_over"`
	P99Over bool `json:"p99_over"`
}

func ratesOf(p report.Point) ratesView {
	v := ratesView{
		Attempts: p.Attempts(), OK: p.OK, Retried: p.Retried, Failed: p.Failed,
		SuccessRate: ratio(p.OK, p.Attempts()), RetryRate: ratio(p.Retried, p.Attempts()), ErrorRate: ratio(p.Failed, p.OK+p.Failed),
	}
	v.P50MS, v.P50Over = quantileMS(p, .5)
	v.P95MS, v.P95Over = quantileMS(p, .95)
	v.P99MS, v.P99Over = quantileMS(p, .99)
	if n := p.Attempts(); n > 0 {
		v.MeanMS = milliseconds(time.Duration(p.TookUS) * time.Microsecond / time.Duration(n))
	}
	return v
}

func ratio(part, of int64) *float64 {
	if of == 0 {
		return nil
	}
	r := float64(part) / float64(of)
	return &r
}

func quantileMS(p report.Point, q float64) (ms *float64, over bool) {
	l, ok := p.Took.Quantile(q)
	if !ok {
		return nil, false
	}
	return milliseconds(l.D), l.Over
}

// milliseconds rounds to the microsecond, the precision of the measurement.
func milliseconds(d time.Duration) *float64 {
	ms := math.Round(float64(d)/float64(time.Microsecond)) / 1000
	return &ms
}

// windowView is one window of realtime.
type windowView struct {
	Minutes int    `json:"minutes"`
	From    string `json:"from"`
	ratesView
	ordersView
}

// ordersView counts the orders whose notifications were created within a span, and how many of
// them have been delivered by now. The rate is null if there were none.
type ordersView struct {
	Raised     int64            `json:"orders_raised"`
	Notified   int64            `json:"orders_notified"`
	Rate       *float64         `json:"orders_notified_rate"`
	ByCurrency []ordersSumsView `json:"orders_by_currency"`
}

type ordersSumsView struct {
	Currency       string `json:"currency"`
	Raised         int64  `json:"raised"`
	RaisedAmount   int64  `json:"raised_amount"`
	Notified       int64  `json:"notified"`
	NotifiedAmount int64  `json:"notified_amount"`
}

func ordersOf(all []report.Notified) ordersView {
	v := ordersView{ByCurrency: make([]ordersSumsView, len(all))}
	for i, n := range all {
		v.Raised, v.Notified = v.Raised+n.Raised, v.Notified+n.Notified
		v.ByCurrency[i] = ordersSumsView(n)
	}
	v.Rate = ratio(v.Notified, v.Raised)
	return v
}

// untriedView counts the orders without an attempt so far.
type untriedView struct {
	Orders        int64   `json:"orders"`
	Capped        bool    `json:"capped"`
	OldestSeconds float64 `json:"oldest_seconds"`
}

// moneyView is money of one currency in minor units.
type moneyView struct {
	Currency string `json:"currency"`
	Orders   int64  `json:"orders"`
	Amount   int64  `json:"amount"`
}

func moneyOf(s report.Standing) []moneyView {
	out := make([]moneyView, len(s.Sums))
	for i, m := range s.Sums {
		out[i] = moneyView{m.Currency, m.Orders, m.Minor}
	}
	return out
}

type queueView struct {
	Queue string `json:"queue"`
	// Rows is null for a queue without rows in the database.
	Rows           *int64  `json:"rows"`
	RowsCapped     bool    `json:"rows_capped"`
	OverdueSeconds float64 `json:"overdue_seconds"`
	// Tasks is null while Redis does not respond.
	Tasks         *int64  `json:"tasks"`
	OldestSeconds float64 `json:"oldest_seconds"`
}

type realtimeView struct {
	At                 string                 `json:"at"`
	CallbacksPerSecond float64                `json:"callbacks_per_second"`
	Windows            []windowView           `json:"windows"`
	NotTried           untriedView            `json:"not_tried"`
	InFlight           int64                  `json:"in_flight"`
	InFlightCapped     bool                   `json:"in_flight_capped"`
	RedisReachable     bool                   `json:"redis_reachable"`
	BreakersOpen       int                    `json:"breakers_open"`
	SlowMerchants      int                    `json:"slow_merchants"`
	Queues             []queueView            `json:"queues"`
	Unnotified         []moneyView            `json:"untold"`
	AtRisk             map[string][]moneyView `json:"at_risk"`
}

// realtime returns the current state.
func (s *handlers) realtime(c *fiber.Ctx) error {
	now, err := s.Console.Realtime(c.UserContext(), s.Queues)
	if err != nil {
		return err
	}
	v := realtimeView{
		At: notify.Stamp(now.At), CallbacksPerSecond: now.Outcomes.PerSecond, InFlight: now.Queues.InFlight,
		InFlightCapped: now.Queues.InFlightMore, RedisReachable: !now.Queues.RedisDown, SlowMerchants: now.Queues.Slow,
		Unnotified: moneyOf(now.Risk.Parts[report.Unnotified]), AtRisk: map[string][]moneyView{},
	}
	for _, w := range now.Windows {
		v.Windows = append(v.Windows, windowView{
			Minutes: w.Minutes, From: notify.Stamp(w.From), ratesView: ratesOf(w.Point),
			ordersView: ordersOf(w.Notified),
		})
	}
	u := now.Outcomes.Untried
	if v.NotTried = (untriedView{Orders: u.Orders, Capped: u.More}); u.Oldest > 0 {
		v.NotTried.OldestSeconds = float64(now.At-u.Oldest) / 1e6
	}
	for _, r := range s.Breakers.All() {
		if r.Tripped() {
			v.BreakersOpen++
		}
	}
	for _, part := range report.Parts {
		v.AtRisk[string(part)] = moneyOf(now.Risk.Parts[part])
	}
	for _, l := range now.Queues.Lanes {
		v.Queues = append(v.Queues, queueOf(l, now.Queues.RedisDown))
	}
	return c.JSON(v)
}

func queueOf(l console.Lane, redisDown bool) queueView {
	q := queueView{Queue: l.Name, RowsCapped: l.More, OverdueSeconds: l.Overdue.Seconds(), OldestSeconds: l.Latency.Seconds()}
	if l.Kept {
		q.Rows = &l.Rows
	}
	if !redisDown {
		tasks := int64(l.InRedis)
		q.Tasks = &tasks
	}
	return q
}

type merchantView struct {
	Merchant string `json:"merchant"`
	Name     string `json:"name"`
	Disabled bool   `json:"disabled"`
	Breaker  string `json:"breaker"`
	Slow     bool   `json:"slow"` // some node currently notifies it in its slow pool
	ratesView
	LastSuccessAt *string     `json:"last_success_at"`
	LastFailureAt *string     `json:"last_failure_at"`
	WaitingOrders int64       `json:"waiting_orders"`
	OldestDueAt   *string     `json:"oldest_due_at"`
	AtRisk        []moneyView `json:"at_risk"`
}

// breakerState returns the state in this node's copy; without a row it is closed.
func (s *handlers) breakerState(merchant int64) breaker.State {
	if r := s.Breakers.Of(recipient.OfMerchant(merchant)); r != nil {
		return r.State
	}
	return breaker.Closed
}

// stampOr formats a time; 0 is null.
func stampOr(us int64) *string {
	if us == 0 {
		return nil
	}
	text := notify.Stamp(us)
	return &text
}

// merchantQuery wants one merchant, or a page of all.
type merchantQuery struct {
	Merchant string `query:"merchant" doc:"The merchant's code."`
	paging
}

// merchantStatuses returns the state of each merchant, by page.
func (s *handlers) merchantStatuses(c *fiber.Ctx) error {
	r := requestOf[merchantQuery](c)
	rows, next, err := s.Console.MerchantStatuses(c.UserContext(), r.Merchant, r.Cursor, int(r.Limit))
	if err != nil {
		return err
	}
	if r.Merchant != "" && len(rows) == 0 && r.Cursor == 0 {
		return errUnknownCode
	}
	return c.JSON(pageOf(rows, next, func(m console.MerchantStatus) merchantView {
		return merchantView{
			Merchant: m.Code, Name: m.Name, Disabled: m.Disabled, Breaker: string(s.breakerState(m.ID)), Slow: m.Slow,
			ratesView:     ratesOf(m.Point),
			LastSuccessAt: stampOr(m.LastOK), LastFailureAt: stampOr(m.LastFailed),
			WaitingOrders: m.Waiting, OldestDueAt: stampOr(m.DueAt), AtRisk: moneyOf(m.AtRisk),
		}
	}))
}
