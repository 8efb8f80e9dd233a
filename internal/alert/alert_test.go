package alert

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/money"
	"backstop/internal/exception"

	"github.com/uptrace/bun"
)

var quiet = slog.New(slog.DiscardHandler)

func observe(t *testing.T, w *Watch, at time.Time, value int64) {
	t.Helper()
	if err := w.Observe(t.Context(), at, []Reading{{Rule: QueueLength, Subject: "notify", Value: value}}); err != nil {
		t.Fatal(err)
	}
}

func all(t *testing.T, d *db.DB) []Alert {
	t.Helper()
	var rows []Alert
	if err := d.NewSelect().Model(&rows).OrderExpr("al.id DESC").Limit(100).Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestALevelFiresAfterItsHoldTimeAndEndsBelowItsOwnLimit(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w, start := NewWatch(d, quiet), time.Now()
		for _, step := range []struct {
			after time.Duration
			value int64
			want  string
		}{
			{0, 1001, ""},                       // beyond, but not for long
			{10 * time.Second, 1000, ""},        // recovered: the hold time starts again
			{15 * time.Second, 1500, ""},        //
			{34 * time.Second, 1500, ""},        // 19 s
			{35 * time.Second, 1500, Firing},    // 20 s
			{36 * time.Second, 2500, Firing},    // worse
			{40 * time.Second, 900, Firing},     // below the limit, above the end
			{50 * time.Second, 800, Resolved},   //
			{80 * time.Second, 3000, Resolved},  // beyond again
			{120 * time.Second, 3000, Resolved}, // held, but the subject has just alerted
		} {
			observe(t, w, start.Add(step.after), step.value)
			state := ""
			if rows := all(t, d); len(rows) == 1 {
				state = rows[0].State
			} else if len(rows) > 1 {
				t.Fatalf("after %s: %d alerts", step.after, len(rows))
			}
			if state != step.want {
				t.Fatalf("after %s at %d: %q, want %q", step.after, step.value, state, step.want)
			}
		}
		if a := all(t, d)[0]; a.Value != 2500 {
			t.Errorf("the worst level = %d, want 2500", a.Value)
		}
	})
}

// A merchant without notifications for a while is not slow, but not known to be healthy either.
func TestAnAlertEndsSilentlyWhenNothingIsLeftToRead(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w, start := NewWatch(d, quiet), time.Now()
		look := func(after time.Duration, readings ...Reading) {
			t.Helper()
			if err := w.Observe(t.Context(), start.Add(after), readings); err != nil {
				t.Fatal(err)
			}
		}
		rest := Reading{Rule: SlowMerchant, Rest: true}
		m1, m2 := Reading{Rule: SlowMerchant, Subject: "m1", Value: 9000}, Reading{Rule: SlowMerchant, Subject: "m2", Value: 9000}
		look(0, m1, m2, rest)
		look(time.Minute, m1, m2, rest)
		due(t, d, "alerts", "announce_at")
		if _, err := Announce(t.Context(), d, []string{"a"}, Style{Zone: time.UTC}); err != nil {
			t.Fatal(err)
		}
		look(70 * time.Second) // they could not be read
		look(80*time.Second, m2, rest)
		rows := all(t, d)
		states := map[string]string{}
		for _, a := range rows {
			states[a.Subject] = a.State
			if a.AnnounceAt != nil {
				t.Errorf("%+v would be announced", a)
			}
		}
		if len(rows) != 2 || states["m1"] != Resolved || states["m2"] != Firing {
			t.Errorf("%v, want the one that is gone to have ended", states)
		}
	})
}

