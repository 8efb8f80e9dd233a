package breaker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/metric"
	"backstop/internal/recipient"
)

// Act is what an operator can do to a breaker.
type Act string

// Acts of operators.
const (
	// OpenIt parks everything until an operator closes it.
	OpenIt Act = "open"
	// CloseIt releases notifications again, slowly at first.
	CloseIt Act = "close"
	// ProbeIt makes the next notification a probe, now.
	ProbeIt Act = "probe"
)

// ErrProbing means that another probe is under way.
var ErrProbing = errors.New("a probe is under way: wait for its result")

// ErrAlready means that the breaker is already in the requested state.
var ErrAlready = errors.New("the breaker is in that state already")

// ByOperator carries out an operator's act, in the transaction that also writes the audit
// row. Errors: ErrAlready.
func (b *Cache) ByOperator(ctx context.Context, tx db.Tx, to recipient.Recipient, act Act, actor, reason string) error {
	p := b.policy(to)
	done, err := b.changeIn(ctx, tx, to, func(r *Row, now int64) (c *Change) {
		switch {
		case act == OpenIt && !(r.State == Open && r.ByHand):
			c = r.move(now, Open, ByHand, p)
			r.ByHand, r.OpenUntil = true, 0
		case act == CloseIt && r.State != Closed:
			c = r.move(now, Closed, ByHand, p)
		case act == ProbeIt && r.State == Open:
			c = r.move(now, Open, ByHand, p)
			r.OpenUntil = now
		default:
			return nil
		}
		c.Actor, c.Reason = actor, reason
		return c
	})
	if err == nil && len(done.Changes) == 0 {
		err = ErrAlready
	}
	if err == nil {
		b.keepAtEnd(tx, done)
	}
	return err
}

// keepAtEnd copies an operator's change into this node's copy once it is committed.
func (b *Cache) keepAtEnd(tx db.Tx, f *Folded) {
	tx.OnEnd(func(err error) {
		if err != nil {
			return
		}
		b.Committed(f)
		for _, c := range f.Changes {
			metric.BreakerChanges.WithLabelValues(string(c.To)).Inc()
		}
	})
}

// probeTime is the lease of a probe with a chosen delivery: nodes find the delivery within two
// seconds, and an attempt takes at most ten. After that, because the node may have crashed, any
// node may probe with any delivery.
const probeTime = 30 * time.Second

// ProbeWith leases the probe of an open breaker for one delivery, to be sent by the node that
// claims it, in the transaction that makes the delivery due. Errors: ErrProbing, and ErrAlready
// if the breaker has closed.
func (b *Cache) ProbeWith(ctx context.Context, tx db.Tx, to recipient.Recipient, deliveryID int64, actor, reason string) error {
	var refused error
	done, err := b.changeIn(ctx, tx, to, func(r *Row, now int64) *Change {
		switch {
		case r.State == Closed:
			refused = ErrAlready
			return nil
		case r.State == HalfOpen && r.ProbeUntil > now:
			refused = ErrProbing
			return nil
		}
		c := r.move(now, HalfOpen, ByHand, b.policy(to))
		r.ProbeUntil, r.ProbeDelivery = now+probeTime.Microseconds(), deliveryID
		c.Actor, c.Reason = actor, reason
		return c
	})
	if err = errors.Join(refused, err); err != nil {
		return err
	}
	_, err = tx.NewRaw("INSERT INTO breaker_probes (owner_id, generation, delivery_id) VALUES (?, ?, ?)"+
		" ON CONFLICT (owner_id) DO UPDATE SET generation = EXCLUDED.generation, delivery_id = EXCLUDED.delivery_id",
		to.ID, done.rows[0].Generation, deliveryID).Exec(ctx)
	if err != nil {
		return fmt.Errorf("lease a probe: %w", err)
	}
	b.keepAtEnd(tx, done)
	return nil
}

// maxUnalerted bounds the changes of one call.
const maxUnalerted = 1000

// TakeUnalerted returns changes that have no alert yet and marks them in the same transaction,
// so that each is returned once.
func TakeUnalerted(ctx context.Context, tx db.Tx, d *db.DB) ([]Change, error) {
	var all []Change
	err := tx.NewRaw("UPDATE breaker_history SET alerted_at = ? WHERE alerted_at IS NULL AND id IN"+
		" (SELECT id FROM breaker_history WHERE alerted_at IS NULL ORDER BY id LIMIT ?) RETURNING *", d.Now(), maxUnalerted).Scan(ctx, &all)
	if err != nil {
		return nil, fmt.Errorf("mark breaker changes as alerted: %w", err)
	}
	return all, nil
}

// Tripped returns the owners of all breakers that are not closed.
func Tripped(ctx context.Context, d *db.DB) (all []recipient.Recipient, err error) {
	var rows []Row
	if err := d.Read.NewSelect().Model(&rows).Column("owner_id", "owner_kind").Where("b.state <> ?",
		Closed).OrderExpr("b.owner_id").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the open breakers: %w", err)
	}
	for _, r := range rows {
		all = append(all, r.Owner())
	}
	return all, nil
}

// History reads the newest changes of a recipient's breaker, newest first.
func History(ctx context.Context, d *db.DB, to recipient.Recipient, limit int) ([]Change, error) {
	var all []Change
	err := d.Read.NewSelect().Model(&all).Where("bh.owner_id = ?", to.ID).OrderExpr("bh.id DESC").Limit(int64(limit)).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the breaker's history: %w", err)
	}
	return all, nil
}

// Opening reads the change that last opened a recipient's breaker; nil = no longer stored.
// Failed probes do not count: the breaker was open all the time.
func Opening(ctx context.Context, d *db.DB, to recipient.Recipient) (*Change, error) {
	var c []Change
	err := d.Read.NewSelect().Model(&c).Where("bh.owner_id = ?", to.ID).
		Where("bh.to_state = ?", Open).Where("bh.from_state <> ?", HalfOpen).OrderExpr("bh.id DESC").Limit(1).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read when the breaker opened: %w", err)
	}
	if len(c) == 0 {
		return nil, nil
	}
	return &c[0], nil
}

// List reads the recipients' breakers that have ever been written, by owner id; only ids above
// after (0 = from the first).
func List(ctx context.Context, d *db.DB, after int64, limit int) ([]Row, error) {
	var rows []Row
	err := d.Read.NewSelect().Model(&rows).Where("b.owner_id > ?",
		after).Where(ofRecipients).OrderExpr("b.owner_id").Limit(int64(limit)).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("list breakers: %w", err)
	}
	return rows, nil
}
