package access

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/seal"
)

// devicesKept is how long a device that is not used is remembered, as long as a browser keeps the
// proof of a sign-in.
const devicesKept = 365 * 24 * time.Hour

// NoteDevice remembers from what an operator has signed in: browser and system by the User-Agent, and
// the block of addresses. known says that the browser proves earlier sign-ins itself. It
// returns the device's name, and whether the operator has used others only.
func (s *Sessions) NoteDevice(ctx context.Context, tx db.Tx, operator int64, addr netip.Addr, userAgent string, known bool) (
	device string, isNew bool, err error,
) {
	var row struct{ Others, Same int }
	now, key := s.db.Now(), seal.HashToken(DeviceOf(userAgent)+" "+blockOf(addr))
	err = tx.NewRaw("SELECT count(*) AS others, count(CASE WHEN device = ? THEN 1 END) AS same FROM operator_devices WHERE operator_id = ?", key,
		operator).Scan(ctx, &row)
	if err != nil {
		return "", false, fmt.Errorf("read an operator's devices: %w", err)
	}
	if _, err := tx.NewRaw("INSERT INTO operator_devices (operator_id, device, seen_at) VALUES (?, ?, ?)"+
		" ON CONFLICT (operator_id, device) DO UPDATE SET seen_at = EXCLUDED.seen_at", operator, key, now).Exec(ctx); err != nil {
		return "", false, fmt.Errorf("remember a device: %w", err)
	}
	if _, err := tx.NewRaw("DELETE FROM operator_devices WHERE operator_id = ? AND seen_at < ?", operator,
		now-devicesKept.Microseconds()).Exec(ctx); err != nil {
		return "", false, fmt.Errorf("forget unused devices: %w", err)
	}
	return DeviceOf(userAgent), !known && row.Same == 0 && row.Others > 0, nil
}

// blockOf returns the network in which an address changes from day to day.
func blockOf(addr netip.Addr) string {
	bits := 24
	if addr.Is6() && !addr.Is4In6() {
		bits = 48
	}
	block, err := addr.Unmap().Prefix(bits)
	if err != nil {
		return ""
	}
	return block.String()
}