// What was removed ends its alert: a node that runs no more, and a rule that this version does not
// have. What another node reads does not.
func TestAnAlertEndsWithItsSubject(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w, start := NewWatch(d, quiet), time.Now()
		look := func(after time.Duration, readings ...Reading) {
			t.Helper()
			if err := w.Observe(t.Context(), start.Add(after), readings); err != nil {
				t.Fatal(err)
			}
		}
		n1, n2, n3 := Reading{Rule: RedisDown, Subject: "n1", Value: 100}, Reading{Rule: RedisDown, Subject: "n2", Value: 100},
			Reading{Rule: RedisDown, Subject: "n3", Value: 100}
		look(0, n1, n2, n3)
		look(5*time.Minute, n1, n2, n3)
		if _, err := d.NewRaw(
			"INSERT INTO alerts (id, rule, subject, state, value, count, opened_at, updated_at) VALUES (1, 'of_an_old_version', 'x', 'firing', 1, 1, 1, 1)").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		look(6*time.Minute, n1, Reading{Rule: RedisDown, Rest: true, Except: []string{"n1", "n2"}})
		got := map[string]string{}
		for _, a := range all(t, d) {
			got[a.Subject] = a.State
		}
		if want := map[string]string{"n1": Firing, "n2": Firing, "n3": Resolved, "x": Resolved}; !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

func TestTwoWatchesOpenOneAlert(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		one, two, start := NewWatch(d, quiet), NewWatch(d, quiet), time.Now()
		for _, at := range []time.Duration{0, 30 * time.Second} {
			observe(t, one, start.Add(at), 2000)
			observe(t, two, start.Add(at), 2000)
		}
		if n := len(all(t, d)); n != 1 {
			t.Errorf("%d alerts, want 1", n)
		}
	})
}

func record(t *testing.T, d *db.DB, events ...Event) {
	t.Helper()
	err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error { return Record(ctx, tx, d, events) })
	if err != nil {
		t.Fatal(err)
	}
}

// due makes waiting rows due.
func due(t *testing.T, d *db.DB, table, column string) {
	t.Helper()
	if _, err := d.NewRaw("UPDATE ? SET ? = 1 WHERE ? IS NOT NULL", bun.Ident(table), bun.Ident(column),
		bun.Ident(column)).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestTenThousandEventsAreOneMessage(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for range 100 {
			record(t, d, Event{Rule: ExceptionOpened, Subject: "unknown_order", Count: 1},
				Event{Rule: ExceptionOpened, Subject: "late_payment", Count: 100, Sums: money.Totals{
					{Currency: "CNY", Minor: 1999},
					{Currency: "JPY", Minor: 7},
				}})
		}
		for _, a := range all(t, d) {
			if *a.AnnounceAt != a.OpenedAt+gather.Microseconds() {
				t.Errorf("%s is announced at %d, opened at %d", a.Subject, *a.AnnounceAt, a.OpenedAt)
			}
		}
		// On a busy machine that time may be over by now.
		if _, err := d.NewRaw("UPDATE alerts SET announce_at = ?", d.Now()+time.Minute.Microseconds()).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		style := Style{Language: "en", Zone: time.UTC, Console: "https://console.example/"}
		if n, err := Announce(t.Context(), d, []string{"a", "b"}, style); err != nil || len(n) != 0 {
			t.Fatalf("announced before the others arrived: %v, %v", n, err)
		}
		due(t, d, "alerts", "announce_at")
		n, err := Announce(t.Context(), d, []string{"a", "b"}, style)
		if err != nil || len(n) != 2 {
			t.Fatalf("%v messages, %v, want one for each target", n, err)
		}
		messages, err := Messages(t.Context(), d, 0, 10)
		if err != nil || len(messages) != 2 {
			t.Fatal(messages, err)
		}
		for _, want := range []string{
			"10000 late payments (CNY 1999.00, JPY 700), 100 payments for unknown orders\n",
			"https://console.example/exceptions",
		} {
			if !strings.Contains(messages[0].Body, want) {
				t.Errorf("%q is missing in %q", want, messages[0].Body)
			}
		}
		record(t, d, Event{Rule: ExceptionOpened, Subject: "malformed", Count: 1})
		due(t, d, "alerts", "announce_at")
		if n, _ := Announce(t.Context(), d, []string{"a"}, style); len(n) != 0 {
			t.Error("a second message of the rule within a minute")
		}
	})
}

