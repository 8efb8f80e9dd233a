package notify_test

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/queue"
	"backstop/internal/base/waittest"
	"backstop/internal/notify"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"

	"github.com/uptrace/bun"
)

// What a paid order may cost, from its callback to its delivered notification: 5 %
// above what was reached. Orders are confirmed 64 at a time by one writer.
var (
	costPostgres = map[string]float64{"rows": 4.3, "updates": 0.2, "index entries": 9.9, "WAL bytes": 2840}
	costSQLite   = map[string]float64{"pages": 1.4}
)

const (
	costOrders = 3000
	costBatch  = 64
)

// payer pays orders in batches and waits until their merchant is notified.
type payer struct {
	f    *paymenttest.Fixture
	here *notify.Dispatcher
	ch   *fakeChannel
	sent int
}

func newPayer(t *testing.T, d *db.DB) *payer {
	ch := &fakeChannel{}
	f, here := together(t, d, paymenttest.Options{URL: "http://m1.test/n", MaxInFlight: costBatch}, ch, costBatch, forgiving(d))
	return &payer{f: f, here: here, ch: ch}
}

func (p *payer) create(t *testing.T, n int) []string {
	t.Helper()
	numbers := make([]string, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			o, _, err := p.f.Processor.Create(context.Background(), p.f.M1, payment.CreateRequest{
				OutTradeNo: p.f.Out(), Amount: 10,
				Currency: "CNY", Supplier: "sp-main",
			})
			if err != nil {
				t.Error(err)
				return
			}
			numbers[i] = o.OrderNo
		})
	}
	wg.Wait()
	return numbers
}

// pay returns how many of the batch found no slot as they were created; where reserved is
// set, that fails the test.
func (p *payer) pay(t *testing.T, numbers []string, reserved bool) (queued int) {
	t.Helper()
	items := make([]*payment.Message, len(numbers))
	for i, no := range numbers {
		items[i] = p.f.Callback(no, "T"+no, 10)
	}
	err := p.f.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
		_, err := p.f.Processor.Confirm(ctx, tx, items)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	p.sent += len(items)
	var rows []struct{ ID, RecipientID int64 }
	if err := p.f.DB.NewRaw("SELECT id, recipient_id FROM deliveries WHERE status = 'queued'").Scan(t.Context(), &rows); err != nil {
		t.Fatal(err)
	}
	if queued = len(rows); queued > 0 && reserved {
		t.Fatalf("%d of %d found no slot: this test tests something else", queued, len(items))
	}
	nudges := make([]queue.Nudge, len(rows))
	for i, r := range rows {
		nudges[i] = queue.Nudge{Delivery: r.ID, Recipient: r.RecipientID}
	}
	p.here.Offer(nudges)
	waittest.Until(t, "the batch is delivered", func() bool { return p.ch.count() == p.sent && p.here.InFlight() == 0 })
	return queued
}

