package metric_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"backstop/internal/base/metric"

	"github.com/prometheus/client_golang/prometheus"
)

// family is one metric as /metrics shows it, and series its value for some labels.
type family struct {
	help, kind string
	series     []series
}

type series struct {
	labels []string // name, value, name, value ...
	value  float64  // of a histogram, the number of observations
	sum    float64
}

// scrape returns what /metrics shows.
func scrape(t *testing.T) map[string]family {
	t.Helper()
	families, err := metric.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]family{}
	for _, f := range families {
		shown := family{help: f.GetHelp(), kind: f.GetType().String()}
		for _, m := range f.Metric {
			h := m.GetHistogram()
			one := series{value: m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(h.GetSampleCount()), sum: h.GetSampleSum()}
			for _, l := range m.Label {
				one.labels = append(one.labels, l.GetName(), l.GetValue())
			}
			shown.series = append(shown.series, one)
		}
		all[f.GetName()] = shown
	}
	return all
}

// find returns one series, e.g. find(all, "x", "part", "stuck", "currency", "CNY").
func find(all map[string]family, name string, labels ...string) (series, bool) {
	i := slices.IndexFunc(all[name].series, func(s series) bool { return slices.Equal(s.labels, labels) })
	if i < 0 {
		return series{}, false
	}
	return all[name].series[i], true
}

func want(t *testing.T, all map[string]family, n float64, name string, labels ...string) {
	t.Helper()
	if got, there := find(all, name, labels...); !there || got.value != n {
		t.Errorf("%s%q is %v (%v), want %v", name, labels, got.value, there, n)
	}
}

var full = metric.Snapshot{
	AtRisk: []metric.AtRisk{{Part: "stuck", Currency: "CNY", Orders: 3, Minor: 1200}}, FiringAlerts: new(float64),
	Orders: &metric.OrdersNotified{Raised: 10, Notified: 9}, Untried: &metric.Untried{Orders: 2, Oldest: 1500 * time.Millisecond},
	Compensations: []metric.Compensations{{State: "dead", Kind: "resend", Count: 4}},
	Skew:          map[string]time.Duration{"redis": -time.Second},
}

// everything gives each family of the package a series.
func everything(t *testing.T) map[string]family {
	metric.RegisterBacklogs(func(context.Context) []metric.Backlog { return []metric.Backlog{{Queue: "due"}} })
	metric.RegisterSnapshot(func(context.Context) metric.Snapshot { return full })
	metric.ObserveBatch("test")(1, time.Millisecond, nil)
	for _, c := range []*prometheus.CounterVec{
		metric.Callbacks, metric.Attempts, metric.Notifications, metric.BreakerChanges, metric.OrdersMoved,
		metric.Exceptions, metric.Nudges, metric.Alerts, metric.AlertMessages,
	} {
		metric.Begin(c, "x")
	}
	metric.SetBuild("v1", "c")
	metric.SupplierCallbacks.WithLabelValues("x", "x")
	metric.SupplierCallsMade.WithLabelValues("x", "x")
	metric.InFlight.WithLabelValues("x")
	metric.Breakers.WithLabelValues("x")
	return scrape(t)
}

func TestEveryFigureHasANameOfOursAndADescription(t *testing.T) {
	name := regexp.MustCompile(`^(backstop(_[a-z]+)+|go_.*|process_.*)$`)
	ours := 0
	for figure, f := range everything(t) {
		if !name.MatchString(figure) || f.help == "" {
			t.Errorf("%s: %q", figure, f.help)
		}
		if !strings.HasPrefix(figure, "backstop_") {
			continue
		}
		ours++
		if !strings.HasSuffix(f.help, ".") || len(f.help) < 15 {
			t.Errorf("%s: %q is no sentence", figure, f.help)
		}
		if counts := f.kind == "COUNTER"; counts != strings.HasSuffix(figure, "_total") {
			t.Errorf("%s is a %s", figure, f.kind)
		}
		if f.kind == "HISTOGRAM" && !strings.HasSuffix(figure, "_seconds") && !strings.HasSuffix(figure, "_items") {
			t.Errorf("%s lacks its unit", figure)
		}
	}
	if ours < 25 {
		t.Errorf("only %d are seen", ours)
	}
}

// Each further label multiplies the series; no label may have as many values as there are
// merchants.
func TestNoFigureHasALabelOfWhichThereAreUnboundedlyMany(t *testing.T) {
	known := []string{
		"outcome", "class", "result", "pool", "state", "to", "batch", "status", "kind", "rule", "queue", "part", "currency",
		"window", "of",
		"supplier",                // those that are declared
		"version", "commit", "go", // of this process
	}
	for figure, f := range everything(t) {
		if !strings.HasPrefix(figure, "backstop_") {
			continue
		}
		for _, one := range f.series {
			for i := 0; i < len(one.labels); i += 2 {
				if !slices.Contains(known, one.labels[i]) {
					t.Errorf("%s has the label %s: is the set of its values bounded?", figure, one.labels[i])
				}
			}
		}
	}
}

type outcome string