// An alert about exceptions lists their kinds, numbers and money.
func TestAnExceptionsAlertNamesKindsAndSums(t *testing.T) {
	t.Parallel()
	alerts := []Alert{
		{Subject: exception.DisputeOpened, Count: 1, Sums: money.Totals{{Currency: "USD", Minor: 2500}}},
		{Subject: exception.AmountMismatch, Count: 2, Sums: money.Totals{{Currency: "CNY", Minor: 3998}, {Currency: "USD", Minor: 1200}}},
		{Subject: exception.AmountMismatch, Count: 1, Sums: money.Totals{{Currency: "CNY", Minor: 1999}}},
		{Subject: exception.Malformed, Count: 1},
	}
	for language, want := range map[string]string{
		"en": "00:00:00 UTC 3 amount mismatches (CNY 59.97, USD 12.00), 1 dispute (USD 25.00), 1 malformed message\nhttps://c.example/exceptions?state=needs",
		"zh": "00:00:00 UTC 3 笔金额不符（CNY 59.97、USD 12.00）、1 笔拒付争议（USD 25.00）、1 笔内容不完整的消息\nhttps://c.example/exceptions?state=needs",
	} {
		if _, body := (Style{Language: language, Zone: time.UTC, Console: "https://c.example/"}).compose(Rule{Name: ExceptionOpened},
			alerts); body != want {
			t.Errorf("%s: %q, want %q", language, body, want)
		}
	}
	const dispute = "00:00:00 UTC 1 dispute (USD 25.00)\nhttps://c.example/exceptions?kind=dispute_opened"
	if _, body := (Style{Language: "en", Zone: time.UTC, Console: "https://c.example/"}).compose(Rule{Name: DisputeOpened},
		alerts[:1]); body != dispute {
		t.Errorf("%q, want %q", body, dispute)
	}
	for _, kind := range exception.Kinds {
		if _, ok := kindNames[kind]; !ok {
			t.Errorf("the kind %s has no name", kind)
		}
	}
}

func TestProposalsThatWaitAreOneLineWithTheirMoney(t *testing.T) {
	t.Parallel()
	a := Alert{
		Rule: ProposalWaits, Subject: "1h2m0s", State: Happened, Count: 25,
		Sums: money.Totals{{Currency: "CNY", Minor: 1998}, {Currency: "USD", Minor: 500}},
	}
	for language, want := range map[string]string{
		"en": "00:00:00 UTC 25 (CNY 19.98, USD 5.00) waiting for a second person, the oldest for 1h2m0s\nhttps://c.example/approvals?state=waiting",
		"zh": "00:00:00 UTC 25 份提议等待第二人复核（CNY 19.98、USD 5.00），最久 1h2m0s\nhttps://c.example/approvals?state=waiting",
	} {
		if _, body := (Style{Language: language, Zone: time.UTC, Console: "https://c.example/"}).compose(Rule{Name: ProposalWaits},
			[]Alert{a}); body != want {
			t.Errorf("%s: %q, want %q", language, body, want)
		}
	}
}

func TestWhatIsDownHasNoLevel(t *testing.T) {
	t.Parallel()
	s := Style{Language: "en", Zone: time.UTC}
	for state, want := range map[string]string{Firing: "n1: cannot be used\n", Resolved: "n1: healthy again\n"} {
		_, body := s.compose(Rule{Name: RedisDown, Fire: 50}, []Alert{{Rule: RedisDown, Subject: "n1", State: state, Value: 100}})
		if !strings.Contains(body, want) || strings.Contains(body, "%") {
			t.Errorf("%s: %q", state, body)
		}
	}
}

// fickle fails a given number of times.
type fickle struct {
	mu            sync.Mutex
	failures, got int
}

func (*fickle) Name() string { return "a" }
func (f *fickle) Send(ctx context.Context, _, _ string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failures > 0 {
		f.failures--
		return errors.New("no route")
	}
	f.got++
	return nil
}

