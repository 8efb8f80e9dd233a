package breaker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/recipient"

	"github.com/uptrace/bun"
)

// Sample is the result of an attempt with the generation under which the attempt began.
type Sample struct {
	Recipient  recipient.Recipient
	Generation int64
	Result     Result
}

// Folded is what a batch of results did to the breakers. Committed copies it into this node's
// copy after the transaction.
type Folded struct {
	rows    []*Row
	Changes []*Change
}

// Fold adds a batch of results to the breakers, in the transaction that writes the results. A
// batch of successes of healthy recipients costs no query. Rows are locked by id, after all
// other rows of the transaction.
func (b *Cache) Fold(ctx context.Context, tx db.Tx, samples []Sample) (*Folded, error) {
	of := b.relevant(samples)
	if len(of) == 0 {
		return &Folded{}, nil
	}
	owners := make([]recipient.Recipient, 0, len(of))
	for _, id := range slices.Sorted(maps.Keys(of)) {
		owners = append(owners, of[id][0].Recipient)
	}
	rows, err := b.lock(ctx, tx, owners...)
	if err != nil {
		return nil, err
	}
	f := &Folded{rows: rows}
	now := b.db.Now()
	for _, r := range rows {
		own := of[r.OwnerID]
		to := own[0].Recipient
		p := b.policy(to)
		if t := b.takeCount(to); r.State == Closed && !b.isOver(t, to, now) {
			r.roll(now, p)
			r.WindowOK += t.n
		}
		for _, s := range own {
			if c := r.fold(now, s.Generation, s.Result, p); c != nil {
				f.Changes = append(f.Changes, c)
			}
		}
		r.UpdatedAt = now
	}
	return f, b.write(ctx, tx, f)
}

// Committed copies the changes of a committed transaction into this node's copy.
func (b *Cache) Committed(f *Folded) { b.keep(f.rows) }

// relevant groups the samples that change a breaker's row by owner id.
func (b *Cache) relevant(samples []Sample) map[int64][]Sample {
	of := map[int64][]Sample{}
	for _, s := range samples {
		of[s.Recipient.ID] = append(of[s.Recipient.ID], s)
	}
	now := b.db.Now()
	maps.DeleteFunc(of, func(_ int64, own []Sample) bool {
		n := map[Result]int64{}
		for _, s := range own {
			n[s.Result]++
		}
		return n[Failed] == 0 && b.count(own[0].Recipient, n[Succeeded], now)
	})
	return of
}

// lock reads the rows of owners for update, by id, and creates missing ones.
func (b *Cache) lock(ctx context.Context, tx db.Tx, owners ...recipient.Recipient) ([]*Row, error) {
	now := b.db.Now()
	fresh, ids := make([]Row, len(owners)), make([]int64, len(owners))
	for i, of := range owners {
		fresh[i] = Row{OwnerID: of.ID, OwnerKind: of.Kind, State: Closed, UpdatedAt: now}
		ids[i] = of.ID
	}
	if _, err := tx.NewInsert().Model(&fresh).On("CONFLICT (owner_id) DO NOTHING").Exec(ctx); err != nil {
		return nil, fmt.Errorf("create breakers: %w", err)
	}
	var rows []*Row
	q := tx.NewSelect().Model(&rows).ColumnExpr("b.*").ColumnExpr(probeDelivery).Where("b.owner_id IN (?)",
		bun.List(ids)).OrderExpr("b.owner_id")
	if err := b.db.ForUpdate(q).Scan(ctx); err != nil {
		return nil, fmt.Errorf("lock breakers: %w", err)
	}
	return rows, nil
}

// probeDelivery reads which delivery an operator chose as the probe of a row b.
const probeDelivery = "coalesce((SELECT p.delivery_id FROM breaker_probes AS p WHERE p.owner_id = b.owner_id AND p.generation = b.generation), 0) AS probe_delivery"

// Read reads a recipient's stored breaker; nil = no attempt has ever failed.
func Read(ctx context.Context, q bun.IDB, to recipient.Recipient) (*Row, error) {
	rows, err := ReadAll(ctx, q, []recipient.Recipient{to})
	return rows[to.ID], err
}

// ReadAll reads recipients' stored breakers by owner id; recipients without a failed attempt
// have none.
func ReadAll(ctx context.Context, q bun.IDB, all []recipient.Recipient) (map[int64]*Row, error) {
	if len(all) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(all))
	for i, to := range all {
		ids[i] = to.ID
	}
	var rows []*Row
	err := q.NewSelect().Model(&rows).ColumnExpr("b.*").ColumnExpr(probeDelivery).Where("b.owner_id IN (?)", bun.List(ids)).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read breakers: %w", err)
	}
	of := make(map[int64]*Row, len(rows))
	for _, r := range rows {
		if slices.Contains(all, recipient.Recipient{Kind: r.OwnerKind, ID: r.OwnerID}) {
			of[r.OwnerID] = r
		}
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
			c.AlertedAt = &c.At // no alert for a probe or its failure: the breaker was open all the time
		}
		if c.To == Closed && b.Closes != nil {
			b.Closes(w, c)
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

// probeMargin is added to the longest time of an attempt, so that a probe's result is written
// before the next probe may be leased.
const probeMargin = 5 * time.Second

// LeaseProbe leases the probe of a breaker that has been open long enough; false = another node
// has it, or it is too early. The node may then send one notification, within the attempt's
// timeout.
func (b *Cache) LeaseProbe(ctx context.Context, to recipient.Recipient, timeout time.Duration) (bool, error) {
	var done *Folded
	err := b.db.Tx(ctx, func(ctx context.Context, tx db.Tx) (err error) {
		done, err = b.changeIn(ctx, tx, to, func(r *Row, now int64) *Change {
			if !r.Gate(now, 0).Due {
				return nil
			}
			c := r.move(now, HalfOpen, ProbeDue, b.policy(to))
			r.ProbeOwner, r.ProbeUntil = b.db.Boot(), now+(timeout+probeMargin).Microseconds()
			return c
		})
		return err
	})
	if err != nil {
		return false, err
	}
	b.Committed(done)
	return len(done.Changes) > 0, nil
}

// changeIn locks one row and writes the change that f makes to it; f returns nil for no change.
func (b *Cache) changeIn(ctx context.Context, tx db.Tx, to recipient.Recipient, f func(r *Row, now int64) *Change) (*Folded, error) {
	rows, err := b.lock(ctx, tx, to)
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
