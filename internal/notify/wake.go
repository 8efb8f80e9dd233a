package notify

import (
	"context"
	"fmt"

	"backstop/internal/base/db"
)

// maxWake bounds how many waiting notifications one connection makes due; the others keep their
// due time, or wait for the next connection.
const maxWake = 1000

// Wake makes a merchant's notifications due that wait only because it was not connected, and
// returns how many. Those that wait for another reason keep their due time.
func Wake(ctx context.Context, d *db.DB, merchantID int64) (int64, error) {
	now := d.Now()
	res, err := d.NewRaw("UPDATE deliveries SET next_at = ? WHERE id IN (SELECT id FROM deliveries WHERE recipient_id = ? AND next_at > ?"+
		" AND status = ? AND last_class = ? ORDER BY next_at LIMIT ?) AND status = ?",
		now, merchantID, now, RetryWait, NotConnected, maxWake, RetryWait).Exec(ctx)
	if err != nil {
		return 0, fmt.Errorf("wake a merchant's notifications: %w", err)
	}
	return res.RowsAffected()
}