func TestAMessageIsSentAgainUntilItArrivesOrIsGivenUp(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, c := range []struct {
			failures int
			status   string
			attempts int64
		}{{0, Sent, 1}, {3, Sent, 4}, {100, Failed, int64(len(waits)) + 1}} {
			t.Run(fmt.Sprint(c.failures), func(t *testing.T) {
				record(t, d, Event{Rule: NotifyExhausted, Subject: t.Name(), Count: 1})
				due(t, d, "alerts", "announce_at")
				if _, err := d.NewRaw("UPDATE alert_rules SET next_message_at = 0").Exec(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := Announce(t.Context(), d, []string{"a"}, Style{Zone: time.UTC}); err != nil {
					t.Fatal(err)
				}
				target := &fickle{failures: c.failures}
				for range len(waits) + 3 {
					due(t, d, "alert_messages", "next_at")
					if err := Send(t.Context(), d, []Target{target}, quiet); err != nil {
						t.Fatal(err)
					}
				}
				m, err := Messages(t.Context(), d, 0, 1)
				if err != nil || m[0].Status != c.status || m[0].Attempts != c.attempts || target.got > 1 {
					t.Errorf("%+v, arrived %d times, %v", m, target.got, err)
				}
			})
		}
	})
}

// silent accepts connections and never answers.
type silent struct{ while func() }

func (silent) Name() string { return "silent" }
func (s silent) Send(ctx context.Context, _, _ string) error {
	<-ctx.Done()
	s.while()
	return ctx.Err()
}

func TestATargetThatHangsDelaysNoOther(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	rules := []string{NotifyExhausted, ExceptionOpened, BreakerOpened}
	for _, rule := range rules {
		record(t, d, Event{Rule: rule, Subject: "m1", Count: 1})
	}
	due(t, d, "alerts", "announce_at")
	if _, err := Announce(t.Context(), d, []string{"silent", "a"}, Style{Zone: time.UTC}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	healthy := &fickle{}
	// Results are written meanwhile: if a node dies now, nothing is sent twice.
	written := func() {
		var n int
		if err := d.NewRaw("SELECT count(*) FROM alert_messages WHERE status = ?", Sent).Scan(context.Background(), &n); err != nil ||
			n != len(rules) {
			t.Errorf("%d written down as sent while a target hangs, %v", n, err)
		}
	}
	err := Send(ctx, d, []Target{silent{written}, healthy}, quiet)
	if err != nil || healthy.got != len(rules) {
		t.Errorf("%d arrived at the healthy target, %v", healthy.got, err)
	}
}

func TestARuleKeepsTheSideOfItsLimit(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	good := Rule{Name: SuccessRate, Enabled: true, Fire: 9000, Clear: 9100, HoldS: 60, QuietS: 60}
	if err := Save(t.Context(), d, d, good); err != nil {
		t.Fatal(err)
	}
	rules, err := Rules(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := find(rules, SuccessRate); err != nil || r.Fire != 9000 || !r.beyond(8999) || r.beyond(9000) || !r.back(9100) ||
		r.back(9099) {
		t.Errorf("%+v, %v", r, err)
	}
	for name, bad := range map[string]Rule{
		"unknown":      {Name: "no_such_rule"},
		"other side":   {Name: SuccessRate, Fire: 9100, Clear: 9000},
		"hold too big": {Name: SuccessRate, Fire: 9000, Clear: 9100, HoldS: 1 << 40},
	} {
		if err := Save(t.Context(), d, d, bad); err == nil {
			t.Errorf("%s: saved", name)
		}
	}
}

func TestEveryRuleHasItsTexts(t *testing.T) {
	t.Parallel()
	for _, r := range defaults {
		if x := ruleTexts[r.Name]; x.title.ZH == "" || x.title.EN == "" || x.link == "" {
			t.Errorf("rule %s has no title or link", r.Name)
		}
	}
	if len(ruleTexts) != len(defaults) {
		t.Error("texts of rules that do not exist")
	}
}

func TestARuleKeptBeforeWindowsWereHasItsDefaultWindow(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		if _, err := d.NewRaw(
			"INSERT INTO alert_rules (name, enabled, fire, clear, hold_s, quiet_s, updated_at) VALUES (?, TRUE, 9000, 9500, 30, 300, 0)",
			SuccessRate).Exec(ctx); err != nil {
			t.Fatal(err)
		}
		window := func() int64 {
			t.Helper()
			rules, err := Rules(ctx, d.Read)
			if err != nil {
				t.Fatal(err)
			}
			r, err := find(rules, SuccessRate)
			if err != nil {
				t.Fatal(err)
			}
			return r.WindowS
		}
		if got := window(); got != 300 {
			t.Errorf("the window is %d s", got)
		}
		if err := Save(ctx, d, d, Rule{Name: SuccessRate, Enabled: true, Fire: 9000, Clear: 9500, WindowS: 600}); err != nil ||
			window() != 600 {
			t.Errorf("after a change: %d s, %v", window(), err)
		}
		for _, wrong := range []Rule{
			{Name: SuccessRate, Fire: 9000, Clear: 9500, WindowS: 90},
			{Name: SuccessRate, Fire: 9000, Clear: 9500, WindowS: 7200},
			{Name: QueueLength, Fire: 10, Clear: 5, WindowS: 60},
		} {
			if err := Save(ctx, d, d, wrong); !errors.Is(err, ErrRule) {
				t.Errorf("%+v: %v", wrong, err)
			}
		}
	})
}

func TestLevelsAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for _, r := range defaults {
		got, err := Read(r.Name, Write(r.Name, r.Fire))
		if err != nil || got != r.Fire {
			t.Errorf("%s: %d becomes %q and %d, %v", r.Name, r.Fire, Write(r.Name, r.Fire), got, err)
		}
		if Title(r.Name, "zh") == Title(r.Name, "en") {
			t.Errorf("%s has no title in both languages", r.Name)
		}
	}
	for _, wrong := range []string{"", "x", "-1", "NaN", "1e300", "+Inf"} {
		if _, err := Read(QueueLength, wrong); !errors.Is(err, ErrRule) {
			t.Errorf("%q is read: %v", wrong, err)
		}
	}
}

// A dispute must be answered in time: neither other exceptions nor another dispute within the
// same minutes suppress it.
func TestEachDisputeRings(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		announced := func() (n int) {
			t.Helper()
			due(t, d, "alerts", "announce_at")
			ids, err := Announce(t.Context(), d, []string{"a"}, Style{Zone: time.UTC})
			if err != nil {
				t.Fatal(err)
			}
			return len(ids)
		}
		record(t, d, Event{Rule: ExceptionOpened, Subject: "malformed", Count: 3})
		if announced() != 1 {
			t.Fatal("no message of the other exceptions")
		}
		record(t, d, Event{Rule: DisputeOpened, Subject: "dispute_opened", Count: 1})
		if announced() != 1 {
			t.Error("a dispute waits for the messages of other exceptions")
		}
		record(t, d, Event{Rule: DisputeOpened, Subject: "dispute_opened", Count: 1})
		if rows := all(t, d); len(rows) != 3 {
			t.Errorf("%d alerts: the second dispute was only counted", len(rows))
		}
		// Messages of one rule are a minute apart, so that many disputes are one message.
		if _, err := d.NewRaw("UPDATE alert_rules SET next_message_at = 0 WHERE name = ?", DisputeOpened).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if announced() != 1 {
			t.Error("the second dispute is not announced")
		}
	})
}

// A storm of alerts of one rule does not keep those of another from being announced.
func TestAStormKeepsNoOtherAlert(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		due := d.Now() - 1
		put := func(rule string, n int) {
			t.Helper()
			rows := make([]*Alert, n)
			for i := range rows {
				rows[i] = opened(d, Alert{Rule: rule, Subject: fmt.Sprint("m", i), State: Happened, Count: 1})
				rows[i].AnnounceAt = &due
			}
			if _, err := d.NewInsert().Model(&rows).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		announced := func() int {
			t.Helper()
			ids, err := Announce(t.Context(), d, []string{"target"}, Style{Zone: time.UTC, Language: "en"})
			if err != nil {
				t.Fatal(err)
			}
			return len(ids)
		}
		put(BreakerOpened, 2*maxAnnounce+1)
		if announced() != 1 {
			t.Fatal("the storm is not announced")
		}
		due++
		put(PayoutRefused, 1)
		if announced() != 1 {
			t.Error("the other alert waits for the storm")
		}
		if announced() != 0 {
			t.Error("an alert is announced twice, or before its rule's turn")
		}
	})
}

