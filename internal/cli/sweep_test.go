package cli

import (
	"os"
	"strings"
	"testing"

	"backstop/internal/base/config"
	"backstop/internal/sweep"
)

func TestASweepByCommand(t *testing.T) {
	install(t)
	if code, _, stderr := backstop(t.Context(), "operator", "add", "li", "--role", "viewer"); code != exitDone {
		t.Fatal(stderr)
	}
	for _, args := range [][]string{{"--days", "-1"}, {"--days", "0"}, {"--days", "91"}, {"--days", "x"}} {
		if code, out, stderr := backstop(t.Context(), append([]string{"sweep"}, args...)...); code != exitUsage || out != "" ||
			stderr == "" {
			t.Errorf("%s: %d %q %q", args, code, out, stderr)
		}
	}
	const healthy = "checked 0 rows of the last 2 days\nnothing was lost\nthe books are in order\n"
	for _, args := range [][]string{{"--dry-run"}, {}} {
		if code, out, stderr := backstop(t.Context(), append([]string{"sweep", "--days", "2"}, args...)...); code != exitDone ||
			out != healthy {
			t.Errorf("%s: %d %q %q", args, code, out, stderr)
		}
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
	rows, err := sweep.List(t.Context(), d, 0, 10)
	if err != nil || len(rows) != 1 || rows[0].State != sweep.Done || !strings.HasPrefix(rows[0].By, "command:") {
		t.Fatalf("%+v, %v: a dry run writes nothing, the other one its row", rows, err)
	}
	old := d.Now() - 3_600_000_000
	_, err = d.NewRaw(
		"INSERT INTO compensations (id, kind, cause, subject_kind, subject_id, lane, state, max_attempts, made_by, opened_at)"+
			" VALUES (?, 'rerun', 'supplier_timeout', 'order', 1, 1, 'waiting', 3, 'test', ?)", d.NewID(), old).Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.NewRaw("INSERT INTO report_unnotified (merchant_id, currency, orders, amount) VALUES (7, 'CNY', 1, 1999)").Exec(
		t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, args := range [][]string{{"--dry-run"}, {"--dry-run"}, {}, {}} {
		code, out, stderr := backstop(t.Context(), append([]string{"sweep"}, args...)...)
		want := []string{"checked 1 rows", "would have pushed compensations: 1\n", "difference untold: "}
		if i >= 2 {
			want[1] = "\npushed compensations: 1\n"
		}
		if wantCode := exitFailed; i < 3 {
			if code != wantCode || stderr != "" {
				t.Errorf("%s: exit %d, %q", args, code, stderr)
			}
		} else if want = []string{"nothing was lost", "the books are in order"}; code != exitDone {
			t.Errorf("the second time: exit %d, %q", code, stderr)
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s: %q lacks %q", args, out, w)
			}
		}
	}
}
