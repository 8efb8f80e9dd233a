package bulk_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/bulk"
	"backstop/internal/base/db/dbtest"

	"github.com/uptrace/bun"
)

// kind is a named string type, as statuses are.
type kind string

type thing struct {
	bun.BaseModel `bun:"table:things,alias:th"`

	ID     int64           `bun:"id,pk"`
	Kind   kind            `bun:"kind"`
	Count  int             `bun:"count"`
	Open   bool            `bun:"open"`
	Body   []byte          `bun:"body"`
	Detail json.RawMessage `bun:"detail,type:jsonb"`
	At     *int64          `bun:"at"`
	Trace  string          `bun:"trace,nullzero"`
	Extra  extra           `bun:"extra,type:text"`
}

type extra struct{ Words []string }

func things(t *testing.T, d *db.DB) []thing {
	t.Helper()
	_, err := d.ExecContext(t.Context(), "CREATE TABLE things (id BIGINT PRIMARY KEY, kind TEXT NOT NULL, count BIGINT NOT NULL,"+
		" open BOOLEAN NOT NULL, body BYTEA NOT NULL, detail JSONB NOT NULL, at BIGINT, trace TEXT, extra TEXT NOT NULL)")
	if err != nil {
		t.Fatal(err)
	}
	at := int64(1_700_000_000_000_000)
	return []thing{
		{
			ID: 1, Kind: "it's ?, $1 and \\ 收据", Count: 3, Open: true, Body: []byte{0, 255, '\''}, Detail: json.RawMessage(`[1]`), At: &at,
			Trace: "00-1", Extra: extra{[]string{"a", "收据"}},
		},
		{ID: 2, Body: []byte{}, Detail: json.RawMessage(`{}`)},
	}
}

// write sends the writes that gather adds, in one transaction.
func write(t *testing.T, d *db.DB, gather func(*db.Writes)) error {
	t.Helper()
	return d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		gather(w)
		return w.Exec(ctx)
	})
}

func stored(t *testing.T, d *db.DB) []thing {
	t.Helper()
	var got []thing
	if err := d.NewSelect().Model(&got).OrderExpr("id").Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestRowsAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		want := things(t, d)
		for range 2 { // the second time PostgreSQL has the statement prepared
			err := write(t, d, func(w *db.Writes) { w.Insert(&want, "CONFLICT (id) DO UPDATE SET count = th.count + 1") })
			if err != nil {
				t.Fatal(err)
			}
		}
		want[0].Count, want[1].Count = 4, 1
		if got := stored(t, d); !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		err := write(t, d, func(w *db.Writes) { w.Insert(&want, "") })
		if !db.IsUnique(err) {
			t.Errorf("written again: %v", err)
		}
	})
}

func TestAGuardThatMissesOneRowTakesEverythingBack(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		rows := things(t, d)
		if err := write(t, d, func(w *db.Writes) { w.Insert(&rows, "") }); err != nil {
			t.Fatal(err)
		}
		const update = "UPDATE things AS th SET count = _v.count FROM _v WHERE th.id = _v.id AND th.kind = _v.kind"
		rows[0].Count, rows[1].Count = 10, 11
		if err := write(t, d, func(w *db.Writes) { w.GuardEach(&rows, update) }); err != nil {
			t.Fatal(err)
		}
		want := stored(t, d)
		if want[0].Count != 10 || want[1].Count != 11 {
			t.Fatalf("counts %d and %d", want[0].Count, want[1].Count)
		}
		rows[0].Count, rows[1].Count, rows[1].Kind = 20, 21, "moved"
		err := write(t, d, func(w *db.Writes) {
			w.GuardEach(&rows, update)
			w.Add(d.NewRaw("UPDATE things SET open = TRUE"))
		})
		if !errors.Is(err, db.ErrStale) {
			t.Errorf("the guard met one of two rows: %v", err)
		}
		if got := stored(t, d); !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	})
}

func TestPreparedTakesListsAndRows(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		rows := things(t, d)
		if err := write(t, d, func(w *db.Writes) { w.Insert(&rows, "") }); err != nil {
			t.Fatal(err)
		}
		type pair struct {
			ID   int64
			Kind kind
		}
		for range 2 {
			var got []int64
			err := d.Prepared(t.Context(), &got, "WITH _v ? SELECT th.id FROM things AS th, _v WHERE th.id = _v.id AND th.kind = _v.kind"+
				" AND th.id IN (?) AND th.count >= ? ORDER BY th.id",
				bulk.Each(&[]pair{{1, rows[0].Kind}, {2, "other"}}), []int64{1, 2, 3}, 1)
			if err != nil || !reflect.DeepEqual(got, []int64{1}) {
				t.Errorf("%v, %v", got, err)
			}
		}
	})
}

