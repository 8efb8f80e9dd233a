package payment_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
)

// put writes n orders of a status whose numbers begin with a name and that are due at a
// moment, past what watches the moves.
func put(t *testing.T, f *paymenttest.Fixture, name string, n int, status order.Status, at int64) {
	t.Helper()
	const insert = "INSERT INTO orders (id, order_no, merchant_id, out_trade_no, supplier_id, amount, currency, exponent, subject, request_digest, status, version, created_at, expires_at, next_at)" +
		" SELECT ?0 + n, ?1 || n, ?2, ?1 || n, 1, 10, 'CNY', 2, 's', '', ?3, 1, 0, ?4, ?4 FROM "
	numbers := "(WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ?5) SELECT n FROM s) AS s"
	if _, err := f.DB.NewRaw(insert+numbers, f.DB.NewID(), name, f.M1.ID, status, at, n).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func expire(t *testing.T, f *paymenttest.Fixture, want int, when string) {
	t.Helper()
	if n, err := f.Processor.Expire(t.Context()); n != want || err != nil {
		t.Errorf("%s: closed %d, %v; want %d", when, n, err, want)
	}
}

var dueQuery = regexp.MustCompile(`FROM orders AS o WHERE (o\.next_at >= \d+ AND o\.next_at <= \d+)`)

// entriesRead is how many entries of the index the queries for what is due have read.
func entriesRead(t *testing.T, f *paymenttest.Fixture, seen *dbtest.Statements) (entries int64) {
	t.Helper()
	queries := 0
	for _, text := range seen.Texts {
		if found := dueQuery.FindStringSubmatch(text); found != nil {
			entries += f.Count(t, "SELECT count(*) FROM orders AS o WHERE "+found[1])
			queries++
		}
	}
	if queries == 0 {
		t.Fatal("no query for what is due was seen")
	}
	seen.Texts = nil
	return entries
}

// Orders that are over keep the time at which they were due, and must not be read again and
// again because of it.
func TestWhatIsOverIsPassedOverABoundedNumberOfTimes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const over = 10_000
		f := paymenttest.New(t, d, paymenttest.Options{ByHand: true})
		put(t, f, "paid", over, order.Paid, d.Now()-time.Hour.Microseconds())
		seen := &dbtest.Statements{}
		d.Read = d.Read.WithQueryHook(seen)
		for range 100 {
			expire(t, f, 0, "all are paid")
		}
		if n := entriesRead(t, f, seen); n != over {
			t.Errorf("%d entries were read in the first 100 rounds, want %d", n, over)
		}
		payment.PassNow(f.Processor)
		expire(t, f, 0, "the next pass")
		node := paymenttest.New(t, d, paymenttest.Options{Shared: true})
		expire(t, node, 0, "another node")
		if n := entriesRead(t, f, seen); n != 0 {
			t.Errorf("%d entries were read again by the next pass and by another node", n)
		}
		f.Want(t, over, "SELECT count(*) FROM orders WHERE next_at IS NOT NULL")
	})
}

// After an outage each batch goes on where the one before it ended.
func TestABacklogIsReadOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		const late = 2600 // some batches
		f := paymenttest.New(t, d, paymenttest.Options{})
		for i := range 4 {
			put(t, f, string(rune('a'+i)), late/4, order.Pending, d.Now()-int64(10-i)*time.Hour.Microseconds())
		}
		seen := &dbtest.Statements{}
		d.Read = d.Read.WithQueryHook(seen)
		expire(t, f, late, "after an outage")
		if n := entriesRead(t, f, seen); n > 5*late {
			t.Errorf("%d entries were read for %d orders", n, late)
		}
	})
}

func TestAnOrderBehindTheReaderIsFoundByTheNextPass(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{})
		expire(t, f, 0, "nothing is there")
		put(t, f, "late", 1, order.Pending, d.Now()-30_000_000)
		expire(t, f, 0, "behind the reader")
		payment.PassNow(f.Processor)
		expire(t, f, 1, "the next pass")
	})
}

