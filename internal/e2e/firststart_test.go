package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// TestKilledAtAnyStepOfTheFirstStartItBeginsAgain makes the schema with a kill at each step, in a
// full run; CI takes each eighth on PostgreSQL, from a seeded one. What is there then is what is there without a
// kill.
func TestKilledAtAnyStepOfTheFirstStartItBeginsAgain(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			every, first := 1, 1 // SQLite has few steps
			if engine == "postgres" && !full() {
				every, first = 8, 1+rand.New(rand.NewPCG(seed(t), 0)).IntN(8)
			}
			empty := func() *world {
				w := &world{t: t, folder: t.TempDir()}
				if engine == "postgres" {
					w.database, w.key = dbtest.PostgresURL(t), newKey()
				}
				return w
			}
			w := empty()
			w.run("migrate", "up")
			want, killed := schemaOf(w), 0
			if len(want) < 100 {
				t.Fatalf("only %d parts of the schema are compared", len(want))
			}
			for step := first; ; step += every {
				w := empty()
				if !w.diesIn(fmt.Sprint("upgrade:", step), "migrate", "up") {
					break
				}
				killed++
				w.run("migrate", "up")
				if got := schemaOf(w); !slices.Equal(got, want) {
					t.Errorf("killed at step %d: %d parts of the schema, want %d", step, len(got), len(want))
				}
			}
			if killed == 0 {
				t.Error("nothing was killed")
			}
			t.Logf("killed at %d steps", killed)
		})
	}
}

// diesIn runs a command with a point armed, and reports whether that killed it.
func (w *world) diesIn(point string, args ...string) bool {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), readyTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Dir = w.environ("FAILPOINT="+point), w.folder
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	var exit *exec.ExitError
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ctx.Err() != nil || !errors.As(err, &exit) || !ok ||
		status.Signal() != syscall.SIGKILL {
		w.t.Fatalf("%s: %s ended by itself: %v\n%s", point, strings.Join(args, " "), err, out)
	}
	return true
}

// schemaOf lists the parts of the schema in order.
func schemaOf(w *world) (parts []string) {
	w.t.Helper()
	d, err := db.Open(w.t.Context(), db.Options{URL: w.database, Dir: w.folder, Pool: 2})
	if err != nil {
		w.t.Fatal(err)
	}
	defer d.Close()
	query := "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_master ORDER BY 1"
	if w.database != "" {
		query = "SELECT concat_ws(' ', relname, relkind, reloptions, pg_get_expr(relpartbound, oid)) FROM pg_class" +
			" WHERE relnamespace = current_schema()::regnamespace ORDER BY 1"
	}
	if err := d.NewRaw(query).Scan(w.t.Context(), &parts); err != nil {
		w.t.Fatal(err)
	}
	return parts
}
