package console

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/callback"
	"backstop/internal/exception"
	"backstop/internal/list"
)

// fillCallbacks writes n callbacks alternately into both tables, oldest first.
func fillCallbacks(t *testing.T, d *db.DB, n int) {
	t.Helper()
	ctx := context.Background()
	for i := range n {
		var err error
		if i%2 == 0 {
			_, err = d.NewRaw("INSERT INTO callbacks (id, supplier_id, order_id, order_no, trade_no, event_key, digest, outcome,"+
				" received_at, remote_addr, method, query, headers, body, steps) VALUES (?, 1, 0, ?, '', '', '', ?, ?, '192.0.2.1', 'POST', '', '', ?, '')",
				i+1, fmt.Sprintf("O%d", i%6), []string{"paid", "repeat"}[i/2%2], i, []byte{}).Exec(ctx)
		} else {
			_, err = d.NewRaw(
				"INSERT INTO refused_callbacks (id, supplier, outcome, received_at, remote_addr, method, query, headers, body, steps)"+
					" VALUES (?, 'wx', ?, ?, '192.0.2.1', 'POST', '', '', ?, '')", i+1, callback.BadSignature, i, []byte{}).Exec(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// keysOf follows the pages of a list to its end.
func keysOf[T any](t *testing.T, rows int, read func(list.Slice) (list.Page[T], error), key func(T) int64) (ids []int64) {
	t.Helper()
	s := list.Slice{Rows: rows}
	for pages := 0; ; pages++ {
		page, err := read(s)
		if err != nil || pages > 100 || len(page.Rows) > rows {
			t.Fatalf("page %d of %d rows: %v", pages, len(page.Rows), err)
		}
		for _, r := range page.Rows {
			ids = append(ids, key(r))
		}
		if s.At = page.Older; s.At == (list.Cursor{}) {
			return ids
		}
	}
}

func TestPagesHoldEveryCallbackOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBreakers(t, d)
		for _, query := range []string{
			"INSERT INTO supplier_accounts (id, name) VALUES (1, 'a')",
			"INSERT INTO suppliers (id, code, kind, account_id, enabled, allow_ips, config, created_at, updated_at) VALUES (1, 'wx', 'k', 1, TRUE, '[]', '{}', 0, 0)",
		} {
			if _, err := d.NewRaw(query).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		fillCallbacks(t, d, 40)
		for _, c := range []struct {
			terms []string
			want  func(id int64) bool
		}{
			{[]string{"refused", "no"}, func(id int64) bool { return id%2 == 1 }},
			{nil, func(int64) bool { return true }},
			{[]string{"outcome", callback.BadSignature}, func(id int64) bool { return id%2 == 0 }},
			{[]string{"outcome", callback.BadSignature, "refused", "no"}, func(int64) bool { return false }},
			{[]string{"outcome", callback.BadSignature, "no", "O0"}, func(int64) bool { return false }},
			{[]string{"outcome", "paid"}, func(id int64) bool { return id%4 == 1 }},
			{[]string{"no", "O2", "refused", "no"}, func(id int64) bool { return id%6 == 3 }},
			{[]string{"no", "O2"}, func(id int64) bool { return id%6 == 3 }},
			{[]string{"supplier", "wx", "refused", "no"}, func(id int64) bool { return id%2 == 1 }},
			{[]string{"supplier", "wx"}, func(int64) bool { return true }},
			{[]string{"supplier", "ali"}, func(int64) bool { return false }},
		} {
			var want []int64
			for id := int64(40); id >= 1; id-- {
				if c.want(id) {
					want = append(want, id)
				}
			}
			for _, rows := range []int{1, 7, 20, 40, 41} {
				for _, scan := range []int{0, 1, 3, 10} {
					spec := *CallbackList
					spec.ScanRows = scan
					got := keysOf(t, rows, func(s list.Slice) (list.Page[callback.Row], error) {
						s.Uncounted = true
						return b.Callbacks(t.Context(), ask(&spec, c.terms...), s)
					}, func(r callback.Row) int64 { return r.ID })
					if !slices.Equal(got, want) {
						t.Errorf("%v, %d rows, %d scanned: %v, want %v", c.terms, rows, scan, got, want)
					}
				}
			}
		}
		page, err := b.Callbacks(t.Context(), ask(CallbackList, "no", "O0"), list.Slice{Rows: 1})
		if err != nil || page.Rows[0].Supplier != "wx" || page.Rows[0].RemoteAddr != "192.0.2.1" || page.Rows[0].Outcome == "" {
			t.Errorf("%+v, %v", page.Rows, err)
		}
	})
}

func TestPagesHoldEveryExceptionOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx, b := t.Context(), newBreakers(t, d)
		items := make([]*exception.Item, 12)
		for i := range items {
			items[i] = &exception.Item{
				Kind: []string{exception.LatePayment, exception.UnknownOrder}[i%2], OrderNo: fmt.Sprintf("O%d", i%3),
				Subject: fmt.Sprint(i),
			}
		}
		err := d.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
			w := tx.Writes()
			exception.Open(tx, w, d, items)
			return w.Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.NewRaw("UPDATE exceptions SET state = 'ignored' WHERE subject = '4'").Exec(ctx); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			terms []string
			want  func(i int) bool
		}{
			{nil, func(int) bool { return true }},
			{[]string{"no", "O1"}, func(i int) bool { return i%3 == 1 }},
			{[]string{"kind", exception.LatePayment}, func(i int) bool { return i%2 == 0 }},
			{[]string{"kind", exception.LatePayment, "state", string(exception.Opened)}, func(i int) bool { return i%2 == 0 && i != 4 }},
			{[]string{"state", "ignored"}, func(i int) bool { return i == 4 }},
			{[]string{"state", NeedsPerson}, func(i int) bool { return i != 4 }},
			{[]string{"no", "O1", "state", Unsettled}, func(i int) bool { return i%3 == 1 && i != 4 }},
			{[]string{"no", "O1", "kind", exception.UnknownOrder, "state", string(exception.Opened)}, func(i int) bool {
				return i%3 == 1 &&
					i%2 == 1
			}},
		} {
			var want []int64
			for i := len(items) - 1; i >= 0; i-- {
				if c.want(i) {
					want = append(want, items[i].ID)
				}
			}
			for _, rows := range []int{1, 5, 12, 13} {
				got := keysOf(t, rows, func(s list.Slice) (list.Page[exception.Item], error) {
					return b.Exceptions(ctx, ask(ExceptionList, c.terms...), s)
				}, func(i exception.Item) int64 { return i.ID })
				if !slices.Equal(got, want) {
					t.Errorf("%v: %v, want %v", c.terms, got, want)
				}
			}
		}
	})
}