// An alert about a fault of ours names its cause, number and money.
func TestAFaultIsAnnouncedWithItsMoney(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w, start := NewWatch(d, quiet), time.Now()
		look := func(after time.Duration, count int64, sums ...money.Total) Alert {
			t.Helper()
			if err := w.Observe(t.Context(), start.Add(after),
				[]Reading{{Rule: OurFault, Subject: "locked", Value: count * 100, Sums: sums}}); err != nil {
				t.Fatal(err)
			}
			rows := all(t, d)
			if len(rows) != 1 {
				t.Fatalf("%d alerts", len(rows))
			}
			return rows[0]
		}
		if err := w.Observe(t.Context(), start, []Reading{{Rule: OurFault, Subject: "locked"}}); err != nil || len(all(t, d)) != 0 {
			t.Fatalf("nothing waits: %v, %v", all(t, d), err)
		}
		line := func(a Alert, language string) string {
			return Style{Language: language, Zone: time.UTC}.line(Rule{}, a)
		}
		one := look(0, 1, money.Total{Currency: "CNY", Minor: 1999})
		if got := line(one, "en"); one.State != Firing || !strings.Contains(got, "secrets do not open") ||
			!strings.Contains(got, "1, CNY 19.99 notifications wait") {
			t.Errorf("%+v: %q", one, got)
		}
		more := look(time.Second, 12, money.Total{Currency: "CNY", Minor: 23988}, money.Total{Currency: "JPY", Minor: 500})
		if got := line(more, "zh"); !strings.Contains(got, "密钥无法解开") || !strings.Contains(got, "12, CNY 239.88, JPY 500 条通知在等待") {
			t.Errorf("%+v: %q", more, got)
		}
		over := look(2*time.Second, 0)
		if got := line(over, "en"); over.State != Resolved || !strings.Contains(got, "over") || !strings.Contains(got, "12, CNY 239.88") {
			t.Errorf("%+v: %q", over, got)
		}
	})
}

func TestWhatNodesDifferInIsNamed(t *testing.T) {
	t.Parallel()
	s := Style{Language: "en", Zone: time.UTC}
	for subject, want := range map[string]string{
		"ranges": "BACKSTOP_NOTIFY_ALLOW_CIDRS: running nodes differ",
		"keys":   "the master keys: running nodes differ",
	} {
		if got := s.line(Rule{}, Alert{Rule: NodesDiffer, Subject: subject, State: Firing, Value: 100}); !strings.Contains(got, want) {
			t.Errorf("%s: %q", subject, got)
		}
	}
	if got := s.line(Rule{}, Alert{Rule: WrongKey, Subject: "n2", State: Firing, Value: 100}); !strings.Contains(got,
		"n2: it does not have the master key in use") {
		t.Errorf("%q", got)
	}
}

