package e2e

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"backstop/internal/base/db/dbtest"
)

// benched runs a benchmark and returns its report.
func benched(t *testing.T, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Dir = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir()}, t.TempDir()
	// It stops the server that it has started.
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGTERM) }, 30*time.Second
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// ownPostgres is a PostgreSQL that bench may measure.
func ownPostgres(t *testing.T) string {
	t.Helper()
	database := dbtest.PostgresURL(t)
	if u, err := url.Parse(database); err != nil || u.Hostname() != "127.0.0.1" {
		t.Skip("bench measures a PostgreSQL of this machine only")
	}
	return database
}

// TestIsolationIsMeasured runs the smallest isolation part there is, and looks at
// what it claims to have measured, not at the figures. Only `make soak` runs it.
func TestIsolationIsMeasured(t *testing.T) {
	if !full() {
		t.Skip("a benchmark: make soak runs it")
	}
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			args := []string{
				"bench", "isolation", "--json", "--engine", engine, "--ill", "redirect", "--rate", "100", "--rounds", "2",
				"--for", "400ms",
			}
			if engine == "postgres" {
				args = append(args, "--postgres", ownPostgres(t))
			}
			out := benched(t, args...)
			type side struct {
				Samples int
				Server  float64 `json:"server_cores"`
			}
			var report struct {
				Isolation []struct {
					Group, Ill string
					Rounds     int
					Well, Sick side
					Ratio      float64 `json:"p99_ratio"`
					Met        *bool   `json:"goal_met"`
				}
			}
			if err := json.Unmarshal(out, &report); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if len(report.Isolation) != 2 || report.Isolation[0].Ill != "nobody" || report.Isolation[1].Ill != "redirect" {
				t.Fatalf("measured\n%s", out)
			}
			group := map[string]string{"sqlite": "embedded", "postgres": "postgresql"}[engine]
			for _, c := range report.Isolation {
				// 40 orders a phase, two rounds, eighteen merchants of twenty.
				if c.Group != group || c.Rounds != 2 || c.Well.Samples != 2*36 || c.Sick.Samples != 2*36 || c.Ratio <= 0 {
					t.Errorf("%+v", c)
				}
				if c.Well.Server <= 0 || c.Sick.Server <= 0 {
					t.Errorf("the server used no CPU time: %+v", c)
				}
				if (c.Met != nil) != (c.Ill == "redirect") {
					t.Errorf("%s has a goal: %t", c.Ill, c.Met != nil)
				}
			}
		})
	}
}

// TestRatesAreMeasured runs the smallest measurement of ordinary rates. Only `make soak` runs it.
func TestRatesAreMeasured(t *testing.T) {
	if !full() {
		t.Skip("a benchmark: make soak runs it")
	}
	t.Parallel()
	out := benched(t, "bench", "rates", "--engine", "sqlite", "--rate", "20", "--for", "2s")
	for _, want := range []string{"idle, server and Redis", "CPU per order, server, 20/s", "statements per order, 20/s", "merchant notified, 20/s, p99"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the report lacks %q:\n%s", want, out)
		}
	}
}

// The run in docs/performance.md has the figures that a run has, with the same goals. Only `make soak`
// runs it.
func TestTheDocumentedRunIsOfThisProgram(t *testing.T) {
	if !full() {
		t.Skip("a benchmark: make soak runs it")
	}
	t.Parallel()
	document, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	_, run, _ := strings.Cut(string(document), "\n## A run\n")
	_, run, _ = strings.Cut(run, "\n```\n")
	run, _, _ = strings.Cut(run, "\n```\n")
	out := benched(t, "bench", "product", "--postgres", ownPostgres(t), "--orders", "400", "--for", "300ms")
	_, made, _ := strings.Cut(string(out), "\n\n")
	if documented, made := figureNames(run), figureNames(made); !slices.Equal(documented, made) {
		t.Errorf("the documented run has\n%s\na run has\n%s", strings.Join(documented, "\n"), strings.Join(made, "\n"))
	}
}

// figureNames are the names of the figures of a report, with which of them have a goal.
func figureNames(report string) (names []string) {
	for line := range strings.Lines(report) {
		columns := regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(line), -1)
		name := regexp.MustCompile(`of \d+ open`).ReplaceAllString(columns[0], "of open")
		if strings.HasSuffix(columns[len(columns)-1], "met") || strings.HasSuffix(columns[len(columns)-1], "missed") {
			name += ", with a goal"
		}
		names = append(names, name)
	}
	return names
}
