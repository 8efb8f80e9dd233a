package db_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
)

// stage is a Batcher whose transactions end when the test ends them.
type stage struct {
	*db.Batcher[int, int]
	t       *testing.T
	begun   chan []int
	ends    [64]chan struct{} // by a transaction's first item
	callers sync.WaitGroup
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t, begun: make(chan []int, 64)}
	for i := range s.ends {
		s.ends[i] = make(chan struct{})
	}
	s.Batcher = db.NewBatcher(dbtest.Postgres(t), db.BatchOptions[int, int]{Size: 64, Writers: 4, Queue: 64, Wait: 30 * time.Second},
		func(_ context.Context, _ db.Tx, items []int) ([]int, error) {
			s.begun <- items
			<-s.ends[items[0]]
			return items, nil
		})
	t.Cleanup(s.Close)
	return s
}

func (s *stage) submit(items ...int) {
	for _, i := range items {
		s.callers.Go(func() {
			if out, err := s.Do(context.Background(), i); err != nil || out != i {
				s.t.Errorf("item %d: %d, %v", i, out, err)
			}
		})
	}
}

// next returns the first item of the transaction that begins now and has this many items.
func (s *stage) next(items int) (first int) {
	s.t.Helper()
	select {
	case got := <-s.begun:
		if len(got) != items {
			s.t.Errorf("a transaction of %d items, want %d", len(got), items)
		}
		return got[0]
	case <-time.After(time.Minute):
		s.t.Fatal("no transaction begins")
		return 0
	}
}

func TestItemsGoTogetherAndNoneIsHeldUpByOthers(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	// A single item never waits for a running transaction.
	for i := range 4 {
		s.submit(i)
		s.next(1)
	}
	// All writers are busy. Items that arrive meanwhile form one transaction.
	s.submit(10, 11, 12, 13, 14, 15, 16, 17)
	waittest.Until(t, "all items wait", func() bool { return s.Waiting() == 8 })
	close(s.ends[0])
	many := s.next(8)
	for i := 1; i < 4; i++ {
		close(s.ends[i])
	}
	// A transaction of eight is delayed: the next item waits, but not forever.
	s.submit(20)
	close(s.ends[s.next(1)])
	close(s.ends[many])
	s.callers.Wait()
}

// A caller that sets no limit learns how its transaction ended, however long that takes: one
// that repeats its item while it runs would have it in two transactions.
func TestWithoutALimitTheEndOfTheTransactionIsKnown(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}), make(chan struct{})
	b := db.NewBatcher(dbtest.SQLite(t), db.BatchOptions[int, int]{Size: 4, Queue: 4},
		func(_ context.Context, _ db.Tx, items []int) ([]int, error) {
			close(begun)
			<-end
			return items, nil
		})
	defer b.Close()
	time.AfterFunc(50*time.Millisecond, func() { <-begun; close(end) })
	if out, err := b.Do(t.Context(), 7); err != nil || out != 7 {
		t.Errorf("%d, %v, want the item's result", out, err)
	}
}
