package callback

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// fill writes n callbacks in turn into both tables, oldest first.
func fill(t *testing.T, d *db.DB, n int) {
	t.Helper()
	ctx := context.Background()
	for i := range n {
		var err error
		if i%2 == 0 {
			_, err = d.NewRaw("INSERT INTO callbacks (id, supplier_id, order_id, order_no, trade_no, event_key, digest, outcome,"+
				" received_at, remote_addr, method, query, headers, body, steps) VALUES (?, 1, 0, ?, '', '', '', ?, ?, '192.0.2.1', 'POST', '', '', ?, '[]')",
				i+1, fmt.Sprintf("O%d", i%6), []string{"paid", "repeat"}[i/2%2], i, []byte{}).Exec(ctx)
		} else {
			_, err = d.NewRaw("INSERT INTO refused_callbacks (id, supplier, outcome, received_at, remote_addr, method, query, headers, body, steps)"+
				" VALUES (?, 'wx', ?, ?, '192.0.2.1', 'POST', '', '', ?, '[]')", i+1, BadSignature, i, []byte{}).Exec(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// walk follows next to the end.
func walk(t *testing.T, d *db.DB, q Query) (ids []int64) {
	t.Helper()
	for pages := 0; ; pages++ {
		if pages > 100 {
			t.Fatalf("%+v does not end", q)
		}
		rows, next, err := List(context.Background(), d.Read, q)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) > q.Limit {
			t.Fatalf("a page of %d", len(rows))
		}
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
		if next == 0 {
			return ids
		}
		q.Before = next
	}
}

func TestPagesHoldEveryCallbackOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newHouse(t, d, 10, 100)
		h.declare(t, 1, "wx", true, "[]")
		fill(t, d, 40)
		for _, c := range []struct {
			q    Query
			want func(id int64) bool
		}{
			{Query{}, func(id int64) bool { return id%2 == 1 }},
			{Query{Refused: true}, func(int64) bool { return true }},
			{Query{Outcome: BadSignature}, func(id int64) bool { return id%2 == 0 }},
			{Query{Outcome: BadSignature, OrderNo: "O0"}, func(int64) bool { return false }},
			{Query{Outcome: "paid"}, func(id int64) bool { return id%4 == 1 }},
			{Query{OrderNo: "O2"}, func(id int64) bool { return id%6 == 3 }},
			{Query{OrderNo: "O2", Refused: true}, func(id int64) bool { return id%6 == 3 }},
			{Query{Supplier: "wx"}, func(id int64) bool { return id%2 == 1 }},
			{Query{Supplier: "wx", Refused: true}, func(int64) bool { return true }},
			{Query{Supplier: "ali", Refused: true}, func(int64) bool { return false }},
		} {
			var want []int64
			for id := int64(40); id >= 1; id-- {
				if c.want(id) {
					want = append(want, id)
				}
			}
			for _, c.q.Limit = range []int{1, 7, 20, 40, 41} {
				for _, c.q.scan = range []int{0, 1, 3, 10} {
					if got := walk(t, d, c.q); !slices.Equal(got, want) {
						t.Errorf("%+v: %v, want %v", c.q, got, want)
					}
				}
			}
		}
		rows, _, err := List(context.Background(), d.Read, Query{OrderNo: "O0", Limit: 1})
		if err != nil || rows[0].Supplier != "wx" || rows[0].RemoteAddr != "192.0.2.1" || rows[0].Outcome == "" {
			t.Errorf("%+v, %v", rows, err)
		}
	})
}
