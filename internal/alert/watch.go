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

// Alert is one problem or event that operators are notified of.
type Alert struct {
	bun.BaseModel `bun:"table:alerts,alias:al"`

	ID         int64        `bun:"id,pk"`
	Rule       string       `bun:"rule"`
	Subject    string       `bun:"subject"` // queue, merchant, supplier or node
	State      string       `bun:"state"`
	Value      int64        `bun:"value"`          // in the rule's unit; the worst while it fires
	Count      int64        `bun:"count"`          // how often it happened
	Sums       money.Totals `bun:"sums,type:text"` // its money
	OpenedAt   int64        `bun:"opened_at"`
	UpdatedAt  int64        `bun:"updated_at"`
	ResolvedAt *int64       `bun:"resolved_at"`
	AnnounceAt *int64       `bun:"announce_at"` // when the message is due; nil = written, or none is sent
	IncidentID int64        `bun:"incident_id"` // 0 = the rule has no incidents
}

// Reading is the current level of one subject. Unknown levels are left out: they neither fire
// nor clear.
type Reading struct {
	Rule, Subject string
	Value         int64
	// Rest stands for all other subjects of the rule: all were read, and these have no level. The
	// subjects of Except are read elsewhere, or could not be read.
	Rest   bool
	Except []string
	// Sums is the money behind the level, if the rule has any.
	Sums money.Totals
}

// gather is how long an alert waits for others before it is announced, so that what breaks
// together is one message.
const gather = 2 * time.Second

// maxWatched bounds the subjects within their hold time on this node.
const maxWatched = 10_000

// Watch compares levels with the rules. One node at a time should run it (db.Lease); two at
// once do no harm, because the firing row is unique.
type Watch struct {
	db  *db.DB
	log *slog.Logger

	mu     sync.Mutex
	beyond map[key]time.Time // since when a level is beyond its limit
}

type key struct{ rule, subject string }

// NewWatch returns a Watch.
func NewWatch(d *db.DB, log *slog.Logger) *Watch {
	return &Watch{db: d, log: log, beyond: map[key]time.Time{}}
}

// Observe compares one round of readings with the rules; at is on the local monotonic clock.
func (w *Watch) Observe(ctx context.Context, at time.Time, readings []Reading) error {
	rules, err := Rules(ctx, w.db.Read)
	if err != nil {
		return err
	}
	firing, err := w.firing(ctx)
	if err != nil {
		return err
	}
	read, rest := map[key]bool{}, map[string]bool{}
	for _, r := range readings {
		if r.Rest {
			rest[r.Rule] = true
			for _, subject := range r.Except {
				read[key{r.Rule, subject}] = true
			}
			continue
		}
		k := key{r.Rule, r.Subject}
		read[k] = true
		rule, err := find(rules, r.Rule)
		if err != nil {
			return err
		}
		open, fires := firing[k]
		switch {
		case fires && (rule.back(r.Value) || !rule.Enabled):
			if err = w.end(ctx, open, true); err == nil {
				w.log.Info("alert ended", "rule", r.Rule, "subject", r.Subject, "value", r.Value)
			}
		case fires && rule.worse(r.Value, open.Value):
			err = w.worsen(ctx, rule, open, r)
		case !fires && rule.Enabled && w.held(rule, r, at):
			err = w.fire(ctx, rule, r)
		}
		if err != nil {
			return err
		}
	}
	for k, open := range firing {
		_, unknown := find(rules, open.Rule)
		if rest[open.Rule] && !read[k] || unknown != nil {
			// The subject has no level any more, such as a merchant without recent attempts or a
			// node that was removed, or this version no longer has the rule. Left open, the alert
			// would suppress the next one.
			if err := w.end(ctx, open, false); err != nil {
				return err
			}
			w.log.Info("alert lapsed", "rule", k.rule, "subject", k.subject)
		}
	}
	return nil
}

