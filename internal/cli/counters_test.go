package cli

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"backstop/internal/app"
	"backstop/internal/base/config"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/metric"

	"gopkg.in/yaml.v3"
)

// openApp returns a serving process that does not listen yet.
func openApp(t *testing.T) *app.App {
	t.Helper()
	folder := t.TempDir()
	dbtest.WriteSQLite(t, folder)
	c, err := config.Load(config.Source{Environ: []string{"BACKSTOP_DATA=" + folder}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(t.Context(), app.Options{
		Config: c, Roles: app.Roles{Web: true, Worker: true, Scheduler: true}, Log: slog.New(slog.DiscardHandler), Out: io.Discard,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// counters returns the process's own counters, by series.
func counters(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := metric.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		if f.GetType().String() != "COUNTER" || !strings.HasPrefix(f.GetName(), "backstop_") {
			continue
		}
		for _, m := range f.Metric {
			labels := []string{`instance="a"`, `job="backstop"`}
			for _, l := range m.Label {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			all[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = m.GetCounter().GetValue()
		}
	}
	return all
}

// TestEveryCounterIsThereFromTheStart reads the code: a new process must show every counter
// whose name is in the code.
func TestEveryCounterIsThereFromTheStart(t *testing.T) {
	openApp(t)
	shown := map[string]bool{}
	for series := range counters(t) {
		name, _, _ := strings.Cut(series, "{")
		shown[name] = true
	}
	for _, m := range madeBy.FindAllStringSubmatch(read(t, "internal/base/metric/metric.go"), -1) {
		if m[1] == "Counter" && !shown[m[2]] && !strings.Contains(m[3], "supplier") { // these begin with a supplier's first event
			t.Errorf("%s appears with its first event", m[2])
		}
	}
	for _, series := range []string{
		`backstop_callbacks_total{instance="a",job="backstop",outcome="rate_limited"}`,
		`backstop_callbacks_total{instance="a",job="backstop",outcome="paid"}`,
		`backstop_callbacks_total{instance="a",job="backstop",outcome="order_closed"}`,
		`backstop_callbacks_total{instance="a",job="backstop",outcome="amount_mismatch"}`,
		`backstop_exceptions_total{instance="a",job="backstop",kind="stuck_paying"}`,
		`backstop_orders_moved_total{instance="a",job="backstop",status="closing"}`,
		`backstop_alerts_total{instance="a",job="backstop",rule="clock_skew"}`,
	} {
		if _, ok := counters(t)[series]; !ok {
			t.Errorf("there is no %s", series)
		}
	}
}

// TestTheFirstEventFiresItsRule reads the counters of a new process, makes one event happen, and
// evaluates the shipped rules with Prometheus itself.
func TestTheFirstEventFiresItsRule(t *testing.T) {
	openApp(t)
	for _, c := range []struct {
		alert string
		event func()
	}{
		{"BackstopNotificationsExhausted", func() { metric.Notifications.WithLabelValues("exhausted").Inc() }},
		{"BackstopCallbacksNotAccepted", func() { metric.Callbacks.WithLabelValues("unavailable").Inc() }},
		{"BackstopCallbacksNotAccepted", func() { metric.Callbacks.WithLabelValues("adapter_failed").Inc() }},
		{"BackstopCommitsFail", func() { metric.BatchErrors.WithLabelValues("confirm").Inc() }},
		{"BackstopCommitsFail", func() { metric.BatchErrors.WithLabelValues("results").Inc() }},
	} {
		before := counters(t)
		c.event()
		after := counters(t)
		if out, err := promtool(t, c.alert, before, after); err != nil {
			t.Errorf("%s stays silent: %v\n%s", c.alert, err, out)
		}
		// The negative control: a counter that appears with its event.
		for series, value := range before {
			if value != after[series] {
				delete(before, series)
			}
		}
		if out, err := promtool(t, c.alert, before, after); err == nil {
			t.Errorf("%s fires for a counter that has not grown: the test sees nothing\n%s", c.alert, out)
		}
	}
}

// promtool runs the shipped rules on two minutes of before and four of after, and fails if the
// alert does not fire.
func promtool(t *testing.T, alert string, before, after map[string]float64) (string, error) {
	t.Helper()
	rules, err := filepath.Abs("deploy/prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	type series struct{ Series, Values string }
	var input []series
	for name, is := range after {
		was := "_"
		if v, ok := before[name]; ok {
			was = fmt.Sprint(v)
		}
		values := slices.Concat(slices.Repeat([]string{was}, 9), slices.Repeat([]string{fmt.Sprint(is)}, 16))
		input = append(input, series{name, strings.Join(values, " ")})
	}
	test := map[string]any{
		"rule_files": []string{rules}, "evaluation_interval": "15s",
		"tests": []any{map[string]any{
			"interval": "15s", "input_series": input,
			// Whatever it says: fired at all is ALERTS.
			"promql_expr_test": []any{map[string]any{
				"expr": `count by (alertname) (ALERTS{alertname="` + alert + `",alertstate="firing"})`, "eval_time": "6m",
				"exp_samples": []any{map[string]any{"labels": `{alertname="` + alert + `"}`, "value": 1}},
			}},
		}},
	}
	text, err := yaml.Marshal(test)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "test.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "promtool", "test", "rules", file).CombinedOutput()
	return string(out), err
}

func TestPromtoolTakesTheShippedFiles(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "promtool", "check", "rules", "deploy/prometheus/rules.yml").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "rules found") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), "promtool", "check", "config", "--syntax-only",
		"deploy/prometheus/scrape.yml").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
