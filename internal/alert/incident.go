package alert

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/money"
	"backstop/internal/base/moves"

	"github.com/uptrace/bun"
)

// States of an incident, see IncidentMoves.
const (
	Open         = "open"
	Acknowledged = "acknowledged"
	Snoozed      = "snoozed"
	Over         = "over"
)

// IncidentMoves lists every legal change of an incident's state.
var IncidentMoves = moves.Table[string]{
	Noun: "Incident", Column: "incidents.state",
	About: "One problem: all alerts of one rule and subject, from the first one until nothing has fired for ten minutes. Changes are also guarded by its version.",
	Rows: []moves.Row[string]{
		{
			Status: Open, Initial: true, Open: true, NeedsPerson: true, To: []string{Acknowledged, Snoozed, Over},
			Meaning: "Its alerts send messages.",
		},
		{
			Status: Acknowledged, Open: true, To: []string{Open, Acknowledged, Snoozed, Over},
			Meaning: "An operator is working on it: further alerts send no messages, and one message reports when it is over.",
		},
		{
			Status: Snoozed, Open: true, To: []string{Open, Acknowledged, Snoozed, Over},
			Meaning: "No messages until `snoozed_until`; then it is open again.",
		},
		{Status: Over, Meaning: "Quiet for long enough, or closed by an operator. The next alert opens a new incident."},
	},
}

// Incident is one problem, however often its alert fires meanwhile.
type Incident struct {
	bun.BaseModel `bun:"table:incidents,alias:inc"`

	ID       int64        `bun:"id,pk"`
	Rule     string       `bun:"rule"`
	Subject  string       `bun:"subject"`
	State    string       `bun:"state"`
	Firings  int64        `bun:"firings"`        // alerts, or events
	Value    int64        `bun:"value"`          // the worst
	Sums     money.Totals `bun:"sums,type:text"` // of the last alert
	Assignee string       `bun:"assignee"`       // an operator's name; "" = unassigned
	OpenedAt int64        `bun:"opened_at"`      //
	FiredAt  int64        `bun:"fired_at"`       // the last time
	// ClearedAt is since when nothing fires; nil = it fires, or is an event that nothing ends.
	ClearedAt    *int64 `bun:"cleared_at"`
	SnoozedUntil *int64 `bun:"snoozed_until"`
	OverAt       *int64 `bun:"over_at"`
	// Version counts changes of state and assignee: an alert that fires again is no reason to
	// refuse what an operator decides about the incident.
	Version int64 `bun:"version"`
}

// calm is how long nothing may fire before an incident is over: a level that returns earlier
// belongs to the same incident.
const calm = 10 * time.Minute

// closes names the rules whose events end the incident of another rule with the same subject.
var closes = map[string]string{BreakerClosed: BreakerOpened, SupplierReachable: SupplierUnreachable}

// listed are the rules about events whose rows have their own lists, states and assignees:
// exceptions, disputes and proposals. They make no incidents.
var listed = []string{ExceptionOpened, DisputeOpened, DisputeDue, NotifyExhausted, CompensationDead, SupplierShort, ProposalWaits}

// leveled reports whether the rule is about a level, which ends by itself.
func leveled(rule string) bool {
	for _, d := range defaults {
		if d.Name == rule {
			return d.Fire != d.Clear
		}
	}
	return false
}

// ByHand reports whether only an operator can end the incident: what happened is over, but no
// reading shows that it was dealt with.
func (i *Incident) ByHand() bool {
	for _, of := range closes {
		if of == i.Rule {
			return false
		}
	}
	return !leveled(i.Rule)
}

// Silent reports whether its alerts send no messages.
func (i *Incident) Silent() bool { return i.State == Acknowledged || i.State == Snoozed }

// Runs reports whether the incident is not over.
func (i *Incident) Runs() bool { return i.OverAt == nil }

