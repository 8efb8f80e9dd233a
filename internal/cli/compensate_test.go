package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/internal/compensation"
)

func TestCompensationsAreListedAndRunAgainByCommand(t *testing.T) {
	install(t)
	if code, _, stderr := backstop(t.Context(), "operator", "add", "li", "--role", "viewer"); code != exitDone {
		t.Fatal(stderr)
	}
	if code, out, stderr := backstop(t.Context(), "compensate", "list"); code != exitDone || out != "" {
		t.Errorf("none: %d %q %q", code, out, stderr)
	}
	c, err := config.Load(config.Source{Environ: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	d, err := open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	put := func(cause compensation.Cause, state compensation.State) int64 {
		t.Helper()
		x := &compensation.Item{
			Kind: compensation.Rerun, Cause: cause, SubjectKind: compensation.OfOrder, SubjectID: d.NewID(),
			OrderNo: "O1", Amount: 1998, Currency: "CNY", MadeBy: "test",
		}
		err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			w := tx.Writes()
			compensation.Schedule(c.CompensateSteps).Open(w, d, x)
			if err := w.Exec(ctx); err != nil || state == compensation.Waiting {
				return err
			}
			_, err := tx.NewRaw("UPDATE compensations SET state = ?, next_at = NULL WHERE id = ?", state, x.ID).Exec(ctx)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return x.ID
	}
	dead, other := put(compensation.SupplierTimeout, compensation.Dead), put(compensation.Poison, compensation.Dead)
	waiting := put(compensation.SupplierTimeout, compensation.Waiting)
	put(compensation.SupplierTimeout, compensation.Done)
	code, out, stderr := backstop(t.Context(), "compensate", "list")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); code != exitDone || len(lines) != 3 ||
		!strings.HasPrefix(lines[0], fmt.Sprint(waiting)) || !strings.Contains(lines[0], "19.98 CNY") {
		t.Errorf("%d %q %q", code, out, stderr)
	}
	if _, out, _ := backstop(t.Context(), "compensate", "list", "--cause", "poison"); !strings.HasPrefix(out, fmt.Sprint(other)) ||
		strings.Count(out, "\n") != 1 {
		t.Errorf("of one cause: %q", out)
	}
	for _, args := range [][]string{
		{"--reason", "why"},
		{"--cause", "stuck", "--reason", "the supplier is back"},
		{"--supplier", "none", "--reason", "the supplier is back"},
		{},
	} {
		if code, out, stderr := backstop(t.Context(), append([]string{"compensate", "redrive"}, args...)...); code != exitUsage ||
			out != "" || stderr == "" {
			t.Errorf("%s: %d %q %q", args, code, out, stderr)
		}
	}
	if code, out, stderr := backstop(t.Context(), "compensate", "redrive", "--older", "1h", "--reason",
		"the supplier is back"); code != exitFailed || out != "" {
		t.Errorf("nothing matches: %d %q %q", code, out, stderr)
	}
	if code, out, stderr := backstop(t.Context(), "compensate", "redrive", "--cause", "supplier_timeout", "--reason",
		"the supplier is back"); code != exitDone || out != "matched 1, queued 1, skipped 0\n" {
		t.Errorf("%d %q %q", code, out, stderr)
	}
	x, _, err := compensation.Find(t.Context(), d.Read, dead)
	var acts int
	if err == nil {
		err = d.Read.NewRaw("SELECT count(*) FROM audit WHERE action = ? AND params LIKE '%the supplier is back%'",
			compensation.RedriveAct).Scan(t.Context(), &acts)
	}
	if err != nil || x.State != compensation.Waiting || acts != 1 {
		t.Errorf("it is %+v, %d acts, %v", x, acts, err)
	}
}
