package stock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/stock"
)

// shelf is articles of one database and orders that want them.
type shelf struct {
	t *testing.T
	d *db.DB
}

// has declares an article.
func (s shelf) has(id int64, sku string, n int64) {
	s.t.Helper()
	if _, err := s.d.NewRaw("INSERT INTO skus (id, sku, stock, applied) VALUES (?0, ?1, ?2, ?2)", id, sku,
		n).Exec(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// article is the state of an article: its stock, how much of it is reserved, and how much was
// sold.
type article struct{ Stock, Locked, Sold int64 }

func (s shelf) want(sku string, want article) {
	s.t.Helper()
	var got article
	if err := s.d.NewRaw("SELECT stock, locked, sold FROM skus WHERE sku = ?", sku).Scan(s.t.Context(), &got); err != nil {
		s.t.Fatal(err)
	}
	if got != want {
		s.t.Errorf("%s is %+v, want %+v", sku, got, want)
	}
}

// tx runs a transaction, again as often as it loses against another one: nothing of it happened.
func (s shelf) tx(do func(context.Context, db.Tx) error) error {
	for {
		if err := s.d.Tx(s.t.Context(), do); !db.IsConflict(err) {
			return err
		}
	}
}

// reserve gives stock to orders in one transaction and writes their items down, as the code
// that creates orders does. It returns their ids, 0 for one that got nothing.
func (s shelf) reserve(wants ...[]stock.Line) (ids []int64, refused []error, err error) {
	err = s.tx(func(ctx context.Context, tx db.Tx) error {
		got, errs, err := stock.Reserve(ctx, tx, s.d, wants)
		if err != nil {
			return err
		}
		ids, refused = make([]int64, len(wants)), errs
		for i := range wants {
			if errs[i] != nil {
				if len(got[i]) != 0 {
					s.t.Errorf("the buyer with the result %v has %v", errs[i], got[i])
				}
				continue
			}
			ids[i] = s.d.NewID()
			for sku, n := range got[i] {
				if _, err := tx.NewRaw("INSERT INTO order_items (order_id, sku_id, quantity) VALUES (?, ?, ?)", ids[i], sku,
					n).Exec(ctx); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return ids, refused, err
}

// reserved is reserve where every order must get what it requests.
func (s shelf) reserved(wants ...[]stock.Line) []int64 {
	s.t.Helper()
	ids, refused, err := s.reserve(wants...)
	if err = errors.Join(append(refused, err)...); err != nil {
		s.t.Fatal(err)
	}
	return ids
}

func (s shelf) deduct(ids ...int64) error {
	return s.tx(func(ctx context.Context, tx db.Tx) error { return stock.Deduct(ctx, tx, s.d, ids) })
}

func (s shelf) release(ids ...int64) error {
	return s.tx(func(ctx context.Context, tx db.Tx) error { return stock.Release(ctx, tx, s.d, ids) })
}

func each(t *testing.T, test func(t *testing.T, s shelf)) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) { test(t, shelf{t, d}) })
}

func line(sku string, n int64) stock.Line { return stock.Line{SKU: sku, Quantity: n} }

func TestWhatIsReservedIsSoldOrGivenBack(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s shelf) {
		s.has(1, "tea", 10)
		s.has(2, "cup", 5)
		ids := s.reserved([]stock.Line{line("tea", 3), line("cup", 1)}, []stock.Line{line("tea", 4)})
		s.want("tea", article{10, 7, 0})
		s.want("cup", article{5, 1, 0})
		if err := s.deduct(ids[0]); err != nil {
			t.Fatal(err)
		}
		s.want("tea", article{7, 4, 3})
		s.want("cup", article{4, 0, 1})
		if err := s.release(ids[1]); err != nil {
			t.Fatal(err)
		}
		s.want("tea", article{7, 0, 3})
		s.want("cup", article{4, 0, 1})
	})
}

// Orders of one batch that share an article change it by the sum of what they have.
func TestOrdersThatAreSettledTogetherCountEachForItself(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s shelf) {
		s.has(1, "tea", 10)
		s.has(2, "cup", 10)
		ids := s.reserved([]stock.Line{line("tea", 1)}, []stock.Line{line("tea", 2), line("cup", 5)}, []stock.Line{line("tea", 3)},
			[]stock.Line{line("tea", 4)})
		if err := s.deduct(ids[0], ids[1]); err != nil {
			t.Fatal(err)
		}
		if err := s.release(ids[2], ids[3]); err != nil {
			t.Fatal(err)
		}
		s.want("tea", article{7, 0, 3})
		s.want("cup", article{5, 0, 5})
	})
}

