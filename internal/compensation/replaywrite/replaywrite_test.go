package replaywrite_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/compensation"
	"backstop/internal/compensation/replaywrite"
)

// A write applies to the version that it was meant for, and never overwrites a newer one.
func TestAWriteIsMadeOnceAndNeverOverANewerOne(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		exec := func(query string, args ...any) {
			t.Helper()
			if _, err := d.NewRaw(query, args...).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		exec("CREATE TABLE things (id BIGINT PRIMARY KEY, version BIGINT NOT NULL, name TEXT NOT NULL)")
		exec("INSERT INTO things VALUES (1, 4, 'old')")
		broken := false
		kind := replaywrite.Kind(d, replaywrite.Objects{"thing": func(ctx context.Context, tx db.Tx, p replaywrite.Payload) (bool, error) {
			var f struct{ Name string }
			if err := json.Unmarshal(p.Fields, &f); err != nil {
				return false, err
			}
			res, err := tx.NewRaw("UPDATE things SET version = ?, name = ? WHERE id = ? AND version = ?", p.To, f.Name, p.ID,
				p.From).Exec(ctx)
			if err != nil || broken {
				return false, errors.Join(err, errors.New("the disk is full"))
			}
			n, err := res.RowsAffected()
			return n == 1, err
		}})
		run := func(payload string, want compensation.Class, name string, version int64) {
			t.Helper()
			got := kind.Run(t.Context(), compensation.Item{Payload: json.RawMessage(payload)})
			var row struct {
				Name    string
				Version int64
			}
			if err := d.Read.NewRaw("SELECT name, version FROM things").Scan(t.Context(), &row); err != nil {
				t.Fatal(err)
			}
			if got.Class != want || got.Call != 9 || row.Name != name || row.Version != version {
				t.Errorf("%s: %+v, it is %+v", payload, got, row)
			}
		}
		const write = `{"object":"thing","id":1,"from":4,"to":5,"fields":{"name":"new"},"call":9}`
		broken = true
		run(write, compensation.Class(compensation.Database), "old", 4)
		broken = false
		run(write, compensation.OK, "new", 5)
		run(write, compensation.Class(compensation.Overtaken), "new", 5)
		exec("UPDATE things SET version = 9, name = 'newer'")
		run(write, compensation.Class(compensation.Overtaken), "newer", 9)
		for _, bad := range []string{
			`{}`, `{"object":"other","id":1,"from":1,"to":2}`, `{"object":"thing","id":1,"from":2,"to":2}`,
			`{"object":"thing","from":1,"to":2}`, `7`,
		} {
			if kind.Check(json.RawMessage(bad)) == nil {
				t.Errorf("%s is accepted", bad)
			}
		}
	})
}
