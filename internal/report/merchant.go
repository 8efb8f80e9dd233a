package report

import (
	"context"
	"fmt"
	"time"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// lastRow is when a recipient last confirmed and when an attempt at it last
// failed.
type lastRow struct {
	bun.BaseModel `bun:"table:report_recipients,alias:rl"`

	RecipientID int64 `bun:"recipient_id,pk"`
	OKAt        int64 `bun:"last_ok_at"`
	FailedAt    int64 `bun:"last_failed_at"`
}

// writeLast advances the times. Deltas are not folded in order of time, so an older one must
// not set them back.
func writeLast(ctx context.Context, tx db.Tx, last map[int64]lastRow) error {
	if len(last) == 0 {
		return nil
	}
	rows := make([]lastRow, 0, len(last))
	for _, l := range last {
		rows = append(rows, l)
	}
	q := tx.NewInsert().Model(&rows).On("CONFLICT (recipient_id) DO UPDATE")
	for _, column := range []string{"last_ok_at", "last_failed_at"} {
		c := bun.Ident(column)
		q = q.Set("? = CASE WHEN EXCLUDED.? > rl.? THEN EXCLUDED.? ELSE rl.? END", c, c, c, c, c)
	}
	if _, err := q.Exec(ctx); err != nil {
		return fmt.Errorf("store when merchants last answered: %w", err)
	}
	return nil
}

// Standings is the current state of a few merchants.
type Standings struct {
	Health   map[int64]Health // without merchants that had no attempts
	OKAt     map[int64]int64  // last acknowledgement, Unix µs
	FailedAt map[int64]int64  // when an attempt at it last failed
	DueAt    map[int64]int64  // due time of the longest-waiting notification
}

// Of reads the state of merchants: their attempts since a time (Unix µs, about an hour ago) and
// the times of the last ones. Each merchant costs a few index probes.
func Of(ctx context.Context, d *db.DB, merchants []int64, since int64) (*Standings, error) {
	s := &Standings{Health: map[int64]Health{}, OKAt: map[int64]int64{}, FailedAt: map[int64]int64{}, DueAt: map[int64]int64{}}
	if len(merchants) == 0 {
		return s, nil
	}
	first := floor(since, time.Minute)
	var rows []row
	err := d.Read.NewSelect().Model(&rows).ModelTableExpr("report_minutes AS row").
		Where("recipient_id IN (?) AND start >= ?", bun.List(merchants), first).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read merchants' figures: %w", err)
	}
	health, err := healthOf(rows, first, d.Now())
	if err != nil {
		return nil, err
	}
	for _, h := range health {
		s.Health[h.Merchant] = h
	}
	var last []lastRow
	if err := d.Read.NewSelect().Model(&last).Where("rl.recipient_id IN (?)", bun.List(merchants)).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read when merchants last answered: %w", err)
	}
	for _, l := range last {
		s.OKAt[l.RecipientID], s.FailedAt[l.RecipientID] = l.OKAt, l.FailedAt
	}
	// One probe per merchant: GROUP BY would read everything that waits.
	var due []struct{ ID, DueAt int64 }
	err = d.Read.NewRaw(
		"SELECT m.id, coalesce((SELECT w.next_at FROM deliveries AS w WHERE w.recipient_id = m.id AND w.next_at IS NOT NULL"+
			" ORDER BY w.next_at LIMIT 1), 0) AS due_at FROM merchants AS m WHERE m.id IN (?)", bun.List(merchants)).Scan(ctx, &due)
	if err != nil {
		return nil, fmt.Errorf("read what merchants wait for: %w", err)
	}
	for _, w := range due {
		s.DueAt[w.ID] = w.DueAt
	}
	return s, nil
}

// healthOf sums minutes by merchant, from the minute first on.
func healthOf(rows []row, first, now int64) ([]Health, error) {
	part := max(time.Minute.Microseconds(), (now-first)/trendSteps+1)
	trends := map[int64][]Point{}
	for _, r := range rows {
		if r.RecipientID == allRecipients {
			continue
		}
		if trends[r.RecipientID] == nil {
			trends[r.RecipientID] = make([]Point, trendSteps)
		}
		if err := trends[r.RecipientID][min(int((r.Start-first)/part), trendSteps-1)].add(r); err != nil {
			return nil, err
		}
	}
	all := make([]Health, 0, len(trends))
	for id, trend := range trends {
		all = append(all, Health{id, Total(trend), trend})
	}
	return all, nil
}

// Recipient counts the attempts at one merchant or subscriber.
type Recipient struct {
	ID       int64
	Attempts int64
	OK       int64
}

// Recipients returns the merchants and subscribers with attempts in the hours that begin within a
// time (Unix µs, to is exclusive), those with the most failed attempts first, at most limit.
func Recipients(ctx context.Context, d *db.DB, from, to int64, limit int) ([]Recipient, error) {
	var rows []Recipient
	err := d.Read.NewRaw(
		"SELECT recipient_id AS id, CAST(sum(ok + retried + failed) AS BIGINT) AS attempts, CAST(sum(ok) AS BIGINT) AS ok FROM report_hours"+
			" WHERE start >= ? AND start < ? AND recipient_id <> ? GROUP BY recipient_id ORDER BY sum(retried + failed) DESC, recipient_id LIMIT ?", from, to, allRecipients, limit).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the attempts by recipient: %w", err)
	}
	return rows, nil
}
