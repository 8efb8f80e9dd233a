package alert

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal/sealtest"
)

// incidents drives the alerts of one database.
type incidents struct {
	*testing.T
	db    *db.DB
	watch *Watch
	at    time.Time
	acts  *act.Registry
}

func newIncidents(t *testing.T, d *db.DB) *incidents {
	policy, err := access.NewPolicy()
	if err != nil {
		t.Fatal(err)
	}
	people := func(context.Context) ([]string, error) { return []string{"li", "wang"}, nil }
	return &incidents{t, d, NewWatch(d, quiet), time.Now(), act.New(d, audit.New(d, sealtest.Ring(t, 1)), policy,
		IncidentActs(d, people)...)}
}

// fire lets the level of a queue fire; calm lets it return.
func (in *incidents) fire() {
	in.Helper()
	observe(in.T, in.watch, in.at, 2000)
	observe(in.T, in.watch, in.at.Add(time.Minute), 2000)
}

func (in *incidents) calm() {
	in.Helper()
	in.at = in.at.Add(time.Hour)
	observe(in.T, in.watch, in.at, 0)
}

// later makes everything that has happened so much older.
func (in *incidents) later(by time.Duration) {
	in.Helper()
	us := by.Microseconds()
	for _, q := range []string{
		"UPDATE alerts SET opened_at = opened_at - ?, resolved_at = resolved_at - ?, announce_at = announce_at - ?",
		"UPDATE incidents SET opened_at = opened_at - ?, fired_at = fired_at - ?, cleared_at = cleared_at - ?, snoozed_until = snoozed_until - ?",
		"UPDATE incident_events SET at = at - ?",
		"UPDATE alert_rules SET next_message_at = next_message_at - ?",
	} {
		args := make([]any, strings.Count(q, "?"))
		for i := range args {
			args[i] = us
		}
		if _, err := in.db.NewRaw(q, args...).Exec(in.Context()); err != nil {
			in.Fatal(err)
		}
	}
	in.settle()
}

func (in *incidents) settle() {
	in.Helper()
	if err := Settle(in.Context(), in.db); err != nil {
		in.Fatal(err)
	}
}

// messages returns how many messages are written about what is due now.
func (in *incidents) messages() int {
	in.Helper()
	in.later(time.Minute)
	ids, err := Announce(in.Context(), in.db, []string{"target"}, Style{Zone: time.UTC, Language: "en"})
	if err != nil {
		in.Fatal(err)
	}
	return len(ids)
}

func (in *incidents) do(kind, params string) error {
	_, err := in.acts.Run(in.Context(), act.Call{
		Kind: kind, By: act.Actor{Name: "operator:li", Roles: access.Ops}, Ref: act.Ref{Row: in.one().ID},
		Params: []byte(params), Reason: "as agreed on the phone", Key: act.NewKey(),
	})
	return err
}

func (in *incidents) must(kind, params string) {
	in.Helper()
	if err := in.do(kind, params); err != nil {
		in.Fatalf("%s %s: %v", kind, params, err)
	}
}

func (in *incidents) all() []Incident {
	in.Helper()
	var rows []Incident
	if err := in.db.NewSelect().Model(&rows).OrderExpr("inc.id").Scan(in.Context()); err != nil {
		in.Fatal(err)
	}
	return rows
}

// one returns the latest incident.
func (in *incidents) one() Incident {
	in.Helper()
	rows := in.all()
	if len(rows) == 0 {
		in.Fatal("no incident")
	}
	return rows[len(rows)-1]
}

func (in *incidents) timeline(id int64) string {
	in.Helper()
	all, _, err := Timeline(in.Context(), in.db, id)
	if err != nil {
		in.Fatal(err)
	}
	kinds := make([]string, len(all))
	for i, e := range all {
		kinds[i] = e.Kind
	}
	return strings.Join(kinds, " ")
}

func each(t *testing.T, run func(in *incidents)) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) { run(newIncidents(t, d)) })
}

func TestALevelThatReturnsSoonIsOneIncident(t *testing.T) {
	t.Parallel()
	each(t, func(in *incidents) {
		for range 3 {
			in.fire()
			in.calm()
			in.later(6 * time.Minute) // longer than the rule is quiet, shorter than calm
		}
		if rows := in.all(); len(rows) != 1 || rows[0].Firings != 3 || rows[0].State != Open || rows[0].Value != 2000 {
			t := in.T
			t.Fatalf("%+v, want one open incident that fired three times", rows)
		}
		in.later(calm)
		if got := in.one(); got.State != Over || got.OverAt == nil {
			in.Errorf("after %s of calm: %+v", calm, got)
		}
		if got := in.timeline(in.one().ID); got != "fired cleared fired cleared fired cleared over" {
			in.Error(got)
		}
		in.fire()
		if rows := in.all(); len(rows) != 2 || rows[1].State != Open {
			in.Errorf("%+v, want a second incident after the first is over", rows)
		}
	})
}

