package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPlanFollowsItsFilters(t *testing.T) {
	t.Parallel()
	keys := func(p Plan) (list []string) {
		for _, mode := range p.modes {
			list = append(list, mode.key)
		}
		return list
	}
	p, err := newPlan(Options{Ills: []string{"redirect", "hang", "hang"}, Rates: []int{500, 50, 500}, Rounds: 3, Length: time.Second})
	if err != nil || !slices.Equal(keys(p), []string{"nobody", "hang", "redirect"}) || !slices.Equal(p.Rates, []int{50, 500}) {
		t.Errorf("plan %v at %v: %v", keys(p), p.Rates, err)
	}
	if p.all() != 3*2*3 || p.failingMerchants() != 3*2*2*hanging {
		t.Errorf("%d pairs, %d failing merchants", p.all(), p.failingMerchants())
	}
	// 50/s in whole rows of merchants is 60; and one phase to warm up.
	if p.OrdersOf(50) != 60 || p.OrdersOf(500) != 500 || p.orders() != 60+2*3*3*(60+500) {
		t.Errorf("%d and %d orders, %d in all", p.OrdersOf(50), p.OrdersOf(500), p.orders())
	}
	if p, err = newPlan(Options{Ills: []string{"nobody"}}); err != nil || !slices.Equal(keys(p), []string{"nobody"}) {
		t.Errorf("the control alone is %v: %v", keys(p), err)
	}
	for _, o := range []Options{
		{Ills: []string{"hang", "bored"}},
		{Rates: []int{200, 0}},
		{Rates: []int{maxRate + 1}},
		{Rounds: -1},
		{Rounds: maxRounds + 1},
	} {
		if _, err := newPlan(o); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestDefaultPlanOfTwoEnginesIsBelow25Minutes(t *testing.T) {
	t.Parallel()
	p, err := newPlan(Options{})
	if err != nil || len(p.modes) != 1+len(failures) || len(p.Rates) != 2 || p.Rounds != 5 {
		t.Fatalf("plan %+v, %v", p, err)
	}
	if both := 2 * p.estimate(); both > 25*time.Minute {
		t.Errorf("takes %s", both)
	}
}

func TestEnginesFollowTheOptions(t *testing.T) {
	t.Parallel()
	const url = "postgres://127.0.0.1/test"
	for _, c := range []struct {
		engine           Engine
		url              string
		sqlite, postgres bool
		wrong            bool
	}{
		{"", "", true, false, false},
		{"", url, true, true, false},
		{SQLite, url, true, false, false},
		{Postgres, url, false, true, false},
		{Both, url, true, true, false},
		{Postgres, "", false, false, true},
		{Both, "", false, false, true},
		{"oracle", url, false, false, true},
	} {
		sqlite, postgres, err := Options{Engine: c.engine, DatabaseURL: c.url}.engines()
		if sqlite != c.sqlite || postgres != c.postgres || errors.Is(err, ErrOptions) != c.wrong {
			t.Errorf("%q with %q: %t, %t, %v", c.engine, c.url, sqlite, postgres, err)
		}
	}
}

func TestWrongOptionsStartNothing(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{
		{Part: Isolation, Ills: []string{"bored"}},
		{Part: Product, Engine: Postgres},
	} {
		o.Out = new(bytes.Buffer)
		o.Start = func(context.Context, Server) (*Process, error) {
			t.Error("started a server")
			return nil, errors.New("no server in this test")
		}
		if err := Run(t.Context(), o); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// phaseOf has these milliseconds, the first of them in the first second.
func phaseOf(early int, took ...int) Phase {
	p := Phase{early: early, server: time.Second, generator: time.Second / 2, Lasted: 2 * time.Second}
	for _, n := range took {
		p.Took = append(p.Took, time.Duration(n)*time.Millisecond)
		p.late = append(p.late, time.Duration(n)*time.Microsecond)
	}
	return p
}

func TestPoolKeepsThePhasesAsTheyWere(t *testing.T) {
	t.Parallel()
	phases := []Phase{phaseOf(2, 9, 1, 5), phaseOf(1, 2, 8, 3)}
	if got := Pool(phases, TookOf); len(got) != 6 || !slices.IsSorted(got) || got[0] != time.Millisecond || got[5] != 9*time.Millisecond {
		t.Errorf("all: %v", got)
	}
	// Sorting the first pool must not change which samples were due in the first second.
	if got := Pool(phases, earlyOf); !slices.Equal(got, Latencies{time.Millisecond, 2 * time.Millisecond, 9 * time.Millisecond}) {
		t.Errorf("first second: %v", got)
	}
}

func TestComparisonSetsPoolAgainstPool(t *testing.T) {
	t.Parallel()
	var both pairs
	// Three rounds of 100 samples. In the second one the failing phase met a hiccup in
	// its last sample, which is the p99 of that round and not of all 300.
	for round := range 3 {
		healthy, failing := make([]int, 100), make([]int, 100)
		for i := range 100 {
			healthy[i], failing[i] = 10, 11
		}
		healthy[98], healthy[99] = 20, 20
		failing[98], failing[99] = 22, 22
		if round == 1 {
			failing[99] = 2000
		}
		both.healthy = append(both.healthy, phaseOf(10, healthy...))
		both.failing = append(both.failing, phaseOf(10, failing...))
	}
	c := compare("embedded", 200, failures[0], both)
	if c.P99 != 1.1 || c.P50 != 1.1 || c.Early != 1.1 || c.Rounds != 3 || c.Met == nil || !*c.Met {
		t.Errorf("%+v", c)
	}
	if c.ByRound != (spread{Median: 1.1, Lowest: 1.1, Highest: 100}) {
		t.Errorf("by round %+v", c.ByRound)
	}
	if w := c.Healthy; w.Samples != 300 || w.P50 != 10 || w.P99 != 20 || w.Late != 0.02 || w.Server != 0.5 || w.Generator != 0.25 {
		t.Errorf("healthy %+v", w)
	}
	if c.Failing.P99 != 22 {
		t.Errorf("failing %+v", c.Failing)
	}
	both.healthy, both.failing = both.failing[:1], []Phase{phaseOf(1, 1000)}
	if c = compare("embedded", 200, failures[0], both); *c.Met {
		t.Errorf("%.1f × is within the goal", c.P99)
	}
	if c = compare("embedded", 200, Control, both); c.Met != nil || c.Goal != "" {
		t.Error("the control has a goal")
	}
}

func TestSpreadOfRounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		want   spread
	}{
		{nil, spread{}},
		{[]float64{2}, spread{2, 2, 2}},
		{[]float64{3, 1, 2}, spread{2, 1, 3}},
		{[]float64{4, 1, 3, 2}, spread{2.5, 1, 4}},
	} {
		if got := SpreadOf(c.values); got != c.want {
			t.Errorf("%v: %+v", c.values, got)
		}
	}
	if Ratio(time.Second, 0) != 0 {
		t.Error("a ratio to nothing is not 0")
	}
}

func TestComparisonsAreInBothReports(t *testing.T) {
	t.Parallel()
	r := &Report{}
	both := pairs{healthy: []Phase{phaseOf(1, 10)}, failing: []Phase{phaseOf(1, 30)}}
	for _, rate := range []int{200, 500} {
		for _, mode := range []failure{Control, failures[1]} {
			r.comparisons = append(r.comparisons, compare("embedded", rate, mode, both))
		}
	}
	var text, raw bytes.Buffer
	if err := errors.Join(r.writeText(&text), r.writeJSON(&raw)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"embedded, 200/s", "embedded, 500/s", "no failure (control)", "answer after 5 s", "10.00 → 30.00",
		"3.00 × (3.00–3.00)", "≤ 1.20 ×", "missed",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &text)
		}
	}
	var back struct{ Isolation []comparison }
	if err := json.Unmarshal(raw.Bytes(), &back); err != nil || len(back.Isolation) != 4 || back.Isolation[1].P99 != 3 ||
		*back.Isolation[1].Met {
		t.Errorf("%v: %s", err, &raw)
	}
}