// The order is locked while the closer looks. Then that process dies.
func TestWhatACrashedCloserDidNotCloseIsClosedByTheNext(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	f := paymenttest.New(t, d, paymenttest.Options{})
	put(t, f, "old", 3, order.Pending, d.Now()-time.Hour.Microseconds())
	stop := context.Canceled
	err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
		if _, err := tx.NewRaw("SELECT 1 FROM orders WHERE order_no = 'old1' FOR UPDATE").Exec(ctx); err != nil {
			return err
		}
		expire(t, f, 2, "beside a payment that is rolled back")
		payment.PassNow(f.Processor)
		expire(t, f, 0, "a pass beside it")
		return stop
	})
	if err != stop {
		t.Fatal(err)
	}
	node := paymenttest.New(t, d, paymenttest.Options{Shared: true})
	expire(t, node, 1, "another process")
}

// An import may bring orders that were due before the watermark, and commits late.
func TestAnImportAndTheWatermark(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{})
		expire(t, f, 0, "nothing is there")
		before, err := order.Watermark(t.Context(), d)
		if err != nil || before == 0 {
			t.Fatalf("the watermark is %d, %v", before, err)
		}
		due := before - time.Hour.Microseconds()
		err = d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			_, err := tx.NewRaw(
				"INSERT INTO import_orders (run_id, line, id, history_id, attempt_id, attempt_status, account_id, order_no, merchant_id, out_trade_no, supplier_id,"+
					" amount, currency, exponent, subject, notify_url, status, version, supplier_trade_no, paid_amount, close_reason, created_at, expires_at, next_at)"+
					" VALUES (1, 1, 5, 6, 7, '', 0, 'A-1', ?, 'A-1', 1, 10, 'CNY', 2, 's', '', 'pending', 1, '', 0, '', 0, ?, ?)", f.M1.ID,
				due,
				due).Exec(ctx)
			if err != nil {
				return err
			}
			_, err = order.InsertStaged(ctx, tx, 1, d.Now())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		// A pass that began before the import was committed must not move the watermark.
		if err := order.Advance(t.Context(), d, before, before+1); err != nil {
			t.Fatal(err)
		}
		if at, err := order.Watermark(t.Context(), d); err != nil || at >= due {
			t.Errorf("the watermark is %d, %v; want less than %d", at, err, due)
		}
		payment.PassNow(f.Processor)
		expire(t, f, 1, "after the import")
		if at, err := order.Watermark(t.Context(), d); err != nil || at < before {
			t.Errorf("the watermark stays at %d, %v", at, err)
		}
	})
}

// The backlog of a standstill of hours is read in pages, also where very many were due at one
// moment, and the open ones behind them are closed in the same round.
func TestALongStandstillIsReadInPages(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{ByHand: true})
		const page = 20_000
		hour := time.Hour.Microseconds()
		put(t, f, "moment", 2*page+1, order.Paid, d.Now()-3*hour)
		for i := range int64(25) {
			put(t, f, "paid"+string(rune('a'+i)), page/10, order.Paid, d.Now()-2*hour+i)
		}
		put(t, f, "open", 1, order.Pending, d.Now()-hour)
		seen := &dbtest.Statements{}
		d.Read = d.Read.WithQueryHook(seen)
		expire(t, f, 1, "behind all that was paid")
		pages := 0
		for _, text := range seen.Texts {
			found := dueQuery.FindStringSubmatch(text)
			if found == nil {
				continue
			}
			pages++
			var first, last int64
			if err := d.NewRaw("SELECT coalesce(min(o.next_at), 0), coalesce(max(o.next_at), 0) FROM orders AS o WHERE "+
				found[1]).Scan(t.Context(), &first, &last); err != nil {
				t.Fatal(err)
			}
			if first < last && !strings.Contains(text, "LIMIT 20000)") {
				t.Errorf("nothing limits the entries that this skips: %s", text)
			}
		}
		if pages < 4 {
			t.Errorf("read in %d pages", pages)
		}
	})
}
