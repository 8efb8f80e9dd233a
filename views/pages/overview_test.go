package pages

import (
	"strings"
	"testing"
	"time"

	"backstop/internal/base/queue"
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/report"
	"backstop/views/ui"
)

func TestGridStepsAreRoundAndHoldTheMost(t *testing.T) {
	for most, want := range map[int64]int64{0: 1, 1: 1, 3: 1, 4: 2, 7: 4, 2053: 800, 2401: 1000, 30_000_000: 10_000_000} {
		if got := gridStep(most); got != want || 3*got < most {
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
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	p := &ui.Page{Language: "en", Zone: zone, Now: time.Now()}
	start := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	for _, r := range console.Ranges {
		points := make([]report.Point, int(r.Span/r.Step))
		for i := range points {
			points[i] = report.Point{Start: start.Add(time.Duration(i) * r.Step).UnixMicro(), OK: int64(i * 7), Retried: int64(i % 5), Failed: int64(i % 3)}
		}
		points[3] = report.Point{Start: points[3].Start}
		c := drawOutcomes(p, points, r.Span)
		labels := 0
		for i, b := range c.bars {
			top := b.failed.Y
			if top < barsTop-0.01 || b.ok.X < plotLeft || b.ok.X+b.ok.W > plotRight {
				t.Errorf("%s: bar %d is at %+v", r.Name, i, b)
			}
			if b.label != "" {
				labels++
			}
			if r.Name == "24h" && b.label != "" && b.label != p.At(points[i].Start).Format("15:04") {
				t.Errorf("the bar of %s is labelled %s", p.At(points[i].Start), b.label)
			}
		}
		if labels < 4 || labels > 12 {
			t.Errorf("%s has %d labels", r.Name, labels)
		}
		if strings.Count(c.line, "M") != 2 {
			t.Errorf("%s: the line of the rate is %q, want one gap", r.Name, c.line)
		}
	}
}

func TestEveryQueueAndKindHasItsWord(t *testing.T) {
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
	now := time.Now().UnixMicro()
	risk := func(minor int64) map[report.Part]report.Standing {
		return map[report.Part]report.Standing{report.Unnotified: {Sums: []report.Sum{{Currency: "CNY", Orders: 3, Minor: minor}, {Currency: "USD", Orders: 1, Minor: 9999}}}}
	}
	r := &console.Risk{Risk: &report.Risk{At: now, Parts: risk(500)}}
	r.Total = r.Parts[report.Unnotified]
	if _, ok := hourAgo(r, "CNY"); ok {
		t.Error("compared with nothing")
	}
	minute := time.Minute.Microseconds()
	r.Past = []report.Past{{At: now - 90*minute, Parts: risk(1)}, {At: now - 62*minute, Parts: risk(200)}, {At: now - 5*minute, Parts: risk(2)}}
	if more, ok := hourAgo(r, "CNY"); !ok || more != 300 {
		t.Errorf("%d more than an hour ago, want 300", more)
	}
	if since := clearSince(r); since != 0 {
		t.Errorf("money is at risk, but the page shows none since %d", since)
	}
	clear := &console.Risk{Risk: &report.Risk{At: now}, Past: append(r.Past, report.Past{At: now - 4*minute}, report.Past{At: now - minute})}
	if since := clearSince(clear); since != now-4*minute {
		t.Errorf("clear since %d, want %d", since, now-4*minute)
	}
	if main, others := lead(r.Total); main.Currency != "CNY" || len(others) != 1 {
		t.Errorf("the leading currency is %s beside %v", main.Currency, others)
	}
	if signed(-5, "CNY") != "−¥0.05" || signed(5, "CNY") != "+¥0.05" {
		t.Errorf("%s %s", signed(-5, "CNY"), signed(5, "CNY"))
	}
}

// A queue with parked rows is not green, and its oldest wait is their age.
func TestAQueueWithParkedRowsIsNotGreen(t *testing.T) {
	parked := console.Lane{Name: string(queue.Delayed), Kept: true, Rows: 3, Age: 25 * time.Minute}
	if s := laneState(parked); s.Kind != "warn" || s.Label != text.Parked || laneWait(parked) != 25*time.Minute {
		t.Errorf("%+v waits for %s", s, laneWait(parked))
	}
	if s := laneState(console.Lane{Name: string(queue.Delayed), Kept: true}); s.Kind != "idle" {
		t.Errorf("nothing is parked: %+v", s)
	}
}
