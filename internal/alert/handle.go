package alert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/invalid"
	"backstop/internal/base/text"

	"github.com/uptrace/bun"
)

// Audit names of the acts on incidents.
const (
	AcknowledgeAct = "incident.acknowledge"
	AssignAct      = "incident.assign"
	SnoozeAct      = "incident.snooze"
	ResumeAct      = "incident.resume"
	CloseAct       = "incident.close"
)

// IncidentObject is the object name of incidents in the audit.
const IncidentObject = "incident"

// Errors of acts on incidents.
var (
	ErrOver = errors.New("the incident is over")
	// ErrEndsItself means that the incident ends when its level is back.
	ErrEndsItself = errors.New("this incident ends by itself when the cause is gone")
	// ErrNotSilent means that the incident's alerts send messages already.
	ErrNotSilent = errors.New("the incident is neither acknowledged nor snoozed")
)

// What is said of invalid parameters.
var (
	tNoOperator = text.Text{ZH: "没有这个能处理告警的操作员", EN: "no operator of this name may act on incidents"}
	tSnooze     = text.Text{ZH: "请填 1m 到 168h 的时长，例如 4h", EN: "not a time from 1m to 168h, such as 4h"}
)

// MaxSnooze is the longest snooze.
const MaxSnooze = 7 * 24 * time.Hour

// Snoozes are the choices of a snooze.
var Snoozes = []time.Duration{30 * time.Minute, time.Hour, 4 * time.Hour, 8 * time.Hour, 24 * time.Hour, 72 * time.Hour, MaxSnooze}

// IncidentActs acknowledge, assign, snooze, resume and close the incident Ref.Row. assignable
// returns the operators to whom one may be assigned. Errors: ErrOver, ErrEndsItself, ErrNotSilent.
func IncidentActs(d *db.DB, assignable func(context.Context) ([]string, error)) []act.Kind {
	kind := func(name string, params act.Params, do func(context.Context, db.Tx, act.Input, *Incident) (IncidentEvent, error)) act.Kind {
		return act.Kind{
			Name: name, Object: IncidentObject, Permission: access.HandleAlerts, Params: params, Load: loadIncidents,
			Do: onEach(d, do),
		}
	}
	return []act.Kind{
		kind(AcknowledgeAct, act.Params{}, func(ctx context.Context, tx db.Tx, in act.Input, i *Incident) (IncidentEvent, error) {
			return IncidentEvent{Kind: EventAcknowledged}, i.change(ctx, tx, Acknowledged, func(q *bun.UpdateQuery) {
				q.Set("snoozed_until = NULL").Set("assignee = CASE WHEN assignee = '' THEN ? ELSE assignee END", operatorName(in.By))
			})
		}),
		kind(AssignAct, act.ParamsOf[assignment](), func(ctx context.Context, tx db.Tx, in act.Input, i *Incident) (IncidentEvent, error) {
			to := in.Params.(assignment).To
			names, err := assignable(ctx)
			if err != nil {
				return IncidentEvent{}, err
			}
			if to != "" && !slices.Contains(names, to) {
				return IncidentEvent{}, invalid.Field("to", tNoOperator)
			}
			return IncidentEvent{Kind: EventAssigned, Detail: to}, i.assign(ctx, tx, to)
		}),
		kind(SnoozeAct, act.ParamsOf[snooze](), func(ctx context.Context, tx db.Tx, in act.Input, i *Incident) (IncidentEvent, error) {
			length, err := time.ParseDuration(in.Params.(snooze).For)
			if err != nil || length < time.Minute || length > MaxSnooze {
				return IncidentEvent{}, invalid.Field("for", tSnooze)
			}
			until := d.Now() + length.Microseconds()
			return IncidentEvent{Kind: EventSnoozed, Detail: strconv.FormatInt(until, 10)},
				i.change(ctx, tx, Snoozed, func(q *bun.UpdateQuery) { q.Set("snoozed_until = ?", until) })
		}),
		kind(ResumeAct, act.Params{}, func(ctx context.Context, tx db.Tx, _ act.Input, i *Incident) (IncidentEvent, error) {
			if i.Runs() && !i.Silent() {
				return IncidentEvent{}, ErrNotSilent
			}
			return IncidentEvent{Kind: EventResumed}, i.change(ctx, tx, Open, func(q *bun.UpdateQuery) { q.Set("snoozed_until = NULL") })
		}),
		kind(CloseAct, act.Params{}, func(ctx context.Context, tx db.Tx, _ act.Input, i *Incident) (IncidentEvent, error) {
			if i.Runs() && !i.ByHand() {
				return IncidentEvent{}, ErrEndsItself
			}
			return IncidentEvent{Kind: EventClosed},
				i.change(ctx, tx, Over, func(q *bun.UpdateQuery) { q.Set("over_at = ?", d.Now()).Set("snoozed_until = NULL") })
		}),
	}
}