// While the quiet time of a rule lasts, it would not fire again: silence proves nothing.
// A later alert that is less bad does not hide how bad it was.
func TestAnIncidentKeepsItsWorstLevel(t *testing.T) {
	t.Parallel()
	each(t, func(in *incidents) {
		in.fire()
		observe(in.T, in.watch, in.at.Add(2*time.Minute), 5000)
		in.calm()
		in.later(6 * time.Minute)
		in.fire()
		observe(in.T, in.watch, in.at.Add(2*time.Minute), 3000)
		if i := in.one(); i.Value != 5000 || i.Firings != 2 {
			in.Errorf("the worst of %d alerts is %d", i.Firings, i.Value)
		}
	})
}

// An incident of a rule that an upgrade removed ends, too, and keeps no other one.
func TestAnIncidentWithoutRuleEnds(t *testing.T) {
	t.Parallel()
	each(t, func(in *incidents) {
		_, err := in.db.NewRaw(
			"INSERT INTO incidents (id, rule, subject, state, firings, value, sums, opened_at, fired_at, cleared_at, version)" +
				" VALUES (1, 'removed', 'x', 'open', 1, 1, '[]', 0, 0, 0, 1)").Exec(in.Context())
		if err != nil {
			in.Fatal(err)
		}
		in.fire()
		in.calm()
		in.later(time.Hour)
		for _, i := range in.all() {
			if i.Runs() {
				in.Errorf("%s runs", i.Rule)
			}
		}
	})
}