func TestCountersBeginWithNothingAndKeepWhatTheyHave(t *testing.T) {
	t.Cleanup(func() { metric.Callbacks.DeleteLabelValues("begin-one") }) // the registry is shared by the process
	metric.Begin[outcome](metric.Callbacks, "begin-one", "begin-two")
	all := scrape(t)
	want(t, all, 0, "backstop_callbacks_total", "outcome", "begin-one")
	want(t, all, 0, "backstop_callbacks_total", "outcome", "begin-two")
	if _, there := find(all, "backstop_callbacks_total", "outcome", "begin-three"); there {
		t.Error("an unnamed value is there")
	}
	metric.Callbacks.WithLabelValues("begin-one").Add(3)
	metric.Begin[outcome](metric.Callbacks, "begin-one") // the process starts a second app, as tests do
	want(t, scrape(t), 3, "backstop_callbacks_total", "outcome", "begin-one")
}

func TestWhatIsRegisteredAgainTakesThePlaceOfTheFirst(t *testing.T) {
	for n := range 3 {
		metric.RegisterBacklogs(func(context.Context) []metric.Backlog {
			return []metric.Backlog{{Queue: "due", Tasks: float64(n), Oldest: 1500 * time.Millisecond}}
		})
		metric.RegisterSnapshot(func(context.Context) metric.Snapshot {
			return metric.Snapshot{Untried: &metric.Untried{Orders: float64(n)}}
		})
		all := scrape(t)
		want(t, all, float64(n), "backstop_queue_tasks", "queue", "due")
		want(t, all, 1.5, "backstop_queue_oldest_seconds", "queue", "due")
		want(t, all, float64(n), "backstop_notify_untried")
	}
}

func TestASnapshotIsShownInItsUnits(t *testing.T) {
	metric.RegisterSnapshot(func(context.Context) metric.Snapshot { return full })
	all := scrape(t)
	want(t, all, 3, "backstop_at_risk_orders", "currency", "CNY", "part", "stuck")
	want(t, all, 1200, "backstop_at_risk_minor_units", "currency", "CNY", "part", "stuck")
	want(t, all, 0, "backstop_alerts_firing")
	want(t, all, 10, "backstop_orders_raised", "window", "1h")
	want(t, all, 9, "backstop_orders_notified", "window", "1h")
	want(t, all, 2, "backstop_notify_untried")
	want(t, all, 4, "backstop_compensations", "kind", "resend", "state", "dead")
	want(t, all, 1.5, "backstop_notify_untried_oldest_seconds")
	want(t, all, -1, "backstop_clock_skew_seconds", "of", "redis")
}

// A 0 would mean that everything is healthy.
func TestWhatIsNotKnownIsLeftOut(t *testing.T) {
	metric.RegisterSnapshot(func(context.Context) metric.Snapshot { return metric.Snapshot{} })
	all := scrape(t)
	for _, name := range []string{
		"backstop_at_risk_orders", "backstop_at_risk_minor_units", "backstop_alerts_firing", "backstop_orders_raised",
		"backstop_orders_notified",
		"backstop_notify_untried", "backstop_notify_untried_oldest_seconds", "backstop_compensations", "backstop_clock_skew_seconds",
	} {
		if f, there := all[name]; there {
			t.Errorf("%s is shown: %+v", name, f)
		}
	}
}

func TestNothingIsReadBetweenScrapesAndEachReadIsBounded(t *testing.T) {
	read := 0
	metric.RegisterBacklogs(func(ctx context.Context) []metric.Backlog {
		read++
		if end, bounded := ctx.Deadline(); !bounded || time.Until(end) > 10*time.Second {
			t.Errorf("a read may last until %v (%v)", end, bounded)
		}
		return nil
	})
	metric.RegisterSnapshot(func(ctx context.Context) metric.Snapshot {
		if end, bounded := ctx.Deadline(); !bounded || time.Until(end) > 10*time.Second {
			t.Errorf("a read may last until %v (%v)", end, bounded)
		}
		return metric.Snapshot{}
	})
	if read != 0 {
		t.Errorf("read %d times before the first scrape", read)
	}
	scrape(t)
	scrape(t)
	if read != 2 {
		t.Errorf("read %d times in two scrapes", read)
	}
}

func TestABatchIsCountedAndItsErrorOnlyIfItHasOne(t *testing.T) {
	t.Cleanup(func() { forget("one") })
	observe := metric.ObserveBatch("one")
	want(t, scrape(t), 0, "backstop_commit_batch_errors_total", "batch", "one") // before the first error
	observe(7, 20*time.Millisecond, nil)
	observe(3, 10*time.Millisecond, errors.New("rolled back"))
	all := scrape(t)
	want(t, all, 2, "backstop_commit_batch_items", "batch", "one")
	want(t, all, 2, "backstop_commit_batch_seconds", "batch", "one")
	want(t, all, 1, "backstop_commit_batch_errors_total", "batch", "one")
	if items, _ := find(all, "backstop_commit_batch_items", "batch", "one"); items.sum != 10 {
		t.Errorf("the items of both are %v", items.sum)
	}
}

// forget removes a batch from the registry, which is shared by the process.
func forget(batch string) {
	metric.BatchItems.DeleteLabelValues(batch)
	metric.BatchSeconds.DeleteLabelValues(batch)
	metric.BatchErrors.DeleteLabelValues(batch)
}

func TestFiguresMayBeScrapedWhileTheyAreCountedAndReplaced(t *testing.T) {
	t.Cleanup(func() { forget("race") })
	everything(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				metric.ObserveBatch("race")(1, time.Millisecond, nil)
				if _, err := metric.Registry.Gather(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 20 {
		metric.RegisterBacklogs(func(context.Context) []metric.Backlog { return []metric.Backlog{{Queue: "due"}} })
	}
	wg.Wait()
	want(t, scrape(t), 80, "backstop_commit_batch_items", "batch", "race")
}
