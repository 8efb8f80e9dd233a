package alert

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Kinds of events of an incident. Fired and cleared are not stored: they are its alerts.
const (
	EventFired        = "fired"
	EventCleared      = "cleared"
	EventNotified     = "notified"     // Detail: the targets
	EventSilent       = "silent"       // an alert sent no message; Detail: the incident's state
	EventAcknowledged = "acknowledged" //
	EventAssigned     = "assigned"     // Detail: the assignee; "" = unassigned
	EventSnoozed      = "snoozed"      // Detail: until when, Unix µs
	EventWoke         = "woke"         // the snooze is over
	EventResumed      = "resumed"      // an operator wants messages again
	EventClosed       = "closed"       // by an operator
	EventOver         = "over"
)

// IncidentEvent is something that happened to an incident.
type IncidentEvent struct {
	bun.BaseModel `bun:"table:incident_events,alias:ie"`

	ID         int64  `bun:"id,pk"`
	IncidentID int64  `bun:"incident_id"`
	Kind       string `bun:"kind"`
	Actor      string `bun:"actor"` // "" = the program
	Reason     string `bun:"reason"`
	Detail     string `bun:"detail"`
	At         int64  `bun:"at"`

	Alert *Alert `bun:"-"` // of EventFired and EventCleared
}

// Until returns when a snooze ends.
func (e IncidentEvent) Until() time.Time {
	us, _ := strconv.ParseInt(e.Detail, 10, 64)
	return time.UnixMicro(us)
}

// maxTimeline bounds the newest events and alerts of one timeline.
const maxTimeline = 200

func keep(ctx context.Context, tx bun.IDB, d *db.DB, events ...IncidentEvent) error {
	if len(events) == 0 {
		return nil
	}
	for i := range events {
		events[i].ID, events[i].At = d.NewID(), d.Now()
	}
	_, err := tx.NewInsert().Model(&events).Exec(ctx)
	return wrap("record what happened to an incident", err)
}

// Timeline returns what happened to an incident, oldest first; cut = there is more than that.
func Timeline(ctx context.Context, q bun.IDB, id int64) (all []IncidentEvent, cut bool, err error) {
	if err := q.NewSelect().Model(&all).Where("ie.incident_id = ?", id).OrderExpr("ie.id DESC").Limit(maxTimeline).Scan(ctx); err != nil {
		return nil, false, wrap("read an incident's events", err)
	}
	var fired []Alert
	if err := q.NewSelect().Model(&fired).Where("al.incident_id = ?", id).OrderExpr("al.id DESC").Limit(maxTimeline).Scan(ctx); err != nil {
		return nil, false, wrap("read an incident's alerts", err)
	}
	cut = len(all) == maxTimeline || len(fired) == maxTimeline
	for i := range fired {
		a := &fired[i]
		kind := EventFired
		if _, ends := closes[a.Rule]; ends {
			kind = EventCleared
		}
		all = append(all, IncidentEvent{IncidentID: id, Kind: kind, At: a.OpenedAt, Alert: a})
		if a.ResolvedAt != nil {
			all = append(all, IncidentEvent{IncidentID: id, Kind: EventCleared, At: *a.ResolvedAt, Alert: a})
		}
	}
	slices.SortStableFunc(all, func(a, b IncidentEvent) int { return cmp.Compare(a.At, b.At) })
	return all, cut, nil
}

// FindIncident reads one incident; nil = there is none.
func FindIncident(ctx context.Context, q bun.IDB, id int64) (*Incident, error) {
	var rows []*Incident
	if err := q.NewSelect().Model(&rows).Where("inc.id = ?", id).Scan(ctx); err != nil || len(rows) == 0 {
		return nil, wrap("read an incident", err)
	}
	return rows[0], nil
}

// Running reads the incidents that are not over, the oldest first.
func Running(ctx context.Context, q bun.IDB, limit int) (rows []Incident, err error) {
	err = q.NewSelect().Model(&rows).Where("inc.over_at IS NULL").OrderExpr("inc.id").Limit(int64(limit)).Scan(ctx)
	return rows, wrap("read the running incidents", err)
}

// Ended reads the incidents that were over last, the latest first.
func Ended(ctx context.Context, q bun.IDB, since int64, limit int) (rows []Incident, err error) {
	err = q.NewSelect().Model(&rows).Where("inc.over_at > ?",
		since).OrderExpr("inc.over_at DESC, inc.id DESC").Limit(int64(limit)).Scan(ctx)
	return rows, wrap("read the last incidents", err)
}
