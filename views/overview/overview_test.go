package overview

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/queue"
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/report"
	"backstop/views/chart"
	"backstop/views/ui"
)

func TestGridStepsAreRoundAndHoldTheMost(t *testing.T) {
	t.Parallel()
	for most, want := range map[int64]int64{0: 1, 1: 1, 3: 1, 4: 2, 7: 4, 2053: 800, 2401: 1000, 30_000_000: 10_000_000} {
		if got := chart.GridStep(most); got != want || 3*got < most {
			t.Errorf("a third of %d is %d, want %d", most, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 800: "800", 1600: "1.6k", 2000: "2k", 3_500_000: "3.5M"} {
		if got := ui.Short(n); got != want {
			t.Errorf("short(%d) = %q, want %q", n, got, want)
		}
	}
}

// Every attempt is somewhere in the chart, within its bounds, and the day begins
// where the person's day begins.
func TestChartStaysWithinItsBoundsAndFollowsTheZone(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	p := &ui.Page{Language: "en", Zone: zone, Now: time.Now()}
	start := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	for _, r := range console.Ranges {
		n := int(r.Span / r.Step)
		o := &console.Outcomes{Range: r, Points: make([]report.Point, n), Steps: make([]report.Step, n)}
		for i := range o.Points {
			at := start.Add(time.Duration(i) * r.Step).UnixMicro()
			o.Points[i] = report.Point{Start: at, OK: int64(i*7 + 1), Retried: int64(i % 5), Failed: int64(i % 3)}
			o.Steps[i] = report.Step{Start: at, Raised: int64(i + 1), Notified: int64(i)}
		}
		o.Points[3], o.Steps[3] = report.Point{Start: o.Points[3].Start}, report.Step{Start: o.Points[3].Start}
		c := outcomesPlot(p, o, 0.995)
		for _, b := range c.Cells {
			if b.Y < barsTop-0.01 || b.Y+b.H > barsBottom+0.76 || b.X < 0 || b.X+b.W > chart.Width {
				t.Errorf("%s: a bar is at %+v", r.Name, b)
			}
		}
		if len(c.Labels) < 4 || len(c.Labels) > 12 {
			t.Errorf("%s has %d labels", r.Name, len(c.Labels))
		}
		for _, l := range c.Labels {
			i := int(l.X / chart.Width * float64(n))
			if r.Name == "24h" && l.Text != p.At(o.Points[i].Start).Format("15:04") {
				t.Errorf("the bar of %s is labelled %s", p.At(o.Points[i].Start), l.Text)
			}
		}
		if line := c.Paths[1].D; strings.Count(line, "M") != 2 {
			t.Errorf("%s: the line of the rate is %q, want one gap", r.Name, line)
		}
		// The objective is a line of its own, below what is perfect.
		if line := c.Paths[0].D; !strings.HasPrefix(line, "M0 ") ||
			line == chart.Across(1, chart.Axis{High: 1, Top: rateTop, Bottom: rateBottom}) {
			t.Errorf("%s: the objective is %q", r.Name, line)
		}
		if len(c.Hits) != n || c.Hits[3].Href != "" {
			t.Errorf("%s: %d columns, an empty one leads to %q", r.Name, len(c.Hits), c.Hits[3].Href)
		}
		h := c.Hits[4]
		for _, want := range []string{"attempts: 29 delivered · 4 retried · 1 failed", "orders notified: 80.00% (4 of 5)"} {
			if !strings.Contains(h.Title, want) {
				t.Errorf("%s: %q lacks %q", r.Name, h.Title, want)
			}
		}
		from, to := p.At(o.Points[4].Start).Format(time.RFC3339), p.At(o.Points[5].Start).Format(time.RFC3339)
		if u, err := url.Parse(h.Href); err != nil || u.Path != "/notifications" || u.Query().Get("from") != strings.Replace(from, ":00-",
			"-", 1) || u.Query().Get("to") != strings.Replace(to, ":00-", "-", 1) {
			t.Errorf("%s: the column from %s to %s leads to %s", r.Name, from, to, h.Href)
		}
	}
}

func TestEveryQueueAndKindHasItsWord(t *testing.T) {
	t.Parallel()
	for _, name := range queue.Names {
		if laneWords[name] == (text.Text{}) {
			t.Errorf("the queue %s has no word", name)
		}
	}
	if len(exception.Kinds) != len(ui.ExceptionKinds) {
		t.Errorf("the overview counts %d kinds of exceptions, there are %d", len(exception.Kinds), len(ui.ExceptionKinds))
	}
	for _, kind := range exception.Kinds {
		if _, ok := ui.ExceptionKinds[kind]; !ok {
			t.Errorf("%s is no kind of exceptions", kind)
		}
	}
	for _, part := range report.Parts {
		if ui.RiskParts[part].Label == (text.Text{}) {
			t.Errorf("the part %s looks like nothing", part)
		}
	}
}

func TestMoneyIsComparedWithAnHourAgoInItsCurrency(t *testing.T) {
	t.Parallel()
	now := time.Now().UnixMicro()
	risk := func(minor int64) map[report.Part]report.Standing {
		return map[report.Part]report.Standing{report.Unnotified: {Sums: []report.Sum{
			{Currency: "CNY", Orders: 3, Minor: minor},
			{Currency: "USD", Orders: 1, Minor: 9999},
		}}}
	}
	r := &console.Risk{Risk: &report.Risk{At: now, Parts: risk(500)}}
	r.Total = r.Parts[report.Unnotified]
	if _, ok := hourAgo(r, "CNY"); ok {
		t.Error("compared with nothing")
	}
	minute := time.Minute.Microseconds()
	r.Past = []report.Past{
		{At: now - 90*minute, Parts: risk(1)},
		{At: now - 62*minute, Parts: risk(200)},
		{At: now - 5*minute, Parts: risk(2)},
	}
	if more, ok := hourAgo(r, "CNY"); !ok || more != 300 {
		t.Errorf("%d more than an hour ago, want 300", more)
	}
	if since := clearSince(r); since != 0 {
		t.Errorf("money is at risk, but the page shows none since %d", since)
	}
	clear := &console.Risk{Risk: &report.Risk{At: now}, Past: append(r.Past, report.Past{At: now - 4*minute},
		report.Past{At: now - minute})}
	if since := clearSince(clear); since != now-4*minute {
		t.Errorf("clear since %d, want %d", since, now-4*minute)
	}
	if main, others := ui.LeadSum(r.Total); main.Currency != "CNY" || len(others) != 1 {
		t.Errorf("the leading currency is %s beside %v", main.Currency, others)
	}
	if signed(-5, "CNY") != "−¥0.05" || signed(5, "CNY") != "+¥0.05" {
		t.Errorf("%s %s", signed(-5, "CNY"), signed(5, "CNY"))
	}
}

// A queue with parked rows is not green, and its oldest wait is their age.
func TestAQueueWithParkedRowsIsNotGreen(t *testing.T) {
	t.Parallel()
	parked := console.Lane{Name: string(queue.Delayed), Kept: true, Rows: 3, Age: 25 * time.Minute}
	if s := laneState(parked); s.Kind != "warn" || s.Label != text.Parked || laneWait(parked) != 25*time.Minute {
		t.Errorf("%+v waits for %s", s, laneWait(parked))
	}
	if s := laneState(console.Lane{Name: string(queue.Delayed), Kept: true}); s.Kind != "idle" {
		t.Errorf("nothing is parked: %+v", s)
	}
}

// The bar of the money at risk is as wide as its place, whatever its parts are.
func TestTheSplitFillsItsBarAndShowsTheSmallest(t *testing.T) {
	t.Parallel()
	of := func(minor ...int64) *console.Risk {
		r := &console.Risk{Risk: &report.Risk{Parts: map[report.Part]report.Standing{}}}
		for i, m := range minor {
			r.Parts[report.Parts[i]] = report.Standing{Sums: []report.Sum{{Currency: "CNY", Orders: 1, Minor: m}}}
		}
		return r
	}
	for _, minor := range [][]int64{{1}, {1, 1}, {1_000_000_000, 1, 1, 1}, {0, 5, 0, 3}, {1, 2, 3, 4_000_000}, {1 << 50, 1 << 50}} {
		x := 0.0
		for _, s := range splitOf(of(minor...), "CNY") {
			if s.w < splitLeast || s.x < x-1e-9 || s.x > x+1e-9 {
				t.Errorf("%v: a part begins at %f with %f, the last one ended at %f", minor, s.x, s.w, x)
			}
			x = s.x + s.w
		}
		if x < 99.999 || x > 100.001 {
			t.Errorf("%v fills %f percent", minor, x)
		}
	}
	if all := splitOf(of(0, 5, 0, 3), "CNY"); len(all) != 2 || all[0].part != report.Compensated || all[0].w != 62.5 {
		t.Errorf("%+v", all)
	}
	if all := splitOf(of(7), "USD"); len(all) != 0 {
		t.Errorf("another currency: %+v", all)
	}
}

// The sum at risk is in ink while there is none, a warning while all of it is on its way, and
// bad once some waits for more.
func TestTheColourOfTheMoneyAtRisk(t *testing.T) {
	t.Parallel()
	now := time.Now().UnixMicro()
	one := report.Standing{Sums: []report.Sum{{Currency: "CNY", Orders: 1, Minor: 5}}}
	two := report.Standing{Sums: []report.Sum{{Currency: "CNY", Orders: 2, Minor: 9}}}
	clear := &console.Risk{Risk: &report.Risk{At: now}}
	sending := &console.Risk{Risk: &report.Risk{At: now, Total: one, Parts: map[report.Part]report.Standing{report.Unnotified: one}}}
	stuck := &console.Risk{Risk: &report.Risk{At: now, Total: two, Parts: map[report.Part]report.Standing{
		report.Unnotified: one,
		report.Stuck:      one,
	}}}
	for want, r := range map[string]*console.Risk{"ink": clear, "warn": sending, "bad": stuck} {
		if got := heroKind(r); got != want {
			t.Errorf("%+v is %s, want %s", r.Parts, got, want)
		}
	}
	p := &ui.Page{Language: "en", Zone: time.UTC, Now: time.Now()}
	if got := clearText(p, clear); got != "All notified, nothing at risk" {
		t.Errorf("never measured: %q", got)
	}
	minute := time.Minute.Microseconds()
	clear.Past = []report.Past{{At: now - 9*minute, Parts: sending.Parts}, {At: now - 4*minute}}
	if got := clearText(p, clear); got != "All notified, nothing at risk since "+ui.Minute(p, now-4*minute) {
		t.Errorf("%q", got)
	}
}

// The curve ends now with what is at risk now, and says what it draws; gaps stay gaps.
func TestTheCurveOfTheMoneyAtRiskEndsNow(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	of := func(minor int64) map[report.Part]report.Standing {
		return map[report.Part]report.Standing{
			report.Unnotified: {Sums: []report.Sum{{Currency: "CNY", Orders: 1, Minor: minor}}},
			report.Stuck:      {Sums: []report.Sum{{Currency: "CNY", Orders: 1, Minor: 100}}},
		}
	}
	p := &ui.Page{Language: "en", Zone: time.UTC, Now: now}
	r := &console.Risk{Risk: &report.Risk{At: now.UnixMicro(), Parts: of(400)}}
	for _, part := range report.Parts {
		for _, m := range r.Parts[part].Sums {
			r.Total.Add(m)
		}
	}
	if c := heroPlot(p, r, "CNY"); c.Says != "" {
		t.Errorf("drawn without a past: %q", c.Says)
	}
	for i := range 12 * 23 {
		if i < 100 || i > 160 { // it did not run for five hours
			r.Past = append(r.Past, report.Past{
				At:    now.Add(-24*time.Hour + time.Duration(i)*5*time.Minute).UnixMicro(),
				Parts: of(int64(i)),
			})
		}
	}
	c := heroPlot(p, r, "CNY")
	last := c.Hits[len(c.Hits)-1]
	if last.Title != "12:00\n¥5.00 CNY" || last.X+last.W < chart.Width-0.01 || !strings.HasSuffix(c.Says, "¥5.00 now") ||
		!strings.Contains(c.Says, "¥5.00 at most") {
		t.Errorf("%q, %+v", c.Says, last)
	}
	if line := c.Paths[1].D; strings.Count(line, "M") != 3 { // before and after the pause, and now after an hour without a measurement
		t.Errorf("gaps of %q", line)
	}
	for _, h := range c.Hits {
		if h.X < 0 || h.X+h.W > chart.Width+0.01 {
			t.Errorf("outside: %+v", h)
		}
	}
}
