package alert

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/metric"
	"backstop/internal/base/money"

	"github.com/uptrace/bun"
)

// Alert is one thing that people are told of.
type Alert struct {
	bun.BaseModel `bun:"table:alerts,alias:al"`

	ID         int64        `bun:"id,pk"`
	Rule       string       `bun:"rule"`
	Subject    string       `bun:"subject"` // queue, merchant, supplier or node
	State      string       `bun:"state"`
	Value      int64        `bun:"value"`          // in the rule's unit, the worst while it fires
	Count      int64        `bun:"count"`          // how often it happened
	Sums       money.Totals `bun:"sums,type:text"` // its money
	OpenedAt   int64        `bun:"opened_at"`
	UpdatedAt  int64        `bun:"updated_at"`
	ResolvedAt *int64       `bun:"resolved_at"`
	AnnounceAt *int64       `bun:"announce_at"` // when people are to hear of it, nil = they have
}

// Reading is one level of one subject now. What cannot be known is left out: an
// unknown level neither fires nor clears.
type Reading struct {
	Rule, Subject string
	Value         int64
	// Rest stands for all other subjects of the rule instead: everybody was looked
	// at, and of them there is nothing to be read.
	Rest bool
	// Sums is the money behind the level, where the rule names some.
	Sums money.Totals
}

// gather is how long an alert waits for company before people hear of it: what
// breaks together is told in one message.
const gather = 2 * time.Second

// maxWatched bounds the subjects that wait for their hold time on this node.
const maxWatched = 10_000

// Watch compares levels with the rules. One node at a time should (db.Lease); two
// at once do no harm, the firing row is unique.
type Watch struct {
	db  *db.DB
	log *slog.Logger

	mu     sync.Mutex
	beyond map[[2]string]time.Time // since when a level is beyond its limit
}

// NewWatch returns a Watch.
func NewWatch(d *db.DB, log *slog.Logger) *Watch {
	return &Watch{db: d, log: log, beyond: map[[2]string]time.Time{}}
}

// Observe takes one round of readings at a moment of the local monotonic clock.
func (w *Watch) Observe(ctx context.Context, at time.Time, readings []Reading) error {
	rules, err := Rules(ctx, w.db.Read)
	if err != nil {
		return err
	}
	by := make(map[string]Rule, len(rules))
	for _, r := range rules {
		by[r.Name] = r
	}
	firing, err := w.firing(ctx)
	if err != nil {
		return err
	}
	read, rest := map[[2]string]bool{}, map[string]bool{}
	for _, r := range readings {
		if r.Rest {
			rest[r.Rule] = true
			continue
		}
		read[[2]string{r.Rule, r.Subject}] = true
		rule, known := by[r.Rule]
		if !known {
			return fmt.Errorf("a reading of the unknown rule %q", r.Rule)
		}
		open, fires := firing[[2]string{r.Rule, r.Subject}]
		switch {
		case fires && (rule.back(r.Value) || !rule.Enabled):
			err = w.resolve(ctx, open, r.Value)
		case fires && rule.worse(r.Value, open.Value):
			_, err = w.db.NewRaw("UPDATE alerts SET value = ?, sums = ?, updated_at = ? WHERE id = ? AND state = ?", r.Value, r.Sums, w.db.Now(), open.ID, Firing).Exec(ctx)
		case !fires && rule.Enabled && w.held(rule, r, at):
			err = w.fire(ctx, rule, r)
		}
		if err != nil {
			return err
		}
	}
	for key, open := range firing {
		if rest[open.Rule] && !read[key] {
			if err := w.lapse(ctx, open); err != nil {
				return err
			}
		}
	}
	return nil
}

// worse says whether a level is further beyond the limit than another.
func (r Rule) worse(value, than int64) bool {
	if r.Clear < r.Fire {
		return value > than
	}
	return value < than
}

// held says whether the level has been beyond its limit for the rule's hold time.
func (w *Watch) held(rule Rule, r Reading, at time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := [2]string{r.Rule, r.Subject}
	if !rule.beyond(r.Value) {
		delete(w.beyond, key)
		return false
	}
	since, ok := w.beyond[key]
	if !ok {
		if len(w.beyond) >= maxWatched {
			clear(w.beyond) // subjects that went away without another reading
		}
		w.beyond[key], since = at, at
	}
	return at.Sub(since) >= time.Duration(rule.HoldS)*time.Second
}

func (w *Watch) firing(ctx context.Context) (map[[2]string]Alert, error) {
	var rows []Alert
	if err := w.db.Read.NewSelect().Model(&rows).Where("al.state = 'firing'").Limit(maxWatched).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read firing alerts: %w", err)
	}
	by := make(map[[2]string]Alert, len(rows))
	for _, a := range rows {
		by[[2]string{a.Rule, a.Subject}] = a
	}
	return by, nil
}

// fire opens an alert, unless the subject rang less than the rule's quiet time
// ago.
func (w *Watch) fire(ctx context.Context, rule Rule, r Reading) error {
	now := w.db.Now()
	announce := now + gather.Microseconds()
	a := &Alert{
		ID: w.db.NewID(), Rule: r.Rule, Subject: r.Subject, State: Firing, Value: r.Value, Count: 1,
		OpenedAt: now, UpdatedAt: now, AnnounceAt: &announce, Sums: r.Sums,
	}
	var last []int64
	err := w.db.Read.NewRaw("SELECT opened_at FROM alerts WHERE rule = ? AND subject = ? ORDER BY id DESC LIMIT 1", r.Rule, r.Subject).Scan(ctx, &last)
	if err != nil {
		return fmt.Errorf("look for the last alert: %w", err)
	}
	if len(last) > 0 && now-last[0] < rule.QuietS*1_000_000 {
		return nil
	}
	res, err := w.db.NewInsert().Model(a).On("CONFLICT DO NOTHING").Exec(ctx)
	if err != nil {
		return fmt.Errorf("open an alert: %w", err)
	}
	if n, _ := res.RowsAffected(); n == 1 {
		metric.Alerts.WithLabelValues(r.Rule).Inc()
		w.log.Warn("alert", "rule", r.Rule, "subject", r.Subject, "value", r.Value, "limit", rule.Fire)
	}
	return nil
}