func TestAnOrderGetsAllItsArticlesOrNone(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s shelf) {
		s.has(1, "tea", 10)
		s.has(2, "cup", 1)
		_, refused, err := s.reserve(
			[]stock.Line{line("tea", 2), line("cup", 2)},
			[]stock.Line{line("tea", 2), line("none", 1)},
			[]stock.Line{line("tea", 10), line("cup", 1)},
		)
		if err != nil {
			t.Fatal(err)
		}
		if !errors.Is(refused[0], stock.ErrOutOfStock) || !strings.Contains(refused[0].Error(), "cup has 1 left") {
			t.Errorf("too many cups: %v", refused[0])
		}
		if !errors.Is(refused[1], stock.ErrUnknownSKU) || !strings.Contains(refused[1].Error(), `"none"`) {
			t.Errorf("an unknown article: %v", refused[1])
		}
		if refused[2] != nil { // what the others did not get is there for it
			t.Errorf("an order of the rest: %v", refused[2])
		}
		s.want("tea", article{10, 10, 0})
		s.want("cup", article{1, 1, 0})
	})
}

func TestWhoComesFirstInABatchIsServedFirst(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s shelf) {
		s.has(1, "tea", 5)
		_, refused, err := s.reserve([]stock.Line{line("tea", 3)}, []stock.Line{line("tea", 3)}, []stock.Line{line("tea", 2)},
			[]stock.Line{line("tea", 1)})
		if err != nil {
			t.Fatal(err)
		}
		for i, served := range []bool{true, false, true, false} {
			if served != (refused[i] == nil) || !served && !errors.Is(refused[i], stock.ErrOutOfStock) {
				t.Errorf("order %d: %v", i, refused[i])
			}
		}
		s.want("tea", article{5, 5, 0})
	})
}

func TestAnArticleOnTwoLinesOfAnOrderCountsTwice(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s shelf) {
		s.has(1, "tea", 5)
		if _, refused, err := s.reserve([]stock.Line{line("tea", 3), line("tea", 3)}); err != nil ||
			!errors.Is(refused[0], stock.ErrOutOfStock) {
			t.Errorf("two lines of 3 from 5: %v, %v", refused, err)
		}
		s.want("tea", article{5, 0, 0})
		if err := s.deduct(s.reserved([]stock.Line{line("tea", 3), line("tea", 2)})...); err != nil {
			t.Fatal(err)
		}
		s.want("tea", article{0, 0, 5})
	})
}

func TestWhatNobodyHasReservedChangesNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s shelf) {
		s.has(1, "tea", 5)
		ids := s.reserved(nil, []stock.Line{}) // orders without articles
		for _, err := range []error{s.deduct(), s.release(), s.deduct(ids...), s.release(ids...), s.deduct(404), s.release(404)} {
			if err != nil {
				t.Error(err)
			}
		}
		s.want("tea", article{5, 0, 0})
	})
}

// It is the order's status that ensures that an order is settled once. Reserving less than
// nothing, or selling what was not reserved, is refused by the table, whatever the caller.
func TestWhatIsSettledTwiceIsRefusedAndChangesNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s shelf) {
		s.has(1, "tea", 10)
		s.has(2, "cup", 10)
		ids := s.reserved([]stock.Line{line("tea", 3), line("cup", 1)}, []stock.Line{line("cup", 4)}, []stock.Line{line("tea", 2)})
		if err := s.release(ids[0]); err != nil {
			t.Fatal(err)
		}
		if err := s.deduct(ids[2]); err != nil {
			t.Fatal(err)
		}
		for name, err := range map[string]error{
			"release": s.release(ids[0]), "deduct": s.deduct(ids[0]), "deduct again": s.deduct(ids[2]),
			"release what is sold": s.release(ids[2]),
		} {
			if err == nil {
				t.Errorf("%s is accepted", name)
			}
		}
		s.want("tea", article{8, 0, 2})
		s.want("cup", article{10, 4, 0}) // nor is the part taken that would fit
	})
}

