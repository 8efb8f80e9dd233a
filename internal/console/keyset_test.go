package console

import (
	"context"
	"fmt"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/breaker"
	"backstop/internal/callback"
	"backstop/internal/list"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/settings"
)

func putOrders(t *testing.T, d *db.DB, n int) {
	t.Helper()
	now := d.Now()
	for n > 0 {
		rows := make([]*order.Order, min(n, 500))
		n -= len(rows)
		for i := range rows {
			id := d.NewID()
			rows[i] = &order.Order{
				ID: id, OrderNo: fmt.Sprint(id), MerchantID: 1 + id%3, OutTradeNo: fmt.Sprint("T", id), SupplierID: 1, Amount: 100,
				Currency: "CNY",
				Exponent: 2, Status: order.Statuses[id%int64(len(order.Statuses))], Version: 1, CreatedAt: now, ExpiresAt: now,
			}
		}
		if _, err := d.NewInsert().Model(&rows).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func newBreakers(t *testing.T, d *db.DB) *Reader {
	t.Helper()
	_, err := d.NewRaw("INSERT INTO merchants (id, code, name, signing_secrets, notify, created_at, updated_at)" +
		" VALUES (1, 'm1', 'One', '[]', '{}', 0, 0), (2, 'm2', 'Two', '[]', '{}', 0, 0), (3, 'm3', 'Three', '[]', '{}', 0, 0)").Exec(
		t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return New(d, settings.NewStore(d, nil, nil, nil), breaker.NewCache(d, nil))
}

// ask returns a query of all merchants' rows with these terms.
func ask(s *list.Spec, terms ...string) list.Query {
	q := list.Query{Spec: s, Scope: list.All()}
	for i := 0; i < len(terms); i += 2 {
		q = q.With(terms[i], terms[i+1])
	}
	return q
}

// walk pages through a whole list and back, running something at each page, and returns the ids
// in order.
func walk[T any](t *testing.T, s list.Slice, read func(list.Slice) (list.Page[T], error), id func(T) int64, between func()) (forth,
	back []int64,
) {
	t.Helper()
	page, err := read(s)
	for ; ; page, err = read(s) {
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Rows {
			forth = append(forth, id(r))
		}
		between()
		if page.Older == (list.Cursor{}) {
			break
		}
		s.At = page.Older
	}
	for page.Newer != (list.Cursor{}) && len(back) < 2*len(forth)+1000 {
		s.At = page.Newer
		if page, err = read(s); err != nil {
			t.Fatal(err)
		}
		for i := len(page.Rows) - 1; i >= 0; i-- {
			back = append(back, id(page.Rows[i]))
		}
		between()
	}
	return forth, back
}

// wantOnce reports ids that do not match the wanted ones, each once. Ids created after the walk
// began may be included.
func wantOnce(t *testing.T, name string, got []int64, want map[int64]bool, newest int64) {
	t.Helper()
	seen := map[int64]int{}
	for _, id := range got {
		if seen[id]++; seen[id] > 1 {
			t.Errorf("%s: %d was met twice", name, id)
		}
		if !want[id] && id <= newest {
			t.Errorf("%s: %d does not belong there", name, id)
		}
	}
	missed := 0
	for id := range want {
		if seen[id] == 0 {
			missed++
		}
	}
	if missed > 0 {
		t.Errorf("%s: %d of %d were missed", name, missed, len(want))
	}
}

func idsOf(t *testing.T, d *db.DB, query string) (ids map[int64]bool, newest int64) {
	t.Helper()
	var all []int64
	if err := d.Read.NewRaw(query).Scan(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	ids = map[int64]bool{}
	for _, id := range all {
		ids[id], newest = true, max(newest, id)
	}
	return ids, newest
}

func TestAWalkForthAndBackMeetsEveryOrderOnceWhileOrdersComeIn(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBreakers(t, d)
		putOrders(t, d, 10_000)
		want, newest := idsOf(t, d, "SELECT id FROM orders")
		forth, back := walk(t, list.Slice{Rows: 100}, func(s list.Slice) (list.Page[Order],
			error,
		) {
			return b.Orders(t.Context(), ask(OrderList), s)
		},
			func(o Order) int64 { return o.ID }, func() { putOrders(t, d, 3) })
		wantOnce(t, "forth", forth, want, newest)
		// The way back begins before the last page.
		for _, id := range forth[len(forth)-(len(forth)-1)%100-1:] {
			delete(want, id)
		}
		wantOnce(t, "back", back, want, newest)
		if len(back) <= len(want) {
			t.Errorf("the way back met %d orders: those that arrived meanwhile must not be among them", len(back))
		}
	})
}

// A filter without an index scans a number of rows per page and continues from there.
func TestAWalkThroughAScannedFilterMissesNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBreakers(t, d)
		short := *OrderList
		short.ScanRows = 97
		putOrders(t, d, 1000)
		want, newest := idsOf(t, d, "SELECT id FROM orders WHERE status = 'paid' AND merchant_id = 2")
		reached := 0
		forth, _ := walk(t, list.Slice{Rows: 25}, func(s list.Slice) (list.Page[Order], error) {
			page, err := b.Orders(t.Context(), ask(&short, "status", "paid", "merchant", "m2"), s)
			if page.Reached > 0 {
				reached++
			}
			return page, err
		}, func(o Order) int64 { return o.ID }, func() {})
		wantOnce(t, "forth", forth, want, newest)
		if reached == 0 {
			t.Error("no page shows how far it searched")
		}
		var back []int64
		for s := (list.Slice{Rows: 25, At: list.Cursor{ID: 1, Newer: true}}); ; {
			page, err := b.Orders(t.Context(), ask(&short, "status", "paid", "merchant", "m2"), s)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range page.Rows {
				back = append(back, o.ID)
			}
			if s.At = page.Newer; s.At == (list.Cursor{}) {
				break
			}
		}
		wantOnce(t, "back from the oldest", back, want, newest)
	})
}