// TestActsAreAListByNumber pages through a list whose keys are not times, and restricts it by
// time.
func TestActsAreAListByNumber(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b, now := newBreakers(t, d), d.Now()
		for i := range int64(20) {
			r := audit.Row{Number: i + 1, At: now + i*time.Minute.Microseconds(), Actor: []string{
				"operator:li", "token:li",
				"operator:wu",
			}[i%3], Action: "a", Object: "order", ObjectID: fmt.Sprint(i % 2), Params: "{}"}
			if _, err := d.NewInsert().Model(&r).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			terms    []string
			from, to int64
			want     func(i int64) bool
		}{
			{nil, 0, 0, func(int64) bool { return true }},
			{nil, 5, 10, func(i int64) bool { return i >= 5 && i < 10 }},
			{[]string{"actor", "li"}, 0, 0, func(i int64) bool { return i%3 < 2 }},
			{[]string{"actor", "token:li"}, 3, 0, func(i int64) bool { return i%3 == 1 && i >= 3 }},
			{[]string{"object", "order", "id", "1"}, 0, 15, func(i int64) bool { return i%2 == 1 && i < 15 }},
		} {
			var want []int64
			for i := int64(19); i >= 0; i-- {
				if c.want(i) {
					want = append(want, i+1)
				}
			}
			got := keysOf(t, 3, func(s list.Slice) (list.Page[audit.Row], error) {
				if c.from > 0 {
					s.From = now + c.from*time.Minute.Microseconds()
				}
				if c.to > 0 {
					s.To = now + c.to*time.Minute.Microseconds()
				}
				return b.Acts(t.Context(), ask(ActList, c.terms...), s)
			}, func(r audit.Row) int64 { return r.Number })
			if !slices.Equal(got, want) {
				t.Errorf("%v from %d to %d: %v, want %v", c.terms, c.from, c.to, got, want)
			}
		}
	})
}
