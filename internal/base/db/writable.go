package db

import (
	"context"
	"sync/atomic"
)

// Writable checks for /readyz that the database takes writes. It writes nothing, unless one of
// the program's own writes found the disk full (hasRoom).
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
			return ErrReadOnly
		}
		return nil
	})
}

// room counts writes that found the disk full. With a full disk, transactions still begin and
// reads succeed; only a write fails. So the program's own writes are watched, and no probe is
// written until one of them has failed.
type room struct {
	full    atomic.Int64 // writes that found the disk full
	cleared atomic.Int64 // the value of full before the last probe that succeeded
}

// noteEnd records the result of a write.
func (r *room) noteEnd(err error) {
	if err != nil && IsFull(err) {
		r.full.Add(1)
	}
}

// The probe is about as large as a batch of callbacks: a disk that has room for a single row
// only is as good as full.
const (
	probeRows = 64
	probeRow  = 1000 // bytes; PostgreSQL's index takes no more than 2,700
)

// hasRoom probes the disk after a write found it full: it writes rows into form_keys and
// deletes them again. Their negative time, different for each process, distinguishes them from
// real keys and from the probes of other nodes.
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