// EndsAt returns when an incident that stays calm is over (Unix µs); 0 = it is not calm. Within
// its quiet time a rule does not fire again, so that silence proves nothing before.
func (i *Incident) EndsAt(quietS int64) int64 {
	if i.ClearedAt == nil {
		return 0
	}
	return max(*i.ClearedAt+calm.Microseconds(), i.FiredAt+(time.Duration(quietS)*time.Second+time.Minute).Microseconds())
}

// join adds an alert to the running incident of its rule and subject, or opens one. Returns the
// incident's id; 0 = the rule has none. It comes before any write to alerts: everybody locks
// incidents first.
func join(ctx context.Context, tx bun.IDB, d *db.DB, rule Rule, a Alert) (int64, error) {
	if slices.Contains(listed, rule.Name) {
		return 0, nil
	}
	of, ends := closes[rule.Name]
	if ends {
		var ids []int64
		err := tx.NewRaw("UPDATE incidents SET cleared_at = ? WHERE rule = ? AND subject = ? AND over_at IS NULL RETURNING id", d.Now(), of,
			a.Subject).Scan(ctx, &ids)
		if err != nil || len(ids) == 0 {
			return 0, wrap("calm an incident", err)
		}
		return ids[0], nil
	}
	for {
		var ids []int64
		err := tx.NewRaw("UPDATE incidents SET firings = firings + ?, value = "+worst(rule)+", sums = ?, fired_at = ?, cleared_at = NULL"+
			" WHERE rule = ? AND subject = ? AND over_at IS NULL RETURNING id", a.Count, a.Value, a.Value, a.Sums, d.Now(), a.Rule,
			a.Subject).Scan(ctx, &ids)
		if err != nil || len(ids) > 0 {
			return first(ids), wrap("join an incident", err)
		}
		now := d.Now()
		i := &Incident{
			ID: d.NewID(), Rule: a.Rule, Subject: a.Subject, State: Open, Firings: a.Count, Value: a.Value, Sums: a.Sums,
			OpenedAt: now, FiredAt: now, Version: 1,
		}
		res, err := tx.NewInsert().Model(i).On("CONFLICT DO NOTHING").Exec(ctx)
		if err != nil {
			return 0, wrap("open an incident", err)
		}
		if n, _ := res.RowsAffected(); n == 1 {
			return i.ID, nil
		} // another node has just opened it
	}
}

func first(ids []int64) int64 {
	if len(ids) == 0 {
		return 0
	}
	return ids[0]
}