// TestWhatAPaidOrderCosts keeps what the database writes for an order from growing
// unseen: a row or an index more on the hot path shows here, whatever the machine. It runs alone:
// results that are slow to come share fewer transactions.
func TestWhatAPaidOrderCosts(t *testing.T) {
	if testing.Short() {
		t.Skip("short: the race detector changes nothing here")
	}
	t.Run("postgres", func(t *testing.T) {
		d := dbtest.Open(t, db.Options{URL: dbtest.OwnPostgres(t, "autovacuum=off", "checkpoint_timeout=1h", "full_page_writes=on",
			"max_wal_size=4GB")})
		p := newPayer(t, d)
		orders := p.warm(t)
		// Buyers do not pay in the order in which they ordered: a page of orders has room for
		// the new versions of those that one transaction pays, not of all.
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(orders), func(i, k int) { orders[i], orders[k] = orders[k], orders[i] })
		exec := func(query string) {
			if _, err := d.NewRaw(query).Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		exec("CREATE EXTENSION pg_walinspect")
		exec("CHECKPOINT")
		var from string
		const lsn = "SELECT CAST(pg_current_wal_insert_lsn() AS TEXT)"
		if err := d.NewRaw(lsn).Scan(t.Context(), &from); err != nil {
			t.Fatal(err)
		}
		p.payAll(t, orders)
		var records []struct {
			Kind  string
			N     int64
			Bytes float64
		}
		err := d.NewRaw(`SELECT "resource_manager/record_type" AS kind, count AS n, CAST(record_size AS DOUBLE PRECISION) AS bytes`+
			" FROM pg_get_wal_stats(CAST(? AS pg_lsn), pg_current_wal_flush_lsn(), TRUE) WHERE count > 0", from).Scan(t.Context(), &records)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, r := range records {
			got["WAL bytes"] += r.Bytes
			got["WAL records"] += float64(r.N)
			switch r.Kind {
			case "Heap/INSERT", "Heap/INSERT+INIT", "Heap2/MULTI_INSERT", "Heap2/MULTI_INSERT+INIT":
				got["rows"] += float64(r.N)
			case "Heap/UPDATE", "Heap/UPDATE+INIT":
				got["updates"] += float64(r.N)
			case "Heap/HOT_UPDATE":
				got["HOT updates"] += float64(r.N)
			case "Btree/INSERT_LEAF", "Btree/INSERT_POST", "Btree/SPLIT_L", "Btree/SPLIT_R":
				got["index entries"] += float64(r.N)
			}
		}
		costs(t, got, costPostgres)
	})
	t.Run("sqlite", func(t *testing.T) {
		// On a disk: transactions are as large as commits are slow, and tests may have their folders in memory.
		dir, err := os.MkdirTemp("/var/tmp", "backstop-cost-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		d := dbtest.Open(t, db.Options{Dir: dir})
		p := newPayer(t, d)
		orders := p.warm(t)
		if _, err := d.NewRaw("PRAGMA wal_autocheckpoint = 0").Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		frames := func(how string) float64 {
			var busy, log, done int64
			if err := d.NewRaw("PRAGMA wal_checkpoint("+how+")").Scan(t.Context(), &busy, &log, &done); err != nil || busy != 0 {
				t.Fatal(busy, err)
			}
			return float64(log)
		}
		frames("TRUNCATE")
		p.payAll(t, orders)
		costs(t, map[string]float64{"pages": frames("PASSIVE")}, costSQLite)
	})
}

// TestTheResultOfADeliveryTouchesNoIndexBesideOtherWriters holds a snapshot, as any transaction
// beside the payments does: no old version can be removed, so each page must have room for both
// versions of all of its rows.
func TestTheResultOfADeliveryTouchesNoIndexBesideOtherWriters(t *testing.T) {
	if testing.Short() {
		t.Skip("short: starts a PostgreSQL of its own")
	}
	t.Parallel()
	d := dbtest.Open(t, db.Options{URL: dbtest.OwnPostgres(t, "autovacuum=off")})
	p := newPayer(t, d)
	orders := p.warm(t)
	var updates, inPlace int64
	count := func() {
		const text = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'deliveries'"
		if err := d.NewRaw(text).Scan(t.Context(), &updates, &inPlace); err != nil {
			t.Fatal(err)
		}
	}
	waittest.Until(t, "the updates before are counted", func() bool { count(); return updates >= delivered(p.f, t) })
	updatesBefore, inPlaceBefore := updates, inPlace
	err := d.Snapshot(t.Context(), func(ctx context.Context, q bun.IDB) error {
		var held int64
		if err := q.NewRaw("SELECT count(*) FROM orders").Scan(ctx, &held); err != nil {
			return err
		}
		p.payAll(t, orders)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "the updates are counted", func() bool { count(); return updates-updatesBefore >= costOrders })
	if share := float64(inPlace-inPlaceBefore) / float64(updates-updatesBefore); share < 0.95 {
		t.Errorf("%.0f %% of %d updates touched no index, at least 95 %% expected", 100*share, updates-updatesBefore)
	}
}

// warm pays until the merchant has earned its slots, and makes the orders to be
// measured.
func (p *payer) warm(t *testing.T) []string {
	t.Helper()
	for range 40 {
		if p.pay(t, p.create(t, costBatch), false) == 0 {
			return p.create(t, costOrders)
		}
	}
	t.Fatal("the merchant never earned its slots")
	return nil
}

func (p *payer) payAll(t *testing.T, orders []string) {
	t.Helper()
	before := delivered(p.f, t)
	for len(orders) > 0 {
		n := min(len(orders), costBatch)
		p.pay(t, orders[:n], true)
		orders = orders[n:]
	}
	waittest.Until(t, "all results are written", func() bool { return delivered(p.f, t) == before+costOrders })
}

func costs(t *testing.T, got, most map[string]float64) {
	t.Helper()
	for what, n := range got {
		n = math.Round(n/costOrders*10) / 10
		t.Logf("%-14s %8.1f per order", what, n)
		if limit, limited := most[what]; limited && n > limit {
			t.Errorf("%s: %.1f per paid order, at most %.1f", what, n, limit)
		}
	}
}
