package breaker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Sample is one attempt's result with the generation under which it began.
type Sample struct {
	MerchantID int64
	Generation int64
	Result     Result
}

// Folded is what a batch of results did to the breakers. It becomes this node's
// copy when the transaction has committed.
type Folded struct {
	rows    []*Row
	Changes []*Change
}

// Fold adds a batch of results to the breakers, in the transaction that writes
// them. Batches without a failure, about merchants that are well, cost no query.
// Rows are locked in the order of their ids, after all other rows of the
// transaction.
func (b *Cache) Fold(ctx context.Context, tx db.Tx, samples []Sample) (*Folded, error) {
	of := b.telling(samples)
	if len(of) == 0 {
		return &Folded{}, nil
	}
	ids := make([]int64, 0, len(of))
	for id := range of {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	rows, err := b.lock(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	f := &Folded{rows: rows}
	now := b.db.Now()
	for _, r := range rows {
		p := b.policy(r.MerchantID)
		if t := b.take(r.MerchantID); r.State == Closed && now-t.from <= p.Window.Microseconds() {
			r.roll(now, p)
			r.WindowOK += t.n
		}
		for _, s := range of[r.MerchantID] {
			if c := r.fold(now, s.Generation, s.Result, p); c != nil {
				f.Changes = append(f.Changes, c)
			}
		}
		r.UpdatedAt = now
	}
	return f, b.write(ctx, tx, f)
}

// Committed makes the result of a committed Fold this node's copy.
func (b *Cache) Committed(f *Folded) { b.keep(f.rows) }

// telling groups the samples that a breaker must hear of by merchant.
func (b *Cache) telling(samples []Sample) map[int64][]Sample {
	of := map[int64][]Sample{}
	bad := map[int64]bool{}
	for _, s := range samples {
		of[s.MerchantID] = append(of[s.MerchantID], s)
		bad[s.MerchantID] = bad[s.MerchantID] || s.Result == Failed
	}
	now := b.db.Now()
	for id, list := range of {
		if bad[id] {
			continue
		}
		taken := int64(0)
		for _, s := range list {
			if s.Result == Taken {
				taken++
			}
		}
		if b.well(id, taken, now) {
			delete(of, id)
		}
	}
	return of
}

// lock reads the rows of the merchants, made where they are missing, for change.
func (b *Cache) lock(ctx context.Context, tx db.Tx, ids []int64) ([]*Row, error) {
	now := b.db.Now()
	fresh := make([]Row, len(ids))
	for i, id := range ids {
		fresh[i] = Row{MerchantID: id, State: Closed, UpdatedAt: now}
	}
	if _, err := tx.NewInsert().Model(&fresh).On("CONFLICT (merchant_id) DO NOTHING").Exec(ctx); err != nil {
		return nil, fmt.Errorf("make breakers: %w", err)
	}
	q := tx.NewSelect().Model((*Row)(nil)).ColumnExpr("b.*").ColumnExpr(probeDelivery).Where("b.merchant_id IN (?)", bun.List(ids)).OrderExpr("b.merchant_id")
	if b.db.IsPostgres() {
		q = q.For("UPDATE")
	}
	var rows []*Row
	if err := q.Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("lock breakers: %w", err)
	}
	return rows, nil
}

// probeDelivery reads what a person wants to be the probe of a row b.
const probeDelivery = "coalesce((SELECT p.delivery_id FROM breaker_probes AS p WHERE p.merchant_id = b.merchant_id AND p.generation = b.generation), 0) AS probe_delivery"

// Read reads a merchant's breaker as it is stored; nil where it never failed.
func Read(ctx context.Context, q bun.IDB, merchantID int64) (*Row, error) {
	rows, err := ReadAll(ctx, q, []int64{merchantID})
	return rows[merchantID], err
}

// ReadAll reads merchants' breakers as they are stored, by merchant; one that never
// failed has none.
func ReadAll(ctx context.Context, q bun.IDB, merchants []int64) (map[int64]*Row, error) {
	if len(merchants) == 0 {
		return nil, nil
	}
	var rows []*Row
	err := q.NewSelect().Model(&rows).ColumnExpr("b.*").ColumnExpr(probeDelivery).Where("b.merchant_id IN (?)", bun.List(merchants)).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read breakers: %w", err)
	}
	of := make(map[int64]*Row, len(rows))
	for _, r := range rows {
		of[r.MerchantID] = r
	}
	return of, nil
}

// write stores the rows and the history of their changes.
func (b *Cache) write(ctx context.Context, tx db.Tx, f *Folded) error {
	w := tx.Writes()
	for _, r := range f.rows {
		w.Add(tx.NewUpdate().Model(r).WherePK())
	}
	for _, c := range f.Changes {
		c.ID = b.db.NewID()
		if c.To == HalfOpen || c.From == HalfOpen && c.To == Open {
			c.AlertedAt = &c.At // neither a probe nor its failure is news: it was open all the time
		}
	}
	if len(f.Changes) > 0 {
		w.Add(tx.NewInsert().Model(&f.Changes))
	}
	if err := w.Exec(ctx); err != nil {
		return fmt.Errorf("write breakers: %w", err)
	}
	return nil
}

// probeMargin is added to an attempt's longest time: a probe's result is written
// before anybody else may probe.
const probeMargin = 5 * time.Second

// LeaseProbe asks for the right to try one notification of a merchant whose
// breaker has been open for long enough. One node gets it; it may send one, and
// has to within the attempt's timeout.
func (b *Cache) LeaseProbe(ctx context.Context, merchantID int64, timeout time.Duration) (bool, error) {
	return b.change(ctx, merchantID, func(r *Row, now int64) *Change {
		if !r.Gate(now, 0).Due {
			return nil
		}
		c := r.move(now, HalfOpen, ProbeDue, b.policy(merchantID))
		r.ProbeOwner, r.ProbeUntil = b.db.Boot(), now+(timeout+probeMargin).Microseconds()
		return c
	})
}

// change locks one row, lets f change it and keeps what it did; false where f
// found nothing to do.
func (b *Cache) change(ctx context.Context, merchantID int64, f func(r *Row, now int64) *Change) (bool, error) {
	var done *Folded
	err := b.db.Tx(ctx, func(ctx context.Context, tx db.Tx) (err error) {
		done, err = b.changeIn(ctx, tx, merchantID, f)
		return err
	})
	if err != nil {
		return false, err
	}
	b.Committed(done)
	return len(done.Changes) > 0, nil
}

func (b *Cache) changeIn(ctx context.Context, tx db.Tx, merchantID int64, f func(r *Row, now int64) *Change) (*Folded, error) {
	rows, err := b.lock(ctx, tx, []int64{merchantID})
	if err != nil {
		return nil, err
	}
	now := b.db.Now()
	r := rows[0]
	r.UpdatedAt = now
	done := &Folded{rows: rows}
	if c := f(r, now); c != nil {
		done.Changes = []*Change{c}
	}
	return done, b.write(ctx, tx, done)
}
