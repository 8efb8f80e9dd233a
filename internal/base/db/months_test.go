package db_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"

	"github.com/uptrace/bun"
)

// history is a table that is partitioned by a key which is not its primary key.
const history = "past"

// partitioned opens a schema with the table, which has no partition yet.
func partitioned(t *testing.T) (d *db.DB, url string) {
	t.Helper()
	url = dbtest.PostgresMigratedURL(t)
	d = dbtest.Open(t, db.Options{URL: url})
	for _, s := range []string{
		"CREATE TABLE past (id BIGINT NOT NULL, order_id BIGINT NOT NULL, version BIGINT NOT NULL, note TEXT NOT NULL DEFAULT 'x', UNIQUE (order_id, version), CHECK (version > 0)) PARTITION BY RANGE (order_id)",
		"CREATE INDEX past_note ON past (note) WHERE note <> 'x'", "CREATE INDEX past_id ON past (id)",
	} {
		execute(t, d, s)
	}
	return d, url
}

func execute(t *testing.T, d *db.DB, query string, args ...any) {
	t.Helper()
	if _, err := d.NewRaw(query, args...).Exec(t.Context()); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func number(t *testing.T, d *db.DB, query string, args ...any) (n int64) {
	t.Helper()
	if err := d.NewRaw(query, args...).Scan(t.Context(), &n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func add(ctx context.Context, d *db.DB) error {
	id := d.NewID()
	_, err := d.NewRaw("INSERT INTO past (id, order_id, version) VALUES (?, ?, 1)", id, id).Exec(ctx)
	return err
}

// coversTheComingMonths reports whether there are partitions to the end of the third month after
// this one.
func coversTheComingMonths(d *db.DB, parts []db.Partition) bool {
	now := d.NowTime()
	end := time.Date(now.Year(), now.Month()+4, 1, 0, 0, 0, 0, time.UTC)
	return len(parts) > 2 && parts[0].First() && parts[len(parts)-1].To >= db.IDAt(end.UnixMicro())
}

// wantPartitioned checks what must hold however the conversion went.
func wantPartitioned(t *testing.T, d *db.DB, rows int64) {
	t.Helper()
	parts, err := d.Partitions(t.Context(), history)
	if err != nil || !coversTheComingMonths(d, parts) {
		t.Fatalf("partitions: %+v, %v", parts, err)
	}
	for i, p := range parts[1:] {
		if p.From != parts[i].To {
			t.Errorf("a gap before %+v", p)
		}
	}
	if got := number(t, d, "SELECT count(*) FROM past"); got != rows {
		t.Errorf("%d rows, want %d", got, rows)
	}
	for _, p := range parts {
		// The same unique constraint holds, and the partial index is there, in each.
		if n := number(t, d, "SELECT count(*) FROM pg_index WHERE indrelid = to_regclass(?)", p.Name); n != 3 {
			t.Errorf("%s has %d indexes, want 3", p.Name, n)
		}
		at := p.To - 10
		execute(t, d, "INSERT INTO past (id, order_id, version) VALUES (?, ?, 7)", at, at)
		_, err := d.NewRaw("INSERT INTO past (id, order_id, version) VALUES (?, ?, 7)", at+1, at).Exec(t.Context())
		if !db.IsUnique(err) {
			t.Errorf("%s: one order and version twice: %v", p.Name, err)
		}
		if _, err := d.NewRaw("INSERT INTO past (id, order_id, version) VALUES (?, ?, 0)", at+2, at).Exec(t.Context()); err == nil {
			t.Errorf("%s: the check is gone", p.Name)
		}
	}
}

// Many nodes start at once, beside traffic, and again when there is nothing to do.
func TestMonthsAreAddedByManyNodesBesideTraffic(t *testing.T) {
	t.Parallel()
	d, url := partitioned(t)
	if err := db.AddMonthsUntil(t.Context(), d, history, d.Now()); err != nil {
		t.Fatal(err)
	}
	var added atomic.Int64
	var nodes, traffic sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for range 4 {
		traffic.Go(func() {
			for ctx.Err() == nil {
				err := add(t.Context(), d)
				if err != nil && !db.IsConflict(err) { // writers retry these
					t.Error(err)
					return
				}
				if err == nil {
					added.Add(1)
				}
			}
		})
	}
	for range 3 {
		other, err := db.Open(t.Context(), db.Options{URL: url, Pool: 2})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { other.Close() })
		nodes.Go(func() {
			for range 2 {
				if err := other.PartitionByMonth(t.Context(), slog.New(slog.DiscardHandler), history); err != nil {
					t.Error(err)
				}
			}
		})
	}
	nodes.Wait()
	during := added.Load()
	waittest.Until(t, "traffic continues afterwards", func() bool { return added.Load() > during+4 })
	stop()
	traffic.Wait()
	wantPartitioned(t, d, added.Load())
}

func TestMonthsArePassedOnAndDropped(t *testing.T) {
	t.Parallel()
	d, _ := partitioned(t)
	if err := d.PartitionByMonth(t.Context(), slog.New(slog.DiscardHandler), history); err != nil {
		t.Fatal(err)
	}
	parts, err := d.Partitions(t.Context(), history)
	if err != nil {
		t.Fatal(err)
	}
	last := parts[len(parts)-1]
	if err := db.AddMonthsUntil(t.Context(), d, history, d.Now()+300*24*time.Hour.Microseconds()); err != nil {
		t.Fatal(err)
	}
	parts, err = d.Partitions(t.Context(), history)
	if err != nil || parts[len(parts)-1].To <= last.To || len(parts) < 9 {
		t.Fatalf("%+v, %v", parts, err)
	}
	for _, p := range parts {
		execute(t, d, "INSERT INTO past (id, order_id, version) VALUES (?, ?, 1)", p.To-1, p.To-1)
	}
	// A process died after it had renamed one, another before it had finished to detach.
	execute(t, d, "ALTER TABLE ? RENAME TO ?", bun.Ident(parts[0].Name), bun.Ident(parts[0].Name+"_dropped"))
	execute(t, d, "ALTER TABLE ? RENAME TO ?", bun.Ident(parts[1].Name), bun.Ident(parts[1].Name+"_dropped"))
	execute(t, d, "ALTER TABLE past DETACH PARTITION ?", bun.Ident(parts[1].Name+"_dropped"))
	dropped, err := d.DropMonths(t.Context(), history, parts[2].To)
	if err != nil || len(dropped) != 3 {
		t.Fatalf("dropped %v, %v", dropped, err)
	}
	if n := number(t, d, "SELECT count(*) FROM past"); n != int64(len(parts)-3) {
		t.Errorf("%d rows are left of %d", n, len(parts)-3)
	}
	if n := number(t, d,
		"SELECT count(*) FROM pg_class WHERE relname LIKE 'past%dropped' AND relnamespace = current_schema()::regnamespace"); n != 0 {
		t.Error("something is left of what was dropped")
	}
	again, err := d.DropMonths(t.Context(), history, parts[2].To)
	if err != nil || len(again) != 0 {
		t.Errorf("again: %v, %v", again, err)
	}
}

// The program's tables that are dropped by the month are born partitioned.
func TestTheSchemaIsPartitionedByMonth(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	for _, table := range strings.Fields("callbacks notify_attempts order_history supplier_calls") {
		parts, err := d.Partitions(t.Context(), table)
		if err != nil || !coversTheComingMonths(d, parts) {
			t.Errorf("%s: %v, %v", table, parts, err)
		}
	}
}

// TestAChangeOfPartitionsNamesWhoHoldsItUp is not parallel, as it sets how patient every change is.
func TestAChangeOfPartitionsNamesWhoHoldsItUp(t *testing.T) {
	db.HurryLocks(t)
	d, url := partitioned(t)
	other, err := db.Open(t.Context(), db.Options{URL: url, Pool: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	// Without a month the table takes no rows, so that is no error to go on with.
	for _, usable := range []bool{false, true} {
		tx, err := other.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(t.Context(), "LOCK TABLE past IN ACCESS EXCLUSIVE MODE /* long report */"); err != nil {
			t.Fatal(err)
		}
		var pid int64
		if err := tx.QueryRowContext(t.Context(), "SELECT pg_backend_pid() /* long report */").Scan(&pid); err != nil {
			t.Fatal(err)
		}
		var logged bytes.Buffer
		log := slog.New(slog.NewTextHandler(&logged, nil))
		err = d.PartitionByMonth(t.Context(), log, history)
		if errors.Is(err, db.ErrInUse) != usable || !strings.Contains(fmt.Sprint(err), fmt.Sprintf("process %d of ", pid)) ||
			!strings.Contains(err.Error(), "long report") {
			t.Fatalf("held up by process %d: %v", pid, err)
		}
		if !strings.Contains(logged.String(), "waiting for a lock") {
			t.Errorf("the log does not say what it waits for: %s", logged.String())
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if err := d.PartitionByMonth(t.Context(), log, history); err != nil {
			t.Fatal(err)
		}
		if usable {
			wantPartitioned(t, d, 0)
			break
		}
		parts, err := d.Partitions(t.Context(), history)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.ExecContext(t.Context(), "DROP TABLE "+parts[len(parts)-1].Name); err != nil { // the month that comes to be missing
			t.Fatal(err)
		}
	}
}
