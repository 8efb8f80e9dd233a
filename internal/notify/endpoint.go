package notify

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"backstop/internal/alert"
	"backstop/internal/base/db"
	"backstop/internal/exception"
	"backstop/internal/recipient"
	"backstop/internal/report"
	"backstop/internal/settings"

	"github.com/uptrace/bun"
)

const (
	// unhealthyAfter failures in a row an address is passed over where there is another,
	// for unhealthyFor; then one attempt at a time finds out whether it is healthy again.
	unhealthyAfter = 3
	unhealthyFor   = 30 * time.Second
	unhealthyProbe = 12 * time.Second // longer than an attempt takes
	// okEvery is how often the last success of a healthy address is written down.
	okEvery = time.Minute
	// healthEvery is how soon a node knows what the others met.
	healthEvery = 2 * time.Second
	healthRows  = 10_000
)

// address names one address of a merchant or a subscriber.
type address struct {
	owner    int64
	endpoint string
}

func byAddress(a, b address) int {
	return cmp.Or(cmp.Compare(a.owner, b.owner), cmp.Compare(a.endpoint, b.endpoint))
}

// condition is how an address does, as far as this node knows.
type condition struct {
	failures int64 // in a row
	again    int64 // Unix µs from which on it is tried although it is unhealthy
}

// health is what a node knows of addresses: what it met itself at once, what the
// others met within seconds. It only chooses between addresses; a wrong guess
// costs one attempt.
type health struct {
	db  *db.DB
	log *slog.Logger

	mu      sync.Mutex
	failing map[address]condition
	okAt    map[address]int64 // when this node last wrote a success down

	stop   chan struct{}
	closed sync.Once
	done   chan struct{}
}

func newHealth(d *db.DB, log *slog.Logger) *health {
	h := &health{db: d, log: log, failing: map[address]condition{}, okAt: map[address]int64{}, stop: make(chan struct{}), done: make(chan struct{})}
	h.read() // so that a fresh node does not try first what the others know to fail
	go h.run()
	return h
}

func (h *health) close() {
	h.closed.Do(func() { close(h.stop) })
	<-h.done
}

func (h *health) run() {
	defer close(h.done)
	tick := time.NewTicker(healthEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			h.read()
		case <-h.stop:
			return
		}
	}
}

// read takes over what all nodes wrote down. Where that fails, the choice rests on
// what was known before.
func (h *health) read() {
	ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
	defer cancel()
	var rows []struct {
		OwnerID      int64
		Endpoint     string
		Failures     int64
		LastFailedAt int64
	}
	err := h.db.Read.NewRaw("SELECT owner_id, endpoint, failures, last_failed_at FROM endpoint_health"+
		" WHERE failures > 0 AND last_failed_at IS NOT NULL ORDER BY last_failed_at DESC LIMIT ?", healthRows).Scan(ctx, &rows)
	if err != nil {
		h.log.Error("read the health of addresses", "error", db.ErrorText(err))
		return
	}
	failing := make(map[address]condition, len(rows))
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range rows {
		a := address{r.OwnerID, r.Endpoint}
		failing[a] = condition{r.Failures, max(r.LastFailedAt+unhealthyFor.Microseconds(), h.failing[a].again)}
	}
	h.failing = failing
}

// unhealthy says whether to pass an address over; of one whose time has come, it lets
// one attempt through.
func (h *health) unhealthy(owner int64, endpoint string, now int64) bool {
	a := address{owner, endpoint}
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.failing[a]
	if c.failures < unhealthyAfter {
		return false
	}
	if now < c.again {
		return true
	}
	c.again = now + unhealthyProbe.Microseconds()
	h.failing[a] = c
	return false
}

// healthRow is what a batch of results says of one address.
type healthRow struct {
	bun.BaseModel `bun:"table:endpoint_health,alias:eh"`

	OwnerID      int64  `bun:"owner_id,pk"`
	Endpoint     string `bun:"endpoint,pk"`
	Failures     int64  `bun:"failures"`
	LastOKAt     *int64 `bun:"last_ok_at"`
	LastFailedAt *int64 `bun:"last_failed_at"`
	LastError    string `bun:"last_error"`
	Reason       string `bun:"reason"`
}