func TestAnIncidentIsNotOverWithinTheQuietTimeOfItsRule(t *testing.T) {
	t.Parallel()
	each(t, func(in *incidents) {
		r, err := find(must(Rules(in.Context(), in.db)), QueueLength)
		if err != nil {
			in.Fatal(err)
		}
		if r.QuietS = 7200; Save(in.Context(), in.db, in.db, r) != nil {
			in.Fatal("the rule is not saved")
		}
		in.fire()
		in.calm()
		in.later(time.Hour)
		if got := in.one(); got.State != Open {
			in.Errorf("%s while the rule is quiet", got.State)
		}
		in.later(2 * time.Hour)
		if got := in.one(); got.State != Over {
			in.Errorf("%s after the quiet time", got.State)
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestAnIncidentThatFiresAgainWhileItIsSettledStaysOpen(t *testing.T) {
	t.Parallel()
	each(t, func(in *incidents) {
		in.fire()
		in.calm()
		in.later(6 * time.Minute)
		read := in.one() // what a settling node has read
		in.fire()
		read.ClearedAt = new(int64)
		*read.ClearedAt = in.db.Now() - time.Hour.Microseconds()
		read.FiredAt = *read.ClearedAt
		settleNow := func(i Incident) {
			in.Helper()
			if err := in.db.Tx(in.Context(), func(ctx context.Context, tx db.Tx) error {
				return settle(ctx, tx, in.db, &i,
					0)
			}); err != nil {
				in.Fatal(err)
			}
		}
		settleNow(read)
		if got := in.one(); got.State != Open {
			in.Fatalf("ended by a node that had not seen the last firing: %+v", got)
		}
		in.calm()
		in.later(time.Hour)
		if got := in.one(); got.State != Over { // the control: unchanged, it ends
			in.Errorf("%+v", got)
		}
	})
}

func TestMessagesStopWhileSomebodyWorksOnIt(t *testing.T) {
	t.Parallel()
	each(t, func(in *incidents) {
		in.fire()
		if n := in.messages(); n != 1 {
			in.Fatalf("%d messages about the first alert", n)
		}
		in.must(AcknowledgeAct, "")
		if got := in.one(); got.State != Acknowledged || got.Assignee != "li" {
			in.Fatalf("%+v", got)
		}
		in.calm()
		if n := in.messages(); n != 0 {
			in.Errorf("%d messages about an acknowledged level that returned", n)
		}
		in.later(6 * time.Minute)
		in.fire()
		if n := in.messages(); n != 0 {
			in.Errorf("%d messages about an acknowledged incident that fired again", n)
		}
		in.calm()
		in.messages()
		in.later(time.Hour)
		if got := in.one(); got.State != Over {
			in.Fatalf("%+v", got)
		}
		if n := in.messages(); n != 1 {
			in.Errorf("%d messages at its end, want one", n)
		}
		if got := in.timeline(in.one().ID); got != "fired notified acknowledged cleared silent fired silent cleared silent over notified" {
			in.Error(got)
		}
	})
}

// An unacknowledged incident is the control: each of its alerts, and each end, is a message.
func TestMessagesGoOnWhileNobodyActs(t *testing.T) {
	t.Parallel()
	each(t, func(in *incidents) {
		for n := range 2 {
			in.fire()
			if got := in.messages(); got != 1 {
				in.Errorf("firing %d: %d messages", n, got)
			}
			in.calm()
			if got := in.messages(); got != 1 {
				in.Errorf("end %d: %d messages", n, got)
			}
			in.later(6 * time.Minute)
		}
	})
}

func TestASnoozeEndsByItsTime(t *testing.T) {
	t.Parallel()
	each(t, func(in *incidents) {
		in.fire()
		in.messages()
		for params, want := range map[string]bool{
			`{"for":"169h"}`: false, `{"for":"-1h"}`: false, `{"for":"soon"}`: false,
			`{"for":""}`: false, `{"for":"168h"}`: true, `{"for":"1h"}`: true,
		} {
			err := in.do(SnoozeAct, params)
			var field *act.FieldError
			if want != (err == nil) || !want && (!errors.As(err, &field) || field.Field != "for") {
				in.Errorf("%s: %v", params, err)
			}
		}
		in.must(SnoozeAct, `{"for":"1h"}`)
		in.later(50 * time.Minute)
		if n := in.messages(); in.one().State != Snoozed || n > 0 {
			in.Errorf("%s with %d messages before its time", in.one().State, n)
		}
		in.later(10 * time.Minute)
		if got := in.one(); got.State != Open || got.SnoozedUntil != nil {
			in.Fatalf("%+v", got)
		}
		if n := in.messages(); n != 1 {
			in.Errorf("%d messages when it still fires after the snooze", n)
		}
		in.must(SnoozeAct, `{"for":"4h"}`)
		in.calm()
		in.messages()
		in.later(time.Hour)
		if got := in.one(); got.State != Over || got.SnoozedUntil != nil {
			in.Fatalf("a snoozed incident that is over: %+v", got)
		}
		if n := in.messages(); n != 0 {
			in.Errorf("%d messages about an incident that ended in its snooze", n)
		}
	})
}

func TestWhatMayBeDoneDependsOnTheIncident(t *testing.T) {
	t.Parallel()
	each(t, func(in *incidents) {
		in.fire()
		if err := in.do(CloseAct, ""); !errors.Is(err, ErrEndsItself) {
			in.Errorf("close a level: %v", err)
		}
		if err := in.do(ResumeAct, ""); !errors.Is(err, ErrNotSilent) {
			in.Errorf("resume what sends messages: %v", err)
		}
		if err := in.do(AssignAct, `{"to":"zhao"}`); err == nil {
			in.Error("assigned to an operator who may not act")
		}
		in.must(AssignAct, `{"to":"wang"}`)
		in.must(AcknowledgeAct, "")
		in.must(ResumeAct, "")
		if got := in.one(); got.State != Open || got.Assignee != "wang" {
			in.Errorf("%+v", got)
		}
		in.calm()
		in.later(time.Hour)
		for _, kind := range []string{AcknowledgeAct, ResumeAct, SnoozeAct, AssignAct, CloseAct} {
			if err := in.do(kind, map[string]string{SnoozeAct: `{"for":"1h"}`}[kind]); !errors.Is(err, ErrOver) {
				in.Errorf("%s of what is over: %v", kind, err)
			}
		}
		rows, err := audit.List(in.Context(), in.db.Read, audit.Query{Object: IncidentObject, Limit: 9})
		if err != nil || len(rows) != 3 || !strings.Contains(rows[0].Params, `"rule":"queue_length"`) {
			in.Errorf("%d acts in the audit, %v", len(rows), err)
		}
	})
}

func TestEventsOfABreakerAreOneIncidentUntilItStaysClosed(t *testing.T) {
	t.Parallel()
	each(t, func(in *incidents) {
		for range 2 {
			record(in.T, in.db, Event{Rule: BreakerOpened, Subject: "m1", Count: 1})
			in.later(2 * time.Minute)
			record(in.T, in.db, Event{Rule: BreakerClosed, Subject: "m1", Count: 1})
			in.later(2 * time.Minute)
		}
		if rows := in.all(); len(rows) != 1 || rows[0].Firings != 2 || rows[0].ClearedAt == nil {
			in.Fatalf("%+v", rows)
		}
		in.later(time.Hour)
		if got := in.timeline(in.one().ID); got != "fired cleared fired cleared over" {
			in.Error(got)
		}
		record(in.T, in.db, Event{Rule: BreakerClosed, Subject: "m2", Count: 1})
		if n := len(in.all()); n != 1 {
			in.Errorf("%d incidents after a breaker closed that had none", n)
		}
	})
}

// An operator who wants no message that a breaker closed still sees that it did: otherwise the
// incident would run for ever, because it cannot be closed by hand.
func TestAnIncidentEndsWithoutTheMessageOfItsEnd(t *testing.T) {
	t.Parallel()
	each(t, func(in *incidents) {
		rules, err := Rules(in.Context(), in.db)
		if err != nil {
			in.Fatal(err)
		}
		for _, name := range []string{BreakerClosed, SupplierReachable} {
			rule, err := find(rules, name)
			if err != nil {
				in.Fatal(err)
			}
			rule.Enabled = false
			if err := Save(in.Context(), in.db, in.db, rule); err != nil {
				in.Fatal(err)
			}
		}
		for end, begin := range closes {
			record(in.T, in.db, Event{Rule: begin, Subject: "m1", Count: 1})
			in.later(2 * time.Minute)
			record(in.T, in.db, Event{Rule: end, Subject: "m1", Count: 1})
		}
		in.later(time.Hour)
		for _, i := range in.all() {
			if i.Runs() {
				in.Errorf("%s runs", i.Rule)
			}
		}
		for _, a := range all(in.T, in.db) {
			if _, ends := closes[a.Rule]; ends {
				in.Errorf("%s has an alert although it is off", a.Rule)
			}
		}
	})
}

func TestWhatNothingEndsIsClosedByHandAndOpensAgain(t *testing.T) {
	t.Parallel()
	each(t, func(in *incidents) {
		record(in.T, in.db, Event{Rule: BooksDiffer, Subject: "verify", Count: 2})
		in.later(30 * 24 * time.Hour)
		if got := in.one(); got.State != Open || !got.ByHand() {
			in.Fatalf("%+v", got)
		}
		record(in.T, in.db, Event{Rule: BooksDiffer, Subject: "verify", Count: 1})
		in.must(CloseAct, "")
		record(in.T, in.db, Event{Rule: BooksDiffer, Subject: "verify", Count: 1}) // within its quiet time
		rows := in.all()
		if len(rows) != 2 || rows[0].Firings != 3 || rows[1].State != Open {
			in.Errorf("%+v, want a new incident", rows)
		}
		if got := in.timeline(rows[1].ID); got != "fired" {
			in.Error(got)
		}
	})
}

func TestWhatHasItsOwnListMakesNoIncident(t *testing.T) {
	t.Parallel()
	each(t, func(in *incidents) {
		for _, rule := range listed {
			record(in.T, in.db, Event{Rule: rule, Subject: "x", Count: 1})
		}
		if rows := in.all(); len(rows) != 0 {
			in.Errorf("%+v", rows)
		}
		for _, rule := range listed {
			if !slices.Contains(Names, rule) {
				in.Errorf("there is no rule %s", rule)
			}
		}
	})
}

func TestManyNodesJoinOneIncident(t *testing.T) {
	t.Parallel()
	each(t, func(in *incidents) {
		const nodes = 8
		failed := make(chan error, nodes)
		for n := range nodes {
			go func() {
				failed <- dbtest.Repeat(func() error {
					return in.db.Tx(in.Context(), func(ctx context.Context, tx db.Tx) error {
						return Record(ctx, tx, in.db, []Event{
							{Rule: PayoutRefused, Subject: "m1", Count: 1},
							{Rule: PayoutRefused, Subject: fmt.Sprint(n % 2), Count: 1},
						})
					})
				})
			}()
		}
		for range nodes {
			if err := <-failed; err != nil {
				in.Error(err)
			}
		}
		total := int64(0)
		rows := in.all()
		for _, i := range rows {
			total += i.Firings
		}
		if len(rows) != 3 || total != 2*nodes {
			in.Errorf("%d incidents with %d firings, want 3 with %d", len(rows), total, 2*nodes)
		}
	})
}
