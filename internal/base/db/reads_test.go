package db_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"reflect"
	"sync/atomic"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/bulk"
	"backstop/internal/base/db/dbtest"
)

type word string

func TestReadsAnswerEachQuestion(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		type pair struct {
			ID   int64
			Name string
		}
		for range 2 { // the second time it is prepared
			var words []word
			var ids []*int64
			err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				if _, err := tx.ExecContext(ctx,
					"CREATE TABLE IF NOT EXISTS words (id BIGINT PRIMARY KEY, word TEXT NOT NULL, other BIGINT)"); err != nil {
					return err
				}
				if _, err := tx.ExecContext(ctx,
					"INSERT INTO words (id, word, other) VALUES (1, 'a', NULL), (2, 'it''s ?', 7) ON CONFLICT DO NOTHING"); err != nil {
					return err
				}
				r := tx.Reads()
				r.Add(func(row db.Row) error {
					var w word
					err := row.Scan(&w)
					words = append(words, w)
					return err
				}, "SELECT word FROM words WHERE id IN (?) ORDER BY id", []int64{1, 2, 3})
				r.Add(func(row db.Row) error {
					var id *int64
					err := row.Scan(&id)
					ids = append(ids, id)
					return err
				}, "WITH _v ? SELECT other FROM words, _v WHERE words.id = _v.id AND words.word = _v.name ORDER BY words.id",
					bulk.Each(&[]pair{{1, "a"}, {2, "it's ?"}, {1, "no"}}))
				r.Add(func(db.Row) error { return errors.New("no row") }, "WITH _v ? SELECT other FROM words, _v WHERE words.id = _v.id",
					bulk.Each(&[]pair{}))
				return r.Exec(ctx)
			})
			seven := int64(7)
			if err != nil || !reflect.DeepEqual(words, []word{"a", "it's ?"}) || !reflect.DeepEqual(ids, []*int64{nil, &seven}) {
				t.Errorf("%v, %v, %v", words, ids, err)
			}
		}
	})
}

// If a query fails, or a row cannot be read, Exec fails; the transaction's connection remains
// usable.
func TestReadsFailWithTheirFirstError(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		no := errors.New("no")
		read := func(row func(db.Row) error, texts ...string) error {
			return d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				r := tx.Reads()
				for _, text := range texts {
					r.Add(row, text)
				}
				return r.Exec(ctx)
			})
		}
		rows := 0
		count := func(db.Row) error { rows++; return nil }
		if err := read(count, "SELECT 1", "SELECT nothing FROM nowhere"); err == nil {
			t.Error("there is no such table")
		}
		if err := read(func(db.Row) error { return no }, "SELECT 1 UNION ALL SELECT 2", "SELECT 1"); !errors.Is(err, no) {
			t.Errorf("the row's error is lost: %v", err)
		}
		if err := read(func(row db.Row) error { return row.Scan(new(int), new(int)) }, "SELECT 1"); err == nil {
			t.Error("one column was read as two")
		}
		rows = 0
		if err := read(count, "SELECT 1 UNION ALL SELECT 2", "SELECT 3"); err != nil || rows != 3 {
			t.Errorf("%d rows, %v", rows, err)
		}
	})
}

func TestReadsAreOneRoundTrip(t *testing.T) {
	t.Parallel()
	address, trips := countingProxy(t, dbtest.PostgresMigratedURL(t))
	d := dbtest.Open(t, db.Options{URL: address})
	least := func(run func(context.Context, db.Tx) error) int64 {
		fewest := int64(1000)
		err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			for range 10 { // the first one prepares; the database's clock is read meanwhile
				before := trips.Load()
				if err := run(ctx, tx); err != nil {
					return err
				}
				fewest = min(fewest, trips.Load()-before)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		return fewest
	}
	texts := []string{
		"SELECT number FROM unnest(?::bigint[]) AS number WHERE number > 1",
		"SELECT number FROM unnest(?::bigint[]) AS number WHERE number > 2",
	}
	together := least(func(ctx context.Context, tx db.Tx) error {
		r := tx.Reads()
		for _, text := range texts {
			r.Add(func(row db.Row) error { return row.Scan(new(int64)) }, text, []*int64{})
		}
		return r.Exec(ctx)
	})
	apart := least(func(ctx context.Context, tx db.Tx) error {
		for _, text := range texts {
			if err := tx.Prepared(ctx, &[]int64{}, text, []*int64{}); err != nil {
				return err
			}
		}
		return nil
	})
	if together != 1 || apart != 2 {
		t.Errorf("together %d round trips, one by one %d", together, apart)
	}
}

// countingProxy is in front of a PostgreSQL server and counts how often a client sends
// something after an answer.
func countingProxy(t *testing.T, server string) (address string, trips *atomic.Int64) {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	trips = new(atomic.Int64)
	host := u.Host
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			back, err := net.Dial("tcp", host)
			if err != nil {
				client.Close()
				continue
			}
			var answered atomic.Bool
			pass := func(to, from net.Conn, seen func()) {
				defer to.Close()
				for buf := make([]byte, 1<<16); ; {
					n, err := from.Read(buf)
					seen()
					if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
						return
					}
				}
			}
			go pass(client, back, func() { answered.Store(true) })
			go pass(back, client, func() {
				if answered.Swap(false) {
					trips.Add(1)
				}
			})
		}
	}()
	u.Host = l.Addr().String()
	return u.String(), trips
}