// note adds a batch up by address and says what is worth writing down: failures,
// the first success after them, and now and then that all is healthy.
func (h *health) note(batch []*outcome, won map[int64]bool, now int64) []healthRow {
	rows := map[address]*healthRow{}
	for _, o := range batch {
		if o.endpoint == "" || !won[o.claimed.ID] || o.attempt.Class == Internal {
			continue
		}
		a := address{o.claimed.MerchantID, o.endpoint}
		r := rows[a]
		if r == nil {
			r = &healthRow{OwnerID: a.owner, Endpoint: a.endpoint}
			rows[a] = r
		}
		if o.attempt.Class == OK {
			r.Failures, r.LastOKAt, r.LastError = 0, &now, ""
			continue
		}
		r.Failures, r.LastFailedAt, r.LastError = r.Failures+1, &now, o.attempt.Error
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var worth []healthRow
	for a, r := range rows {
		before := h.failing[a]
		if r.LastFailedAt == nil && before.failures == 0 && now-h.okAt[a] < okEvery.Microseconds() {
			continue
		}
		if r.LastOKAt != nil {
			before.failures, h.okAt[a] = 0, now
		}
		if before.failures += r.Failures; before.failures == 0 {
			delete(h.failing, a)
		} else {
			h.failing[a] = condition{before.failures, now + unhealthyFor.Microseconds()}
		}
		worth = append(worth, *r)
	}
	// One order for everybody: two nodes must not wait for each other in a circle.
	slices.SortFunc(worth, func(a, b healthRow) int {
		return byAddress(address{a.OwnerID, a.Endpoint}, address{b.OwnerID, b.Endpoint})
	})
	return worth
}

// settle does what a batch of results means beside its deliveries: the health of
// addresses, those that are gone, and money that several deliveries share.
func (r *results) settle(ctx context.Context, tx db.Tx, w *db.Writes, batch []*outcome, won map[int64]bool) error {
	if rows := r.health.note(batch, won, r.o.DB.Now()); len(rows) > 0 {
		w.Add(tx.NewInsert().Model(&rows).On("CONFLICT (owner_id, endpoint) DO UPDATE").
			Set("failures = CASE WHEN EXCLUDED.last_ok_at IS NULL THEN eh.failures + EXCLUDED.failures ELSE EXCLUDED.failures END").
			Set("last_ok_at = coalesce(EXCLUDED.last_ok_at, eh.last_ok_at)").
			Set("last_failed_at = coalesce(EXCLUDED.last_failed_at, eh.last_failed_at)").
			Set("last_error = EXCLUDED.last_error"))
	}
	// Events are locked before addresses, which w locks last of all.
	if err := r.settleShared(ctx, tx, w, batch, won); err != nil {
		return err
	}
	return r.disableGone(ctx, tx, batch, won)
}

// gone says that the address itself answered that it is to be left alone
// (Standard Webhooks: 410 Gone disables the endpoint).
func gone(o *outcome) bool { return o.endpoint != "" && o.attempt.HTTPStatus == http.StatusGone }

// disableGone disables addresses that answered 410, for all nodes, with an alert.
func (r *results) disableGone(ctx context.Context, tx db.Tx, batch []*outcome, won map[int64]bool) error {
	var all []address
	for _, o := range batch {
		if a := (address{o.claimed.MerchantID, o.endpoint}); gone(o) && won[o.claimed.ID] && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, byAddress)
	// The settings' version is locked before addresses are, as apply does it.
	if err := settings.Bump(ctx, tx); err != nil {
		return err
	}
	var events []alert.Event
	for _, a := range all {
		res, err := tx.NewRaw("INSERT INTO endpoint_health AS eh (owner_id, endpoint, failures, last_error, disabled_at, reason) VALUES (?, ?, 0, '', ?, ?)"+
			" ON CONFLICT (owner_id, endpoint) DO UPDATE SET disabled_at = EXCLUDED.disabled_at, reason = EXCLUDED.reason WHERE eh.disabled_at IS NULL",
			a.owner, a.endpoint, r.o.DB.Now(), "answered 410").Exec(ctx)
		if err != nil {
			return fmt.Errorf("disable an address: %w", err)
		}
		if n, _ := res.RowsAffected(); n > 0 {
			events = append(events, alert.Event{Rule: alert.TargetDisabled, Subject: r.addressName(a), Count: 1})
		}
	}
	return alert.Record(ctx, tx, r.o.DB, events)
}

// addressName is an address for people: whose, and its name or its host. The path
// of a URL may be a secret.
func (r *results) addressName(a address) string {
	owner, name := strconv.FormatInt(a.owner, 10), a.endpoint
	if m := r.o.Book().ByID(a.owner); m != nil {
		owner = m.Code
	}
	if u, err := url.Parse(name); err == nil && u.Host != "" {
		name = u.Host
	}
	return owner + " – " + name
}

// settleShared takes the money of events off the totals whose last delivery that
// the merchant must get is over, and counts those as notified of which each is
// delivered. The events are locked: of two transactions that end the last two
// deliveries, the second one sees the first.
func (r *results) settleShared(ctx context.Context, tx db.Tx, w *db.Writes, batch []*outcome, won map[int64]bool) error {
	ended := map[int64]claimed{} // by event
	var events, subjects []int64
	for _, o := range batch {
		c := o.claimed
		if _, seen := ended[c.EventID]; seen || o.status == RetryWait || !won[c.ID] || !c.Shared || c.Currency == "" {
			continue
		}
		ended[c.EventID] = c
		events, subjects = append(events, c.EventID), append(subjects, c.SubjectID)
	}
	if len(ended) == 0 {
		return nil
	}
	missing, err := missingShares(ctx, tx, r.o.DB, events, subjects)
	if err != nil {
		return err
	}
	x := report.NewDelta(r.o.DB.Now())
	for id, c := range ended {
		waits, lacks := missing[id]
		if !waits {
			x.Untold(c.MerchantID, c.Currency, -1, -c.Amount)
		}
		if !lacks {
			c.notified(x)
		}
	}
	x.Write(w, r.o.DB)
	return nil
}

// missingShares locks the events and returns those of which a delivery with money
// has not been delivered, and whether one of these waits or is on its way.
func missingShares(ctx context.Context, tx db.Tx, d *db.DB, events, subjects []int64) (map[int64]bool, error) {
	slices.Sort(events)
	var locked []int64
	lock := tx.NewSelect().Table("events").Column("id").Where("id IN (?)", bun.List(events)).OrderExpr("id")
	if err := d.ForUpdate(lock).Scan(ctx, &locked); err != nil {
		return nil, fmt.Errorf("lock events: %w", err)
	}
	var rows []struct{ EventID, Waiting int64 }
	err := tx.NewRaw("SELECT event_id, count(next_at) AS waiting FROM deliveries WHERE subject_id IN (?) AND event_id IN (?)"+
		" AND currency <> '' AND status NOT IN (?, ?) GROUP BY event_id", bun.List(subjects), bun.List(events), Delivered, Skipped).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the deliveries of an event: %w", err)
	}
	missing := make(map[int64]bool, len(rows))
	for _, r := range rows {
		missing[r.EventID] = r.Waiting > 0
	}
	return missing, nil
}

// deskPlace is the kind and subject of the exception for a notification that ran
// out of attempts. A merchant's event is one exception, however many addresses it
// had; each subscriber has its own.
func deskPlace(id string, to recipient.Recipient) (kind, subject string) {
	if to.IsSubscriber() {
		return exception.SubscriptionExhausted, id + "/" + strconv.FormatInt(to.ID, 36)
	}
	return exception.NotifyExhausted, id
}

// EnableEndpoint lets an address be used again that was disabled. Every node knows
// within two seconds.
func EnableEndpoint(ctx context.Context, tx db.Tx, owner int64, endpoint string) error {
	if err := settings.Bump(ctx, tx); err != nil {
		return err
	}
	_, err := tx.NewRaw("UPDATE endpoint_health SET disabled_at = NULL, reason = '', failures = 0 WHERE owner_id = ? AND endpoint = ? AND disabled_at IS NOT NULL",
		owner, endpoint).Exec(ctx)
	if err != nil {
		return fmt.Errorf("enable an address: %w", err)
	}
	return nil
}