// The alert about an opened breaker is complete.
func TestAnOpenedBreakersAlertHasWhatToDo(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 6, 3, 11, 0, time.UTC).UnixMicro()
	o := Opened{
		Merchant: "m 1", Name: "Galaxy Mall", Failures: 5, Since: at, ProbeAt: at + 300_000_000,
		Waiting: []Waits{{"", 3, 0}, {"CNY", 30, 123400}, {"HKD", 7, 350}},
	}
	hand := o
	hand.ByHand, hand.Reason, hand.ProbeAt, hand.Waiting = "li.hang", "they move\n their servers "+strings.Repeat("x", 500), 0, nil
	closed := o
	closed.Closed, closed.More = true, true
	shanghai := time.FixedZone("CST", 8*3600)
	for name, c := range map[string]struct {
		language string
		of       Opened
		want     []string
	}{
		"English": {"en", o, []string{
			"Galaxy Mall (m 1)", "after 5 failures in a row", "opened at 14:03:11", "open for 5m0s", "a probe at 14:08:11",
			"40 notifications wait: 1234.00 CNY (30), 3.50 HKD (7)", "Ask the merchant", "https://console.example/merchants/m%201",
		}},
		"Chinese": {"zh", o, []string{
			"商户 Galaxy Mall (m 1) 于 14:03:11 熔断：连续失败 5 次", "熔断 5m0s，14:08:11 自动探测",
			"挂起通知 40 条：1234.00 CNY（30 条）、3.50 HKD（7 条）", "请联系商户", "https://console.example/merchants/m%201",
		}},
		"by hand": {"en", hand, []string{
			"by li.hang: they move their servers xxx", "…", "until an operator closes it",
			"No notifications are waiting.",
		}},
		"closed since": {"en", closed, []string{
			"It has closed since.", "40+ notifications wait",
			"See https://console.example/merchants/m%201",
		}},
		"Chinese, hand":  {"zh", hand, []string{"被 li.hang 手动熔断", "需要有人解除熔断", "目前没有挂起的通知"}},
		"Chinese, again": {"zh", closed, []string{"之后已恢复"}},
	} {
		read := 0
		s := Style{
			Language: c.language, Zone: shanghai, Console: "https://console.example/",
			Opened: func(_ context.Context, merchant string) (*Opened, error) {
				if read++; merchant != "m1" {
					return nil, errors.New("the database is away")
				}
				return &c.of, nil
			},
		}
		alerts := []Alert{
			{Rule: BreakerOpened, Subject: "m1", State: Happened, Count: 1, OpenedAt: at},
			{Rule: BreakerOpened, Subject: "m2", State: Happened, Count: 2, OpenedAt: at},
		}
		rule := Rule{Name: BreakerOpened}
		_, body := s.known(t.Context(), rule, alerts).compose(rule, alerts)
		for _, want := range append(c.want, "m2", "2 ") {
			if !strings.Contains(body, want) {
				t.Errorf("%s: %q is missing in %q", name, want, body)
			}
		}
		if n := strings.Count(body, "\n"); n != 2 || read != 2 {
			t.Errorf("%s: %d lines, %d read: %q", name, n, read, body)
		}
	}
}

// The alert about a supplier says what waits for it, and links to exactly that.
func TestASuppliersAlertNamesItsMoneyAndItsOrders(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 6, 3, 11, 0, time.UTC).UnixMicro()
	x := Supplier{Failures: 5, Since: at, ProbeAt: at + 60_000_000, Orders: 4, Sums: money.Totals{
		{Currency: "CNY", Minor: 5997},
		{Currency: "USD", Minor: 1200},
	}}
	back, since, none := x, x, x
	back.Closed, since.Closed, back.More = true, true, true
	none.Orders, none.Sums = 0, nil
	for name, c := range map[string]struct {
		rule, language string
		of             Supplier
		want           []string
	}{
		"English": {SupplierUnreachable, "en", x, []string{
			"sp-main has been unreachable since 14:03:11: 5 calls failed",
			"a probe at 14:04:11", "4 orders wait for a result (CNY 59.97, USD 12.00).",
		}},
		"Chinese": {SupplierUnreachable, "zh", x, []string{
			"渠道 sp-main 自 14:03:11 起无法访问：连续失败 5 次", "14:04:11 自动探测",
			"等待支付结果的订单 4 笔（CNY 59.97、USD 12.00）。",
		}},
		"since":   {SupplierUnreachable, "en", since, []string{"sp-main has been unreachable since", "It has closed since."}},
		"nothing": {SupplierUnreachable, "en", none, []string{"No orders are waiting for a result."}},
		"again":   {SupplierReachable, "en", back, []string{"sp-main is reachable again", "4+ orders wait"}},
		"恢复":      {SupplierReachable, "zh", back, []string{"渠道 sp-main 已恢复"}},
	} {
		s := Style{
			Language: c.language, Zone: time.FixedZone("CST", 8*3600), Console: "https://console.example/",
			Supplier: func(_ context.Context, code string) (*Supplier, error) {
				if code != "sp-main" {
					return nil, errors.New("the database is away")
				}
				return &c.of, nil
			},
		}
		rule := Rule{Name: c.rule}
		alerts := []Alert{
			{Rule: c.rule, Subject: "sp-main", State: Happened, Count: 1, OpenedAt: at},
			{Rule: c.rule, Subject: "a b", State: Happened, Count: 1, OpenedAt: at, Sums: money.Totals{{Currency: "JPY", Minor: 7}}},
		}
		_, body := s.known(t.Context(), rule, alerts).compose(rule, alerts)
		for _, want := range append(c.want, "https://console.example/orders?awaits=sp-main", "JPY 7",
			"https://console.example/orders?awaits=a+b") {
			if !strings.Contains(body, want) {
				t.Errorf("%s: %q is missing in %q", name, want, body)
			}
		}
	}
	s := Style{Language: "zh", Zone: time.UTC, Console: "https://console.example"}
	stuck := Alert{Rule: StuckOrders, Subject: "orders", State: Firing, Value: 300, Sums: x.Sums}
	rule := Rule{Name: StuckOrders}
	if _, body := s.compose(rule, []Alert{stuck}); !strings.Contains(body, "3 笔订单（CNY 59.97、USD 12.00）") ||
		!strings.HasSuffix(body, "https://console.example/orders?no_result=yes") {
		t.Errorf("%q", body)
	}
	stuck.State, s.Language = Resolved, "en"
	if _, body := s.compose(rule, []Alert{stuck}); !strings.Contains(body, "No order is stuck any more; at most 3 (CNY 59.97, USD 12.00)") {
		t.Errorf("%q", body)
	}
}