func wrap(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// worst is the SQL for the worse one of an incident's value and another, which is given twice.
func worst(rule Rule) string {
	worse := ">"
	if rule.Clear > rule.Fire {
		worse = "<"
	}
	return "CASE WHEN value " + worse + " ? THEN value ELSE ? END"
}

// worsen records a worse level of a firing alert in its incident, in which an earlier alert may
// have been even worse.
func worsen(ctx context.Context, tx bun.IDB, rule Rule, id, value int64, sums money.Totals) error {
	_, err := tx.NewRaw("UPDATE incidents SET value = "+worst(rule)+", sums = ? WHERE id = ? AND over_at IS NULL", value, value, sums,
		id).Exec(ctx)
	return wrap("update an incident", err)
}

// clears records that an incident's alert has ended.
func clears(ctx context.Context, tx bun.IDB, id, now int64) error {
	_, err := tx.NewRaw("UPDATE incidents SET cleared_at = ? WHERE id = ? AND over_at IS NULL", now, id).Exec(ctx)
	return wrap("calm an incident", err)
}

// Reconcile makes the incidents about breakers agree with the breakers: held are the subjects, by
// rule, of those that are open. What is closed, disabled or removed lets its incident end, also
// if no event says so.
func Reconcile(ctx context.Context, d *db.DB, held map[string][]string) error {
	var running []Incident
	err := d.Read.NewSelect().Model(&running).Where("inc.over_at IS NULL").Where("inc.rule IN (?)",
		bun.List(slices.Sorted(maps.Values(closes)))).
		Limit(maxWatched).Scan(ctx)
	if err != nil {
		return wrap("read the incidents about breakers", err)
	}
	var failed []error
	for _, i := range running {
		lasts := slices.Contains(held[i.Rule], i.Subject)
		if lasts == (i.ClearedAt == nil) {
			continue
		}
		var cleared *int64
		if now := d.Now(); !lasts {
			cleared = &now
		}
		// It may have fired again since it was read.
		_, err := d.NewRaw("UPDATE incidents SET cleared_at = ? WHERE id = ? AND over_at IS NULL AND fired_at = ?", cleared, i.ID,
			i.FiredAt).Exec(ctx)
		failed = append(failed, wrap("let an incident lapse", err))
	}
	return errors.Join(failed...)
}

// Settle ends the incidents that have stayed calm, and wakes those whose snooze is over. One
// that was acknowledged is announced as over, since its alerts were not; one that still fires
// after its snooze is announced again. One that fails does not keep the others.
func Settle(ctx context.Context, d *db.DB) error {
	now := d.Now()
	var due []Incident
	err := d.Read.NewSelect().Model(&due).Where("inc.over_at IS NULL").Where("inc.cleared_at <= ? OR inc.snoozed_until <= ?",
		now-calm.Microseconds(), now).
		OrderExpr("inc.id").Limit(maxWatched).Scan(ctx)
	if err != nil || len(due) == 0 {
		return wrap("read incidents to settle", err)
	}
	rules, err := Rules(ctx, d.Read)
	if err != nil {
		return err
	}
	var failed []error
	for i := range due {
		rule, _ := find(rules, due[i].Rule) // one that this version no longer has fires no more
		if err := d.Tx(ctx, func(ctx context.Context, tx db.Tx) error { return settle(ctx, tx, d, &due[i], rule.QuietS) }); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func settle(ctx context.Context, tx db.Tx, d *db.DB, i *Incident, quietS int64) error {
	now, was := d.Now(), i.State
	switch ends := i.EndsAt(quietS); {
	case ends != 0 && ends <= now:
		changed, err := i.move(ctx, tx, Over, func(q *bun.UpdateQuery) {
			// It may have fired again since it was read.
			q.Set("over_at = ?", now).Set("snoozed_until = NULL").Where("cleared_at = ?", *i.ClearedAt).Where("fired_at = ?", i.FiredAt)
		})
		if err != nil || !changed {
			return err
		}
		if err := keep(ctx, tx, d, IncidentEvent{IncidentID: i.ID, Kind: EventOver}); err != nil || was != Acknowledged {
			return err
		}
		return announceLast(ctx, tx, i.ID, now)
	case i.SnoozedUntil != nil && *i.SnoozedUntil <= now:
		changed, err := i.move(ctx, tx, Open, func(q *bun.UpdateQuery) { q.Set("snoozed_until = NULL") })
		if err != nil || !changed {
			return err
		}
		if err := keep(ctx, tx, d, IncidentEvent{IncidentID: i.ID, Kind: EventWoke}); err != nil || i.ClearedAt != nil {
			return err
		}
		return announceLast(ctx, tx, i.ID, now)
	}
	return nil
}

// move changes the state by compare-and-set on the version; false = the incident was changed
// meanwhile, so the next round looks again.
func (i *Incident) move(ctx context.Context, tx bun.IDB, to string, set func(*bun.UpdateQuery)) (bool, error) {
	q := tx.NewUpdate().Model((*Incident)(nil)).Set("state = ?", to).Set("version = version + 1").Where("id = ?", i.ID).Where("version = ?",
		i.Version).
		Where("state IN (?)", bun.List(IncidentMoves.From(to)))
	set(q)
	res, err := q.Exec(ctx)
	if err != nil {
		return false, wrap("change an incident", err)
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

// announceLast makes the last alert of an incident due for a message.
func announceLast(ctx context.Context, tx bun.IDB, id, now int64) error {
	_, err := tx.NewRaw("UPDATE alerts SET announce_at = ? WHERE id = (SELECT max(id) FROM alerts WHERE incident_id = ?)", now,
		id).Exec(ctx)
	return wrap("announce an incident", err)
}