func TestCallbacksOfBothTablesAreOneList(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBreakers(t, d)
		put := func(n int) {
			for range n {
				id := d.NewID()
				query := "INSERT INTO callbacks (id, supplier_id, order_id, order_no, trade_no, event_key, digest, outcome, received_at, remote_addr, method, query, headers, body, steps)" +
					" VALUES (?, 1, 0, '', '', '', '', 'paid', 0, '', '', '', '', '', '')"
				if id%3 == 0 {
					query = "INSERT INTO refused_callbacks (id, supplier, outcome, received_at, remote_addr, method, query, headers, body, steps)" +
						" VALUES (?, '', 'bad_signature', 0, '', '', '', '', '', '')"
				}
				if _, err := d.NewRaw(query, id).Exec(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		put(230)
		want, newest := idsOf(t, d, "SELECT id FROM callbacks UNION ALL SELECT id FROM refused_callbacks")
		forth, back := walk(t, list.Slice{Rows: 25}, func(s list.Slice) (list.Page[callback.Row], error) {
			return b.Callbacks(t.Context(), ask(CallbackList), s)
		}, func(r callback.Row) int64 { return r.ID }, func() { put(1) })
		wantOnce(t, "forth", forth, want, newest)
		for _, id := range forth[len(forth)-(len(forth)-1)%25-1:] {
			delete(want, id)
		}
		wantOnce(t, "back", back, want, newest)
	})
}

func TestAListEndsWithItsTime(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBreakers(t, d)
		now := d.Now()
		hour := time.Hour.Microseconds()
		for i := range int64(48) {
			id := db.IDAt(now-i*hour) + 1
			o := order.Order{
				ID: id, OrderNo: fmt.Sprint(id), OutTradeNo: fmt.Sprint(id), MerchantID: 1, SupplierID: 1, Amount: 1,
				Currency: "CNY", Status: order.Paid, Version: 1,
			}
			if _, err := d.NewInsert().Model(&o).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		page, err := b.Orders(t.Context(), ask(OrderList), list.Slice{From: now - 20*hour - hour/2, To: now - 10*hour - hour/2})
		if err != nil || len(page.Rows) != 10 || page.Count != 10 || page.Older != (list.Cursor{}) {
			t.Errorf("ten hours have %d orders, %d counted, then %+v, %v", len(page.Rows), page.Count, page.Older, err)
		}
		oldest := fmt.Sprint(db.IDAt(now-47*hour) + 1)
		page, err = b.Orders(t.Context(), ask(OrderList, "no", oldest), list.Slice{From: now - hour, Rows: 25})
		if err != nil || len(page.Rows) != 1 {
			t.Errorf("a whole number finds %d orders outside of the time, %v", len(page.Rows), err)
		}
	})
}

// Waiting notifications are found by their own index, however old they are.
func TestAWalkThroughWhatWaitsMeetsItOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		b := newBreakers(t, d)
		now := d.Now()
		put := func(n int) {
			for range n {
				id := d.NewID()
				status, next := notify.Delivered, (*int64)(nil)
				if id%4 == 0 {
					status, next = notify.RetryWait, &now
				}
				r := notify.Delivery{
					ID: id, EventID: id, SubjectID: id, RecipientID: 1 + id%2, EventType: "order.paid",
					Channel: notify.Webhook, Status: status, NextAt: next, CreatedAt: now, Currency: "CNY", Amount: 5,
				}
				if _, err := d.NewInsert().Model(&r).Exec(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		put(600)
		if page, err := b.Deliveries(t.Context(), ask(DeliveryList, "status", "sending"), list.Slice{}); err != nil ||
			len(page.Rows) != 0 || page.Count != 0 {
			t.Errorf("of none: %d rows, %v", len(page.Rows), err)
		}
		for name, q := range map[string]list.Query{
			"next_at IS NOT NULL": ask(DeliveryList, "risk", "untold"), "status = 'retry_wait' AND recipient_id = 1": ask(DeliveryList,
				"status", "retry_wait", "merchant", "m1"),
		} {
			want, newest := idsOf(t, d, "SELECT id FROM deliveries WHERE "+name)
			forth, back := walk(t, list.Slice{Rows: 25}, func(s list.Slice) (list.Page[Delivery], error) {
				page, err := b.Deliveries(t.Context(), q, s)
				if page.Count < int64(len(want)) || page.More {
					t.Errorf("%s: %d counted, there are %d", name, page.Count, len(want))
				}
				return page, err
			}, func(r Delivery) int64 { return r.ID }, func() { put(2) })
			wantOnce(t, name, forth, want, newest)
			for _, id := range forth[len(forth)-(len(forth)-1)%25-1:] {
				delete(want, id)
			}
			wantOnce(t, name+", back", back, want, newest)
		}
	})
}
