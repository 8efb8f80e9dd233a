package db_test

import (
	"context"
	"errors"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"

	"github.com/uptrace/bun"
)

type pot struct {
	bun.BaseModel `bun:"table:pots"`

	ID   int64
	Name string
}

type lid struct {
	bun.BaseModel `bun:"table:lids"`

	ID int64
}

func potsAndLids(t *testing.T, d *db.DB) {
	t.Helper()
	for _, query := range []string{
		"CREATE TABLE pots (id BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE)", "CREATE TABLE lids (id BIGINT PRIMARY KEY)",
	} {
		if _, err := d.NewRaw(query).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func countOf(t *testing.T, d *db.DB, query string) (n int) {
	t.Helper()
	if err := d.NewRaw(query).Scan(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// cover adds pots, and a lid for each.
func cover(pots ...pot) func(context.Context, db.Tx) error {
	return func(ctx context.Context, tx db.Tx) error {
		lids := make([]lid, len(pots))
		for i, p := range pots {
			lids[i].ID = p.ID
		}
		w := tx.Writes()
		w.Insert(&lids, "")
		w.GuardInsert(&pots, "CONFLICT (name) DO NOTHING")
		return w.ExecAlone(ctx)
	}
}

// Writes that are alone commit by themselves only if one row decides about all of them.
func TestWritesAloneAreWrittenAllOrNotAtAll(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		potsAndLids(t, d)
		for _, c := range []struct {
			pots  []pot
			want  error
			sends int64 // round trips to PostgreSQL
			left  int
		}{
			{[]pot{{ID: 1, Name: "a"}}, nil, 1, 1},
			{[]pot{{ID: 2, Name: "a"}}, db.ErrStale, 1, 1},
			{[]pot{{ID: 3, Name: "b"}, {ID: 4, Name: "a"}}, db.ErrStale, 2, 1},
			{[]pot{{ID: 5, Name: "c"}, {ID: 6, Name: "d"}}, nil, 2, 3},
		} {
			_, before := d.Traffic()
			if err := d.SharedTx(t.Context(), cover(c.pots...)); !errors.Is(err, c.want) {
				t.Errorf("%v: %v, want %v", c.pots, err, c.want)
			}
			if _, after := d.Traffic(); d.IsPostgres() && after-before != c.sends {
				t.Errorf("%v: %d round trips, want %d", c.pots, after-before, c.sends)
			}
			if pots, lids := countOf(t, d, "SELECT count(*) FROM pots"), countOf(t, d, "SELECT count(*) FROM lids"); pots != c.left || lids != c.left {
				t.Errorf("%v: %d pots and %d lids, want %d of each", c.pots, pots, lids, c.left)
			}
		}
	})
}

// A transaction that fails after its first statements leaves nothing, and its connection can be
// used again.
func TestATransactionThatBeginsLateRollsBack(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		potsAndLids(t, d)
		no := errors.New("no")
		for range 3 {
			err := d.SharedTx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				w := tx.Writes()
				w.Insert(&[]lid{{ID: 1}}, "")
				return errors.Join(w.Exec(ctx), no)
			})
			if !errors.Is(err, no) || errors.Is(err, db.ErrStale) {
				t.Error(err)
			}
			err = d.SharedTx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				_, err := tx.NewRaw("INSERT INTO lids (id) VALUES (2)").Exec(ctx)
				return errors.Join(err, no)
			})
			if !errors.Is(err, no) {
				t.Error(err)
			}
			if err := d.SharedTx(t.Context(), func(context.Context, db.Tx) error { return no }); !errors.Is(err, no) {
				t.Error(err)
			}
		}
		if n := countOf(t, d, "SELECT count(*) FROM lids"); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	})
}

// A connection that has broken since it was last used is found by the first statements: the
// transaction runs again. Without that, the caller has an error, and its supplier an answer to
// repeat.
func TestATransactionSurvivesBrokenConnections(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	potsAndLids(t, d)
	for id := range int64(20) {
		write := func(ctx context.Context, tx db.Tx) error {
			w := tx.Writes()
			w.Insert(&[]lid{{ID: id}}, "")
			return w.Exec(ctx)
		}
		if id%2 == 1 {
			write = cover(pot{ID: id, Name: string(rune('a' + id))})
		}
		_, err := d.Read.NewRaw("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()").
			Exec(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := d.SharedTx(t.Context(), write); err != nil {
			t.Errorf("transaction %d: %v", id, err)
		}
	}
	if n := countOf(t, d, "SELECT count(*) FROM lids"); n != 20 {
		t.Errorf("%d of 20 rows", n)
	}
}