func TestRefusedPayoutsAreNamedWithMerchantAddressAndWhatToDo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ language, subject, want string }{
		{
			"en", RefusedPayout("m1", ByKey, "198.51.100.7"),
			"m1: from 198.51.100.7, 3 requests for payouts were refused because they came with the api_key instead of the payout_key. Ask the merchant. If it did not send them, its api_key is stolen: replace it at once. https://c.example/merchants/m1",
		},
		{
			"en", RefusedPayout("m1", ByAddress, OtherAddresses),
			"m1: from other addresses, 3 requests for payouts were refused because the address is not in payout_ips. Ask the merchant. If it did not send them, its payout_key is stolen: replace it at once. https://c.example/merchants/m1",
		},
		{
			"zh", RefusedPayout("m1", ByKey, "198.51.100.7"),
			"商户 m1：来自 198.51.100.7 的 3 次出款请求被拒绝，请求用的是 api_key 而不是 payout_key。请联系商户核实；若不是商户本人，api_key 已泄露，请立即更换。https://c.example/merchants/m1",
		},
		{
			"zh", RefusedPayout("m1", ByAddress, OtherAddresses),
			"商户 m1：来自 其他地址 的 3 次出款请求被拒绝，该地址不在 payout_ips 之内。请联系商户核实；若不是商户本人，payout_key 已泄露，请立即更换。https://c.example/merchants/m1",
		},
	} {
		a := Alert{Rule: PayoutRefused, Subject: c.subject, State: Happened, Count: 3}
		_, body := (Style{Language: c.language, Zone: time.UTC, Console: "https://c.example/"}).compose(Rule{Name: PayoutRefused},
			[]Alert{a})
		if want := "00:00:00 UTC " + c.want + "\nhttps://c.example/alerts"; body != want {
			t.Errorf("%s: %q, want %q", c.language, body, want)
		}
	}
}

func TestABalanceBelowZeroIsNamedWithItsMerchant(t *testing.T) {
	t.Parallel()
	sums := money.Totals{{Currency: "CNY", Minor: -1998}, {Currency: "JPY", Minor: -7}}
	for _, c := range []struct{ language, state, want string }{
		{"en", Firing, "m1: its balance is below zero (CNY -19.98, JPY -7) by more than its overdraft, so its payouts are refused."},
		{"en", Resolved, "m1: its balance is no longer below zero"},
		{"zh", Firing, "商户 m1：余额为负（CNY -19.98、JPY -7），超出其透支额度，出款会被拒绝。"},
		{"zh", Resolved, "商户 m1：余额已补足"},
	} {
		a := Alert{Rule: MerchantNegative, Subject: "m1", State: c.state, Value: 200, Sums: sums}
		_, body := (Style{Language: c.language, Zone: time.UTC}).compose(Rule{Name: MerchantNegative, Fire: 50}, []Alert{a})
		if !strings.HasPrefix(body, "00:00:00 UTC "+c.want) {
			t.Errorf("%s %s: %q, want %q", c.language, c.state, body, c.want)
		}
	}
}