// resolve ends an alert. People who were told hear of the end too; where the
// alert was not announced yet, nobody needs to hear of either.
func (w *Watch) resolve(ctx context.Context, a Alert, value int64) error {
	now := w.db.Now()
	_, err := w.db.NewRaw("UPDATE alerts SET state = ?, resolved_at = ?, updated_at = ?,"+
		" announce_at = CASE WHEN announce_at IS NULL THEN ? END WHERE id = ? AND state IN (?)",
		Resolved, now, now, now, a.ID, bun.List(Moves.From(Resolved))).Exec(ctx)
	if err != nil {
		return fmt.Errorf("end an alert: %w", err)
	}
	w.log.Info("alert ended", "rule", a.Rule, "subject", a.Subject, "value", value)
	return nil
}

// lapse ends an alert of which nothing can be read any more, such as a merchant
// that is told nothing now: left open, it would keep the next trouble from ringing.
// Nobody hears of it, for nobody knows that it is well.
func (w *Watch) lapse(ctx context.Context, a Alert) error {
	now := w.db.Now()
	_, err := w.db.NewRaw("UPDATE alerts SET state = ?, resolved_at = ?, updated_at = ? WHERE id = ? AND state IN (?)",
		Resolved, now, now, a.ID, bun.List(Moves.From(Resolved))).Exec(ctx)
	if err != nil {
		return fmt.Errorf("end an alert: %w", err)
	}
	w.log.Info("alert lapsed", "rule", a.Rule, "subject", a.Subject)
	return nil
}

// Event is something that happened Count times to a subject.
type Event struct {
	Rule, Subject string
	Count         int64
	Sums          money.Totals
}

// Record keeps events. Those of one rule and subject within the rule's quiet time
// are one alert that counts them, so that ten thousand exceptions of one cause
// are one line for people.
func Record(ctx context.Context, tx db.Tx, d *db.DB, events []Event) error {
	if len(events) == 0 {
		return nil
	}
	rules, err := Rules(ctx, tx)
	if err != nil {
		return err
	}
	now := d.Now()
	for _, e := range events {
		rule, err := find(rules, e.Rule)
		if err != nil {
			return err
		}
		if !rule.Enabled {
			continue
		}
		var last []Alert
		err = tx.NewSelect().Model(&last).Where("al.rule = ? AND al.subject = ?", e.Rule, e.Subject).OrderExpr("al.id DESC").Limit(1).Scan(ctx)
		if err != nil {
			return fmt.Errorf("look for the last event: %w", err)
		}
		if len(last) > 0 && last[0].OpenedAt > now-rule.QuietS*1_000_000 {
			sums := last[0].Sums
			sums.Merge(e.Sums)
			if _, err := tx.NewRaw("UPDATE alerts SET count = count + ?, sums = ?, updated_at = ? WHERE id = ?", e.Count, sums, now, last[0].ID).Exec(ctx); err != nil {
				return fmt.Errorf("count an event: %w", err)
			}
			continue
		}
		announce := now + gather.Microseconds()
		a := &Alert{
			ID: d.NewID(), Rule: e.Rule, Subject: e.Subject, State: Happened, Count: e.Count, Sums: e.Sums,
			OpenedAt: now, UpdatedAt: now, AnnounceAt: &announce,
		}
		if _, err := tx.NewInsert().Model(a).Exec(ctx); err != nil {
			return fmt.Errorf("write an event: %w", err)
		}
		metric.Alerts.WithLabelValues(e.Rule).Inc()
	}
	return nil
}

func find(rules []Rule, name string) (Rule, error) {
	for _, r := range rules {
		if r.Name == name {
			return r, nil
		}
	}
	return Rule{}, fmt.Errorf("there is no rule %q", name)
}

// Fires is how many alerts of one rule fire.
type Fires struct {
	Rule, Subject string // Subject is one of them
	Count, Oldest int64
}

// FiringByRule counts the alerts that fire, by rule, in the order of the rules.
// Those of the rules without a subject of their own in the answer (apart) come one
// by one.
func FiringByRule(ctx context.Context, q bun.IDB, apart ...string) ([]Fires, error) {
	var rows []Fires
	err := q.NewRaw("SELECT rule, min(subject) AS subject, count(*) AS count, min(opened_at) AS oldest FROM alerts WHERE state = 'firing'"+
		" GROUP BY rule, CASE WHEN rule IN (?) THEN subject ELSE '' END ORDER BY 1, 2 LIMIT ?", bun.List(append(apart, "")), firingCounted).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("count firing alerts by rule: %w", err)
	}
	return rows, nil
}

// firingCounted bounds the count of firing alerts.
const firingCounted = 1000

// CountFiring is how many alerts are firing, at most firingCounted.
func CountFiring(ctx context.Context, q bun.IDB) (n int64, err error) {
	err = q.NewRaw("SELECT count(*) FROM (SELECT rule FROM alerts WHERE state = 'firing' LIMIT ?) AS f", firingCounted).Scan(ctx, &n)
	if err != nil {
		return 0, fmt.Errorf("count firing alerts: %w", err)
	}
	return n, nil
}
