package db_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"backstop/internal/db"
	"backstop/internal/db/dbtest"

	"github.com/uptrace/bun"
)

// gate runs transactions that end when they are told to.
type gate struct {
	begun chan int // items of each transaction
	end   chan struct{}
}

func (g *gate) batcher(t *testing.T, d *db.DB) *db.Batcher[int, int] {
	b := db.NewBatcher(d, db.BatchOptions[int, int]{Size: 64, Writers: 4, Queue: 256, Wait: 20 * time.Second},
		func(_ context.Context, _ bun.Tx, items []int) ([]int, error) {
			g.begun <- len(items)
			<-g.end
			return items, nil
		})
	t.Cleanup(b.Close)
	return b
}

func TestATransactionBesideOthersCarriesAsMuchOrItsPatienceEnds(t *testing.T) {
	d := dbtest.Postgres(t)
	g := &gate{begun: make(chan int, 64), end: make(chan struct{})}
	b := g.batcher(t, d)
	var callers sync.WaitGroup
	for i := range 40 {
		callers.Go(func() {
			if out, err := b.Do(t.Context(), i); err != nil || out != i {
				t.Errorf("item %d: %d, %v", i, out, err)
			}
		})
	}
	// The first item to come goes alone; nothing is held up for ever behind it.
	sum, transactions := 0, 0
	for sum < 40 {
		select {
		case n := <-g.begun:
			sum, transactions = sum+n, transactions+1
		case g.end <- struct{}{}:
		case <-time.After(10 * time.Second):
			t.Fatalf("%d items after %d transactions, and nothing goes on", sum, transactions)
		}
	}
	close(g.end)
	callers.Wait()
}

func TestALoneItemDoesNotWaitBehindAnother(t *testing.T) {
	d := dbtest.Postgres(t)
	g := &gate{begun: make(chan int, 4), end: make(chan struct{})}
	b := g.batcher(t, d)
	var callers sync.WaitGroup
	for i := range 4 {
		callers.Go(func() { _, _ = b.Do(t.Context(), i) })
		select {
		case n := <-g.begun:
			if n != 1 {
				t.Errorf("%d items", n)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("item %d waits for transactions that do not end", i)
		}
	}
	close(g.end)
	callers.Wait()
}
