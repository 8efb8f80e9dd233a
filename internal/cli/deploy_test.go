package cli

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/config"
	"backstop/internal/base/metric"

	"gopkg.in/yaml.v3"
)

var (
	madeBy = regexp.MustCompile(
		`New(Counter|Gauge|Histogram)(?:Vec)?\(prometheus\.\w+Opts\{\s*Name: "(backstop_\w+)"(?s:[^\n]*\n(?:\s+Buckets:[^\n]*\n)?)\s*\}(?:, \[\]string\{([^}]*)\})?`)
	describes  = regexp.MustCompile(`NewDesc\(\s*"(backstop_\w+)",\s*"[^\n]*",\s*(?:nil|\[\]string\{([^}]*)\}),\s*nil\)`)
	usesMetric = regexp.MustCompile(`\b(?:backstop|go|process)_[a-z_]+`)
	usesLabel  = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"`)
	groupsBy   = regexp.MustCompile(`\bby \(([^)]*)\)`)
	legends    = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?([a-z_]+)\s*\}\}`)
)

// exported returns every metric of package metric, and those of the Go runtime, with its labels. A histogram is listed as its
// three series.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("internal/base/metric/*.go")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	labels := func(list string) []string {
		out := []string{"instance", "job"} // Prometheus adds them
		for _, l := range strings.Split(list, ",") {
			if l = strings.Trim(l, ` "`); l != "" {
				out = append(out, l)
			}
		}
		return out
	}
	for _, file := range files {
		text := read(t, file)
		for _, m := range madeBy.FindAllStringSubmatch(text, -1) {
			if m[1] != "Histogram" {
				all[m[2]] = labels(m[3])
				continue
			}
			for _, series := range []string{"_sum", "_count", "_bucket"} {
				all[m[2]+series] = append(labels(m[3]), "le")
			}
		}
		for _, m := range describes.FindAllStringSubmatch(text, -1) {
			all[m[1]] = labels(m[2])
		}
	}
	if len(all) < 30 {
		t.Fatalf("only %d series seen in package metric: the pattern misses them", len(all))
	}
	openApp(t) // which exports the pools of its database
	families, err := metric.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if name := f.GetName(); !strings.HasPrefix(name, "backstop_") && len(f.Metric) > 0 {
			var names []string
			for _, l := range f.Metric[0].Label {
				names = append(names, l.GetName())
			}
			all[name] = labels(strings.Join(names, ","))
		}
	}
	return all
}

// holdsTo lists the parts of an expression that no metric of ours has.
func holdsTo(series map[string][]string, expr string) (wrong []string) {
	labels := map[string]bool{}
	for _, name := range usesMetric.FindAllString(expr, -1) {
		if series[name] == nil {
			wrong = append(wrong, "there is no "+name)
		}
		for _, l := range series[name] {
			labels[l] = true
		}
	}
	used := usesLabel.FindAllStringSubmatch(expr, -1)
	for _, m := range groupsBy.FindAllStringSubmatch(expr, -1) {
		for _, l := range strings.Split(m[1], ",") {
			used = append(used, []string{"", strings.TrimSpace(l)})
		}
	}
	for _, m := range used {
		if len(labels) > 0 && !labels[m[1]] {
			wrong = append(wrong, "it has no label "+m[1])
		}
	}
	return wrong
}

func TestTheDashboardShowsWhatIsExported(t *testing.T) {
	series := exported(t)
	var board struct {
		Panels []struct {
			Type, Title string
			GridPos     struct{ X, Y, W, H int }
			Targets     []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "deploy/grafana/backstop.json")), &board); err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	var questions []string
	for _, p := range board.Panels {
		if p.Type == "row" {
			questions = append(questions, p.Title)
		}
		if !slices.Contains([]string{"row", "stat", "timeseries"}, p.Type) {
			t.Errorf("%s: a panel of the kind %s may need a plugin", p.Title, p.Type)
		}
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s is beyond the dashboard", p.Title)
		}
		for _, target := range p.Targets {
			expr := target.Expr
			for _, m := range legends.FindAllStringSubmatch(target.LegendFormat, -1) {
				expr += " by (" + m[1] + ")"
			}
			for _, w := range holdsTo(series, expr) {
				t.Errorf("%s: %s: %s", p.Title, target.Expr, w)
			}
			for _, name := range usesMetric.FindAllString(target.Expr, -1) {
				shown[name] = true
			}
		}
	}
	page := read(t, "docs/operations/health.md")
	if len(questions) != 8 || questions[0] != "Current state" {
		t.Errorf("the dashboard has the rows %q, want the current state and seven questions", questions)
	}
	for _, q := range questions[1:] {
		if !strings.Contains(page, "\n| "+q+" | ") {
			t.Errorf("docs/operations/health.md does not ask %q", q)
		}
	}
	if len(shown) < 20 {
		t.Errorf("only %v are shown", slices.Sorted(maps.Keys(shown)))
	}
}