// Values in a list or in joined rows arrive unchanged: numbers beyond the precision of a float,
// and strings that some encoding would escape.
func TestListsAndRowsKeepTheirValues(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		rows := things(t, d)[:1]
		rows[0].ID, rows[0].Kind = 1<<62+1, "<a&b>\u2028\\u0041 \\ \" '?' $1 收据 🧾"
		if err := write(t, d, func(w *db.Writes) { w.Insert(&rows, "") }); err != nil {
			t.Fatal(err)
		}
		const update = "UPDATE things AS th SET count = th.count + 1, body = _v.body, detail = _v.detail, trace = _v.trace FROM _v WHERE th.id = _v.id AND th.kind = _v.kind"
		for range 2 { // the second time it is prepared
			if err := write(t, d, func(w *db.Writes) { w.GuardEach(&rows, update) }); err != nil {
				t.Fatal(err)
			}
			rows[0].Count++
			if got := stored(t, d); !reflect.DeepEqual(got, rows) {
				t.Errorf("got  %+v\nwant %+v", got, rows)
			}
			var ids []int64
			err := d.Prepared(t.Context(), &ids, "SELECT id FROM things WHERE id IN (?) AND kind IN (?)", []int64{1, rows[0].ID},
				[]string{"x", string(rows[0].Kind)})
			if err != nil || len(ids) != 1 || ids[0] != rows[0].ID {
				t.Errorf("found %v, %v", ids, err)
			}
		}
	})
}

// note is a row whose bytes may be absent.
type note struct {
	bun.BaseModel `bun:"table:notes,alias:nt"`

	ID   int64  `bun:"id,pk"`
	Body []byte `bun:"body"`
}

// Bytes that are nil are NULL, and no empty value: an update that keeps what it has no value for keeps it.
func TestBytesThatAreNilAreNull(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		if _, err := d.ExecContext(t.Context(), "CREATE TABLE notes (id BIGINT PRIMARY KEY, body BYTEA)"); err != nil {
			t.Fatal(err)
		}
		for _, rows := range [][]note{{{ID: 1, Body: []byte("kept")}, {ID: 2, Body: []byte{}}, {ID: 3}}, {{ID: 4}}} { // many, and one
			if err := write(t, d, func(w *db.Writes) { w.Insert(&rows, "") }); err != nil {
				t.Fatal(err)
			}
		}
		again := []note{{ID: 1}, {ID: 3}}
		const update = "UPDATE notes SET body = coalesce(_v.body, notes.body) FROM _v WHERE notes.id = _v.id"
		if err := write(t, d, func(w *db.Writes) { w.GuardEach(&again, update) }); err != nil {
			t.Fatal(err)
		}
		if err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			var ids []int64
			return tx.Prepared(ctx, &ids, "WITH _v ? "+update+" RETURNING notes.id", bulk.Each(&again))
		}); err != nil {
			t.Fatal(err)
		}
		var got []note
		if err := d.NewSelect().Model(&got).OrderExpr("id").Scan(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(got) != 4 || string(got[0].Body) != "kept" || got[1].Body == nil || got[2].Body != nil || got[3].Body != nil {
			t.Errorf("%+v", got)
		}
	})
}

// What a transaction reads by pgx itself is what bun reads.
func TestATransactionReadsRowsAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		want := things(t, d)
		var rows []thing
		var pointers []*thing
		var kinds []kind
		err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			w := tx.Writes()
			w.Insert(&want, "")
			if err := w.Exec(ctx); err != nil {
				return err
			}
			text := "SELECT " + d.Columns(&thing{}) + " FROM things WHERE id IN (?) ORDER BY id"
			r := tx.Reads()
			r.Into(&rows, text, []int64{1, 2})
			r.Into(&pointers, text, []int64{2, 3})
			if err := r.Exec(ctx); err != nil {
				return err
			}
			return tx.Prepared(ctx, &kinds, "SELECT kind FROM things WHERE id >= ? ORDER BY id", 1)
		})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(rows, want) || len(pointers) != 1 || !reflect.DeepEqual(*pointers[0], want[1]) ||
			!reflect.DeepEqual(kinds, []kind{want[0].Kind, want[1].Kind}) {
			t.Errorf("got  %+v, %+v, %q\nwant %+v", rows, pointers, kinds, want)
		}
	})
}