// assignment says to whom; "" = to nobody.
type assignment struct {
	To string `json:"to"`
}

// snooze says for how long, such as 4h.
type snooze struct {
	For string `json:"for"`
}

// operatorName returns the name of an operator as pages show it.
func operatorName(by act.Actor) string {
	_, name, _ := strings.Cut(by.Name, ":")
	return name
}

// change changes the state of an incident that runs, against what was loaded.
func (i *Incident) change(ctx context.Context, tx db.Tx, to string, set func(*bun.UpdateQuery)) error {
	if !i.Runs() {
		return ErrOver
	}
	changed, err := i.move(ctx, tx, to, set)
	if err == nil && !changed {
		err = act.ErrChanged
	}
	return err
}

// assign makes an operator responsible; the state stays.
func (i *Incident) assign(ctx context.Context, tx db.Tx, to string) error {
	if !i.Runs() {
		return ErrOver
	}
	res, err := tx.NewRaw("UPDATE incidents SET assignee = ?, version = version + 1 WHERE id = ? AND version = ? AND over_at IS NULL", to,
		i.ID, i.Version).Exec(ctx)
	if err != nil {
		return fmt.Errorf("assign an incident: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(act.ErrChanged, err)
	}
	return nil
}

// onEach returns a Do that changes one incident after the other and records it in its timeline.
func onEach(d *db.DB, do func(context.Context, db.Tx, act.Input, *Incident) (IncidentEvent, error)) func(context.Context, db.Tx, act.Input,
	[]act.Subject) ([]act.Outcome, error) {
	return func(ctx context.Context, tx db.Tx, in act.Input, subjects []act.Subject) ([]act.Outcome, error) {
		outs := make([]act.Outcome, len(subjects))
		for n, s := range subjects {
			i := s.Value.(*Incident)
			e, err := do(ctx, tx, in, i)
			outs[n].Details = map[string]any{"rule": i.Rule, "subject": i.Subject}
			switch e.Kind {
			case EventAssigned:
				outs[n].Details["to"] = e.Detail
			case EventSnoozed:
				outs[n].Details["until"] = e.Until().UTC().Format(time.RFC3339)
			}
			if err == nil {
				e.IncidentID, e.Actor, e.Reason = i.ID, operatorName(in.By), in.Reason
				err = keep(ctx, tx, d, e)
			}
			var field *act.FieldError
			if err != nil && !errors.As(err, &field) && !errors.Is(err, ErrOver) && !errors.Is(err, ErrEndsItself) &&
				!errors.Is(err, ErrNotSilent) && !errors.Is(err, act.ErrChanged) {
				return nil, err
			}
			outs[n].Err = err
		}
		return outs, nil
	}
}

func loadIncidents(ctx context.Context, q bun.IDB, refs []act.Ref) ([]act.Subject, error) {
	rows, err := act.Rows[Incident](ctx, q, refs)
	if err != nil {
		return nil, err
	}
	subjects := make([]act.Subject, len(rows))
	for n := range rows {
		i := &rows[n]
		subjects[n] = act.Subject{Row: i.ID, ID: strconv.FormatInt(i.ID, 10), Version: i.Version, Value: i}
	}
	return subjects, nil
}
