package audit

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"backstop/internal/base/db"
)

// Rows of versions without a key have plain hashes: anyone with access to the table could
// rebuild the chain. The first row with a key ends that: it covers the last row without one, so
// that none of them can be changed unnoticed any more.

// sealedAction is the action of the row that seals rows without a key.
const sealedAction = "audit.sealed"

// upgradeTime is how long after the first seal rows without a key may still come from an older
// version running beside this one; those are sealed too. Later ones never are, nor those in a
// chain that began with a key, or acts could be forged with access to the table.
const upgradeTime = 24 * time.Hour

// unkeyed reports whether it is a row without a key.
func (r *Row) unkeyed() bool { return r.Number > 0 && r.KeyID == "" }

// Seal seals rows without a key at program start and returns the number of the last row sealed;
// 0 = none.
func (l *Log) Seal(ctx context.Context) (number int64, err error) {
	err = l.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		number = 0
		end, err := l.end(ctx, tx)
		if err != nil || !end.unkeyed() {
			return err
		}
		seal, err := l.sealIfOurs(ctx, tx, end)
		if err == nil && seal != end {
			number = end.Number
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("seal the audit: %w", err)
	}
	l.sealed.Store(true)
	return number, nil
}

// sealIfOurs appends a row that covers the rows without a key if a version without keys wrote
// them; otherwise it leaves them for Verify to report. It returns the end of the chain.
func (l *Log) sealIfOurs(ctx context.Context, tx db.Tx, end *Row) (*Row, error) {
	ours, err := l.ours(ctx, tx)
	if err != nil || !ours {
		return end, err
	}
	return l.add(ctx, tx, end, Act{
		Actor: Command(), Action: sealedAction, Object: "audit", ObjectID: strconv.FormatInt(end.Number, 10),
		Params: map[string]any{"number": end.Number, "hash": end.Hash},
	})
}

func (l *Log) ours(ctx context.Context, tx db.Tx) (bool, error) {
	var first []Row
	err := tx.NewSelect().Model(&first).Where("au.key_id <> ''").OrderExpr("au.number").Limit(1).Scan(ctx)
	if err != nil {
		return false, fmt.Errorf("read the first audit row with a key: %w", err)
	}
	if len(first) == 0 {
		return !l.sealed.Load(), nil
	}
	var before []string
	if err := tx.NewRaw("SELECT hash FROM audit WHERE number < ? ORDER BY number DESC LIMIT 1", first[0].Number).Scan(ctx,
		&before); err != nil {
		return false, fmt.Errorf("read the audit row before the first key: %w", err)
	}
	hash, _ := l.chain(&first[0], append(before, "")[0])
	return hash == first[0].Hash && first[0].Action == sealedAction && l.db.Now()-first[0].At < upgradeTime.Microseconds(), nil
}