// held reports whether the level has been beyond its limit for the rule's hold time.
func (w *Watch) held(rule Rule, r Reading, at time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := key{r.Rule, r.Subject}
	if !rule.beyond(r.Value) {
		delete(w.beyond, k)
		return false
	}
	since, ok := w.beyond[k]
	if !ok {
		if len(w.beyond) >= maxWatched {
			clear(w.beyond) // subjects that disappeared without another reading
		}
		w.beyond[k], since = at, at
	}
	return at.Sub(since) >= time.Duration(rule.HoldS)*time.Second
}

func (w *Watch) firing(ctx context.Context) (map[key]Alert, error) {
	var rows []Alert
	if err := w.db.Read.NewSelect().Model(&rows).Where("al.state = 'firing'").Limit(maxWatched).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read firing alerts: %w", err)
	}
	firing := make(map[key]Alert, len(rows))
	for _, a := range rows {
		firing[key{a.Rule, a.Subject}] = a
	}
	return firing, nil
}

// fire opens an alert, unless the subject's last one was opened within the rule's quiet time.
func (w *Watch) fire(ctx context.Context, rule Rule, r Reading) error {
	a := opened(w.db, Alert{Rule: r.Rule, Subject: r.Subject, State: Firing, Value: r.Value, Count: 1, Sums: r.Sums})
	var last []int64
	err := w.db.Read.NewRaw("SELECT opened_at FROM alerts WHERE rule = ? AND subject = ? ORDER BY id DESC LIMIT 1", r.Rule,
		r.Subject).Scan(ctx, &last)
	if err != nil {
		return fmt.Errorf("look for the last alert: %w", err)
	}
	if len(last) > 0 && a.OpenedAt-last[0] < rule.QuietS*1_000_000 {
		return nil
	}
	fired := false
	err = w.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		res, err := tx.NewInsert().Model(a).On("CONFLICT DO NOTHING").Exec(ctx)
		if err != nil {
			return fmt.Errorf("open an alert: %w", err)
		}
		if n, _ := res.RowsAffected(); n == 0 {
			return nil // another node did
		}
		fired = true
		id, err := join(ctx, tx, w.db, rule, *a)
		if err != nil {
			return err
		}
		_, err = tx.NewRaw("UPDATE alerts SET incident_id = ? WHERE id = ?", id, a.ID).Exec(ctx)
		return wrap("link an alert to its incident", err)
	})
	if err != nil {
		return err
	}
	if fired {
		metric.Alerts.WithLabelValues(r.Rule).Inc()
		w.log.Warn("alert", "rule", r.Rule, "subject", r.Subject, "value", r.Value, "limit", rule.Fire)
	}
	return nil
}

// opened returns a new alert, opened now.
func opened(d *db.DB, a Alert) *Alert {
	now := d.Now()
	announce := now + gather.Microseconds()
	a.ID, a.OpenedAt, a.UpdatedAt, a.AnnounceAt = d.NewID(), now, now, &announce
	return &a
}

// worsen records that a firing alert's level is worse than before.
func (w *Watch) worsen(ctx context.Context, rule Rule, open Alert, r Reading) error {
	return w.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		if err := worsen(ctx, tx, rule, open.IncidentID, r.Value, r.Sums); err != nil {
			return err
		}
		_, err := tx.NewRaw("UPDATE alerts SET value = ?, sums = ?, updated_at = ? WHERE id = ? AND state = ?", r.Value, r.Sums, w.db.Now(),
			open.ID, Firing).Exec(ctx)
		return wrap("update an alert", err)
	})
}

// end ends an alert. With announce, its end is announced if its beginning was; otherwise
// neither is.
func (w *Watch) end(ctx context.Context, a Alert, announce bool) error {
	now := w.db.Now()
	return w.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		if err := clears(ctx, tx, a.IncidentID, now); err != nil {
			return err
		}
		q := tx.NewUpdate().Model((*Alert)(nil)).Set("state = ?", Resolved).Set("resolved_at = ?", now).Set("updated_at = ?", now).
			Where("id = ?", a.ID).Where("state IN (?)", bun.List(Moves.From(Resolved)))
		if announce {
			q.Set("announce_at = CASE WHEN announce_at IS NULL THEN ? END", now)
		}
		_, err := q.Exec(ctx)
		return wrap("end an alert", err)
	})
}