// Calm is read from the server's metrics: a missing metric must not be taken for calm.
func TestSumOfAMetric(t *testing.T) {
	t.Parallel()
	const text = "# TYPE in_flight gauge\nin_flight{pool=\"quick\"} 3\nin_flight{pool=\"slow\"} 2\nin_flight_more 9\nplain 1e+02\n"
	if got, err := sumOf(text, "in_flight"); err != nil || got != 5 {
		t.Errorf("%g, %v", got, err)
	}
	if got, err := sumOf(text, "plain"); err != nil || got != 100 {
		t.Errorf("%g, %v", got, err)
	}
	if _, err := sumOf(text, "in"); err == nil {
		t.Error("a metric was found that is not there")
	}
	if _, err := sumOf("x many\n", "x"); err == nil {
		t.Error("a word was read as a number")
	}
}

// Without direct posts there is nothing to compare the product with: no ratio.
func TestProductAloneIsNotSetAgainstDirect(t *testing.T) {
	t.Parallel()
	s := &Subject{Bench: &Bench{Report: &Report{}}, Target: Target{Name: "postgresql", DatabaseURL: "x"}}
	if f := s.endToEnd("x", 100, time.Second); f.Value != 100 || f.Ratio != 0 || f.Met != nil || f.Goal != "" {
		t.Errorf("%+v", f)
	}
	s.Report.direct = 1000
	if f := s.endToEnd("x", 100, time.Second); f.Ratio != 0.1 {
		t.Errorf("%+v", f)
	}
}
