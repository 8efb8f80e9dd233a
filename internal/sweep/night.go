package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"backstop/internal/base/calendar"
	"backstop/internal/base/db"
)

// Plan says when the nightly sweep begins.
type Plan struct {
	Hour, Minute int
	Zone         *time.Location
	Days         int // how far it looks back
}

const (
	// grace is how much later than planned a nightly sweep may begin: nodes check once a
	// minute, and their clocks differ by seconds.
	grace = 90 * time.Second
	// maxMissed bounds how many missed nights are recorded at once.
	maxMissed = 31
	// nightName is the setting with the last night that was handled.
	nightName = "sweep_night"
)

// Clock is the initiator of nightly sweeps.
const Clock = "clock"

// last returns the last time at which a nightly sweep should have begun.
func (p Plan) last(now time.Time) time.Time {
	now = now.In(p.Zone)
	at := p.on(now, 0)
	if at.After(now) {
		at = p.on(now, -1)
	}
	return at
}

// Next returns the first planned moment after one.
func (p Plan) Next(after time.Time) time.Time {
	after = after.In(p.Zone)
	at := p.on(after, 0)
	for days := 1; !at.After(after); days++ {
		at = p.on(after, days)
	}
	return at
}

// on returns the planned moment of the day of t, or of one so many days later.
func (p Plan) on(t time.Time, days int) time.Time { return calendar.At(t, days, p.Hour, p.Minute, 0) }

// Number returns a day as stored for nights: 20261123.
func Number(at time.Time) int64 {
	return int64(at.Year()*10_000 + int(at.Month())*100 + at.Day())
}

// Night starts the sweep of the last night, unless it was already started, and reports whether
// it did. A night during which no node was running is recorded as missed and made up for now,
// once, however many were missed. A new installation begins with its next night.
func (p Plan) Night(ctx context.Context, d *db.DB) (begun bool, err error) {
	at := p.last(d.NowTime())
	var seen []int64
	if err := d.Read.NewRaw("SELECT value FROM settings WHERE name = ?", nightName).Scan(ctx, &seen); err != nil {
		return false, fmt.Errorf("read which night was swept: %w", err)
	}
	if len(seen) == 0 {
		_, err := d.NewRaw("INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING", nightName,
			Number(at)).Exec(ctx)
		if err != nil {
			return false, fmt.Errorf("note the first night: %w", err)
		}
		return false, nil
	}
	if seen[0] >= Number(at) {
		return false, nil
	}
	err = d.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		// Of several nodes only one still finds the previous night.
		res, err := tx.NewRaw("UPDATE settings SET value = ? WHERE name = ? AND value = ?", Number(at), nightName, seen[0]).Exec(ctx)
		if err != nil {
			return fmt.Errorf("note the night: %w", err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return err
		}
		begun = true
		r := Request{Days: p.Days, By: Clock, Night: Number(at)}
		if d.NowTime().Sub(at) > grace {
			if err := p.missed(ctx, tx, d, seen[0], at); err != nil {
				return err
			}
			r.Night, r.Reason = 0, fmt.Sprintf("makes up for the night of %s", at.Format(time.DateOnly))
		}
		_, err = Begin(ctx, tx, d, r)
		if errors.Is(err, ErrRunning) { // the running sweep covers this night
			_, err = tx.NewRaw("UPDATE sweeps SET night = ? WHERE state = ? AND night = 0", r.Night, Running).Exec(ctx)
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("begin the sweep of the night: %w", err)
	}
	return begun, nil
}

// missed records the nights after seen, up to and including the one at a time.
func (p Plan) missed(ctx context.Context, tx db.Tx, d *db.DB, seen int64, at time.Time) error {
	var rows []*Sweep
	for night := at; Number(night) > seen && len(rows) < maxMissed; night = p.on(night, -1) {
		s := newSweep(night.UnixMicro(), Request{Days: p.Days, By: Clock, Night: Number(night)})
		s.ID, s.State = d.NewID(), Missed
		rows = append(rows, s)
	}
	if _, err := tx.NewInsert().Model(&rows).Exec(ctx); err != nil {
		return fmt.Errorf("note the nights that were missed: %w", err)
	}
	return nil
}