func TestThePrometheusRulesAskForWhatIsExported(t *testing.T) {
	series := exported(t)
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr         string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/prometheus/rules.yml")), &file); err != nil {
		t.Fatal(err)
	}
	rules := 0
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			rules++
			for _, w := range holdsTo(series, r.Expr) {
				t.Errorf("%s: %s", r.Alert, w)
			}
			if r.Alert == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" {
				t.Errorf("%s lacks a severity or a summary", r.Alert)
			}
		}
	}
	if rules < 10 {
		t.Errorf("only %d rules seen", rules)
	}
	var scrape struct {
		Scrape []struct {
			Job string `yaml:"job_name"`
		} `yaml:"scrape_configs"`
		Rules []string `yaml:"rule_files"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/prometheus/scrape.yml")), &scrape); err != nil {
		t.Fatal(err)
	}
	if len(scrape.Scrape) != 1 || scrape.Scrape[0].Job != "backstop" || len(scrape.Rules) != 1 {
		t.Errorf("scrape.yml: %+v", scrape)
	}
}

// With a database URL a node without a master key does not start.
func TestShippedNodesHaveAMasterKey(t *testing.T) {
	var file struct {
		Services map[string]struct{ Environment map[string]string }
	}
	if err := yaml.Unmarshal([]byte(read(t, "compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	nodes := 0
	for name, s := range file.Services {
		if s.Environment["BACKSTOP_DATABASE_URL"] == "" {
			continue
		}
		nodes++
		if s.Environment["BACKSTOP_MASTER_KEY"] == "" || s.Environment["BACKSTOP_NODE_NAME"] == "" {
			t.Errorf("%s is given %v", name, s.Environment)
		}
	}
	if nodes != 2 {
		t.Errorf("%d nodes seen", nodes)
	}
}

// The negative control: a metric that is not exported is detected.
func TestAWrongExpressionIsSeen(t *testing.T) {
	series := exported(t)
	for _, expr := range []string{
		"rate(backstop_nothing_total[5m])", `backstop_queue_tasks{merchant="m1"}`, "sum by (merchant) (backstop_queue_tasks)",
		"backstop_callback_seconds", "backstop_queue_tasks_bucket",
	} {
		if len(holdsTo(series, expr)) == 0 {
			t.Errorf("%s was accepted", expr)
		}
	}
	if wrong := holdsTo(series, `max by (queue) (backstop_queue_tasks{queue!="timeout",instance="a"}) > 1`); len(wrong) > 0 {
		t.Errorf("a valid one was refused: %v", wrong)
	}
}

// A node that is killed before it has drained and stopped repeats the notifications in
// flight.
func TestShippedGracePeriodsOutlastTheStop(t *testing.T) {
	defaults, err := config.Load(config.Source{})
	if err != nil {
		t.Fatal(err)
	}
	const drain, more = 5 * time.Second, 5 * time.Second
	least := drain + defaults.ShutdownTimeout + more
	for file, pattern := range map[string]string{
		"compose.yaml":               `stop_grace_period: (\d+)s`,
		"deploy/backstop.service":    `TimeoutStopSec=(\d+)\n`,
		"docs/operations/run.md":     `terminationGracePeriodSeconds: (\d+)`,
		"docs/operations/upgrade.md": `terminationGracePeriodSeconds: (\d+)`,
		"README.md":                  `--stop-timeout (\d+) `,
		"README.zh-CN.md":            `--stop-timeout (\d+) `,
	} {
		found := regexp.MustCompile(pattern).FindAllStringSubmatch(read(t, file), -1)
		if len(found) == 0 {
			t.Errorf("%s has nothing like %s", file, pattern)
		}
		for _, m := range found {
			if grace, err := time.ParseDuration(m[1] + "s"); err != nil || grace < least {
				t.Errorf("%s: %s is less than %s", file, m[0], least)
			}
		}
	}
	for file, text := range map[string]string{"compose.yaml": "BACKSTOP_DRAIN: 5s", "docs/operations/run.md": "`BACKSTOP_DRAIN=5s`"} {
		if !strings.Contains(read(t, file), text) {
			t.Errorf("%s does not contain %s", file, text)
		}
	}
}

// backstopctl gives a command what the unit gives the service.
func TestThePackagesCommandRunsAsTheServiceDoes(t *testing.T) {
	unit, command := read(t, "deploy/backstop.service"), read(t, "deploy/deb/backstopctl")
	for setting, as := range map[string]string{
		"LoadCredential": "-p LoadCredential=", "EnvironmentFile": "-p EnvironmentFile=", "UMask": "-p UMask=", "User": "--uid=",
		"Environment": "-E ",
	} {
		m := regexp.MustCompile(`(?m)^` + setting + `=(.*)$`).FindStringSubmatch(unit)
		if m == nil || !strings.Contains(command, as+m[1]+" ") {
			t.Errorf("the unit has %q, and the command no %s", m, as)
		}
	}
	if !strings.Contains(unit, "BACKSTOP_MASTER_KEY_FILE=%d/master.key") ||
		!strings.Contains(command, `BACKSTOP_MASTER_KEY_FILE="$CREDENTIALS_DIRECTORY/master.key"`) {
		t.Error("they have different keys")
	}
}

// A stopped process still accepts connections: each load balancer's check waits a time between
// what /readyz takes at most and 2 s.
func TestDescribedChecksOfLoadBalancersHaveTimeouts(t *testing.T) {
	page := read(t, "docs/operations/upgrade.md")
	for language, pattern := range map[string]string{
		"haproxy": `(?s)option httpchk GET /readyz\n.*timeout check (\S+)\n`,
		"yaml":    `(?s)readinessProbe:\n\s+httpGet: \{path: /readyz, .*?timeoutSeconds: (\d+)\n`,
	} {
		m := regexp.MustCompile("(?s)```" + language + "\n(?:[^`]*)" + pattern).FindStringSubmatch(page)
		if m == nil {
			t.Errorf("docs/operations/upgrade.md has no %s with %s", language, pattern)
			continue
		}
		wait, err := time.ParseDuration(strings.TrimSuffix(m[1], "s") + "s")
		if err != nil || wait <= 1500*time.Millisecond || wait > 2*time.Second {
			t.Errorf("%s: a check waits %s", language, m[1])
		}
	}
}