// Event is something that happened Count times to a subject.
type Event struct {
	Rule, Subject string
	Count         int64
	Sums          money.Totals
	Once          bool // not if its subject has an alert already
}

// Record stores events. Events of one rule and subject within the rule's quiet time become one
// alert with a count, so that ten thousand exceptions with one cause are one line. If an operator
// has closed its incident meanwhile, the next event is a new alert.
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
		if e.Once {
			known, err := tx.NewSelect().Table("alerts").Where("rule = ? AND subject = ?", e.Rule, e.Subject).Exists(ctx)
			if err != nil {
				return fmt.Errorf("look for an earlier event: %w", err)
			}
			if known {
				continue
			}
		}
		rule, err := find(rules, e.Rule)
		if err != nil {
			return err
		}
		_, ends := closes[e.Rule]
		if !rule.Enabled && !ends {
			continue
		}
		a := opened(d, Alert{Rule: e.Rule, Subject: e.Subject, State: Happened, Count: e.Count, Sums: e.Sums})
		if a.IncidentID, err = join(ctx, tx, d, rule, *a); err != nil {
			return err
		}
		if !rule.Enabled { // the incident of what has ended is over without a message of its own
			continue
		}
		var last []Alert
		err = tx.NewSelect().Model(&last).Where("al.rule = ? AND al.subject = ?", e.Rule,
			e.Subject).OrderExpr("al.id DESC").Limit(1).Scan(ctx)
		if err != nil {
			return fmt.Errorf("look for the last event: %w", err)
		}
		if len(last) > 0 && last[0].OpenedAt > now-rule.QuietS*1_000_000 && last[0].IncidentID == a.IncidentID {
			sums := last[0].Sums
			sums.Merge(e.Sums)
			if _, err := tx.NewRaw("UPDATE alerts SET count = count + ?, sums = ?, updated_at = ? WHERE id = ?", e.Count, sums, now,
				last[0].ID).Exec(ctx); err != nil {
				return fmt.Errorf("count an event: %w", err)
			}
			continue
		}
		if _, err := tx.NewInsert().Model(a).Exec(ctx); err != nil {
			return fmt.Errorf("write an event: %w", err)
		}
		metric.Alerts.WithLabelValues(e.Rule).Inc()
	}
	return nil
}

// Fires counts the firing alerts of one rule.
type Fires struct {
	Rule, Subject string // Subject is one of them
	Count, Oldest int64
}

// FiringByRule counts the firing alerts by rule, ordered by rule name. Those of the rules in
// apart are listed one by one.
func FiringByRule(ctx context.Context, q bun.IDB, apart ...string) ([]Fires, error) {
	var rows []Fires
	err := q.NewRaw("SELECT rule, min(subject) AS subject, count(*) AS count, min(opened_at) AS oldest FROM alerts WHERE state = 'firing'"+
		" GROUP BY rule, CASE WHEN rule IN (?) THEN subject ELSE '' END ORDER BY 1, 2 LIMIT ?", bun.List(append(apart, "")),
		firingCounted).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("count firing alerts by rule: %w", err)
	}
	return rows, nil
}

// firingCounted bounds the count of firing alerts.
const firingCounted = 1000

// CountFiring returns how many alerts are firing, at most firingCounted.
func CountFiring(ctx context.Context, q bun.IDB) (n int64, err error) {
	err = q.NewRaw("SELECT count(*) FROM (SELECT rule FROM alerts WHERE state = 'firing' LIMIT ?) AS f", firingCounted).Scan(ctx, &n)
	if err != nil {
		return 0, fmt.Errorf("count firing alerts: %w", err)
	}
	return n, nil
}