func TestWhatIsTakenBackWithItsTransactionIsNotReserved(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s shelf) {
		s.has(1, "tea", 1)
		back := errors.New("taken back")
		err := s.d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			_, refused, err := stock.Reserve(ctx, tx, s.d, [][]stock.Line{{line("tea", 1)}})
			return errors.Join(refused[0], err, back)
		})
		if !errors.Is(err, back) || errors.Is(err, stock.ErrOutOfStock) {
			t.Fatal(err)
		}
		s.want("tea", article{1, 0, 0})
		s.reserved([]stock.Line{line("tea", 1)})
	})
}

// A request that comes too late gets exactly that error.
func TestTheLastPiecesAreReservedOnceByAllWhoRaceForThem(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s shelf) {
		const pieces, buyers = 7, 32
		s.has(1, "tea", pieces)
		s.has(2, "cup", 1000)
		var mu sync.Mutex
		var won, late int64
		var wg sync.WaitGroup
		for range buyers {
			wg.Go(func() {
				_, refused, err := s.reserve([]stock.Line{line("cup", 1), line("tea", 1)})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil:
					t.Errorf("a buyer got %v", err)
				case refused[0] == nil:
					won++
				case errors.Is(refused[0], stock.ErrOutOfStock):
					late++
				default:
					t.Errorf("the late buyer got %v", refused[0])
				}
			})
		}
		wg.Wait()
		if won != pieces || late != buyers-pieces {
			t.Errorf("%d got one, %d were too late", won, late)
		}
		s.want("tea", article{pieces, pieces, 0})
		s.want("cup", article{1000, pieces, 0})
	})
}

// Each article has more demand than stock. Whatever happens, at any moment the stock and what
// was sold add up to all that ever came in.
func TestNothingIsLostOrSoldTwiceWhileManyReserveDeductAndRelease(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s shelf) {
		skus := []string{"a", "b", "c", "d"}
		for i, sku := range skus {
			s.has(int64(10-i), sku, 25) // the order of ids is not that of names
		}
		watched := s.watch(t)
		const workers, rounds = 8, 12
		var mu sync.Mutex
		sold, open, refusals := map[string]int64{}, map[string]int64{}, 0
		var wg sync.WaitGroup
		for worker := range workers {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(1, uint64(worker)))
				for range rounds {
					wants := make([][]stock.Line, 1+r.IntN(3))
					for i := range wants {
						for _, k := range r.Perm(len(skus))[:1+r.IntN(len(skus))] {
							wants[i] = append(wants[i], line(skus[k], 1+r.Int64N(3)))
						}
					}
					ids, refused, err := s.reserve(wants...)
					if err != nil {
						t.Errorf("reserve: %v", err)
						return
					}
					for i, lines := range wants {
						sum := open
						var err error
						switch end := r.IntN(4); {
						case refused[i] != nil:
							sum = nil
						case end == 0:
							sum, err = sold, s.deduct(ids[i])
						case end < 3:
							sum, err = nil, s.release(ids[i])
						}
						if err != nil {
							t.Errorf("settle: %v", err)
							return
						}
						mu.Lock()
						if refused[i] != nil {
							refusals++
						}
						for _, l := range lines {
							if sum != nil {
								sum[l.SKU] += l.Quantity
							}
						}
						mu.Unlock()
					}
				}
			})
		}
		wg.Wait()
		watched()
		for _, sku := range skus {
			s.want(sku, article{25 - sold[sku], open[sku], sold[sku]})
		}
		if refusals == 0 || len(sold) == 0 {
			t.Errorf("%d refused, %v sold: the race was for nothing", refusals, sold)
		}
	})
}

// watch looks at all articles again and again until the returned function is called.
func (s shelf) watch(t *testing.T) (end func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			var wrong []string
			err := s.d.Read.NewRaw("SELECT sku FROM skus WHERE stock + sold <> applied OR locked < 0 OR locked > stock").Scan(
				context.WithoutCancel(t.Context()), &wrong)
			if err != nil || len(wrong) > 0 {
				t.Errorf("the sums of %v are wrong, %v", wrong, err)
				return
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	return func() {
		close(stop)
		<-done
	}
}
