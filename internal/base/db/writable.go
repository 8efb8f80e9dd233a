package db

import (
	"context"
	"sync/atomic"
)

// Writable checks for readiness that the database takes writes. It writes nothing, unless
// one of the program's own writes found the disk full (hasRoom).
func (d *DB) Writable(ctx context.Context) error {
	if err := d.hasRoom(ctx); err != nil {
		return err
	}
	return d.Tx(ctx, func(ctx context.Context, tx Tx) error {
		if !d.IsPostgres() {
			return nil // BEGIN has taken the lock for writing
		}
		var readOnly string
		if err := tx.NewRaw("SHOW transaction_read_only").Scan(ctx, &readOnly); err != nil {
			return err
		}
		if readOnly != "off" {
			return errReadOnly
		}
		return nil
	})
}

// room counts writes that found the disk full. Such a disk still begins transactions and
// answers reads, and only a write finds out. So the program's own writes are watched, and
// nothing is written as a probe until one has failed.
type room struct {
	full    atomic.Int64 // writes that found no room
	cleared atomic.Int64 // the value of full before the last probe that found some
}

// noteEnd takes the result of a write.
func (r *room) noteEnd(err error) {
	if err != nil && IsFull(err) {
		r.full.Add(1)
	}
}

// The probe is about as large as a batch of callbacks: a disk with room for a single row
// is as good as full.
const (
	probeRows = 64
	probeRow  = 1000 // bytes; PostgreSQL's index takes no more than 2,700
)

// hasRoom probes for room after a write found none: it writes rows into form_keys and
// deletes them again. Their negative time, one for each process, separates them from real
// keys and from those of other nodes.
func (d *DB) hasRoom(ctx context.Context) error {
	full := d.room.full.Load()
	if full == d.room.cleared.Load() {
		return nil
	}
	at := -1 - d.ids.slot.Load()
	// Two transactions: SQLite never writes rows that one transaction adds and deletes.
	err := d.inTx(ctx, func(ctx context.Context, tx Tx) error {
		_, err := tx.NewRaw(d.probeQuery(), at).Exec(ctx)
		return err
	})
	if err == nil {
		_, err = d.NewRaw("DELETE FROM form_keys WHERE at = ?", at).Exec(ctx)
	}
	if err == nil {
		d.room.cleared.Store(full)
	}
	return err
}
