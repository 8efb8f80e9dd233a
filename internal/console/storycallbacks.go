package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/uptrace/bun"
)

// storyCallback is all of a callback but its body, which may be 256 KiB.
const storyCallback = "c.id, c.trade_no, c.outcome, c.received_at, c.remote_addr, c.method, c.query, c.headers, c.steps, length(c.body) AS size," +
	" COALESCE((SELECT su.code FROM suppliers AS su WHERE su.id = c.supplier_id), '') AS supplier," +
	" COALESCE(cr.seen, 0) AS seen, COALESCE(cr.last_seen_at, 0) AS last_seen_at, COALESCE(cr.last_addr, '') AS last_addr"

const fromCallbacks = " FROM callbacks AS c LEFT JOIN callback_repeats AS cr ON cr.callback_id = c.id"

// addCallbacks reads the oldest and the newest callbacks, and counts those between.
func (b *Reader) addCallbacks(ctx context.Context, s *Story) error {
	var rows, newest []Callback
	err := b.db.Read.NewRaw("SELECT "+storyCallback+fromCallbacks+" WHERE c.order_no = ? ORDER BY c.id LIMIT ?",
		s.Order.OrderNo, callbackEnds).Scan(ctx, &rows)
	if err != nil {
		return fmt.Errorf("read the order's callbacks: %w", err)
	}
	if len(rows) == callbackEnds {
		last := rows[len(rows)-1].ID
		err := b.db.Read.NewRaw("SELECT "+storyCallback+fromCallbacks+" WHERE c.order_no = ? AND c.id > ? ORDER BY c.id DESC LIMIT ?",
			s.Order.OrderNo, last, callbackEnds).Scan(ctx, &newest)
		if err != nil {
			return fmt.Errorf("read the order's newest callbacks: %w", err)
		}
		slices.Reverse(newest)
		if len(newest) == callbackEnds {
			if err := b.countLeftOut(ctx, s, last, newest[0].ID); err != nil {
				return err
			}
		}
		rows = append(rows, newest...)
	}
	for i := range rows {
		if err := json.Unmarshal(rows[i].RawSteps, &rows[i].Steps); err != nil {
			return fmt.Errorf("steps of callback %d: %w", rows[i].ID, err)
		}
		s.Items = append(s.Items, Item{At: rows[i].ReceivedAt, Phase: PaymentPhase, Callback: &rows[i]})
	}
	return nil
}

func (b *Reader) countLeftOut(ctx context.Context, s *Story, after, before int64) error {
	err := b.db.Read.NewRaw("SELECT count(*) FROM (SELECT 1 FROM callbacks AS c WHERE c.order_no = ? AND c.id > ? AND c.id < ? LIMIT ?) AS l",
		s.Order.OrderNo, after, before, countedRows+1).Scan(ctx, &s.Left.Callbacks)
	if err != nil {
		return fmt.Errorf("count the order's callbacks: %w", err)
	}
	if s.Left.Callbacks > countedRows {
		s.Left.Callbacks, s.Left.MoreCallbacks = countedRows, true
	}
	s.Cut = s.Cut || s.Left.Callbacks > 0
	return nil
}

// callbacks are those of the story, oldest first.
func (s *Story) callbacks() (all []*Callback) {
	for _, i := range s.Items {
		if i.Callback != nil {
			all = append(all, i.Callback)
		}
	}
	return all
}

// omit leaves a callback's body out.
func (s *Story) omit(c *Callback) {
	c.Body, c.Omitted = nil, true
	s.Left.Bodies, s.Left.Bytes = s.Left.Bodies+1, s.Left.Bytes+c.Size
	s.Cut = true
}

type rawBody struct {
	ID   int64  `bun:"id"`
	Body []byte `bun:"body"`
}

// addRaw reads the bodies for which a page has room.
func (b *Reader) addRaw(ctx context.Context, s *Story) error {
	var ids []int64
	room := int64(storyBytes)
	of := map[int64]*Callback{}
	for _, c := range s.callbacks() {
		if c.Size > room {
			s.omit(c)
			continue
		}
		room -= c.Size
		ids, of[c.ID] = append(ids, c.ID), c
	}
	if len(ids) == 0 {
		return nil
	}
	var rows []rawBody
	if err := b.db.Read.NewRaw("SELECT id, body FROM callbacks WHERE id IN (?)", bun.List(ids)).Scan(ctx, &rows); err != nil {
		return fmt.Errorf("read the callbacks' bodies: %w", err)
	}
	for _, r := range rows {
		of[r.ID].Body = r.Body
	}
	return nil
}

// ReadBody reads the body that a long story left out.
func (b *Reader) ReadBody(ctx context.Context, c *Callback) error {
	if !c.Omitted {
		return nil
	}
	var rows []rawBody
	if err := b.db.Read.NewRaw("SELECT id, body FROM callbacks WHERE id = ?", c.ID).Scan(ctx, &rows); err != nil {
		return fmt.Errorf("read a callback's body: %w", err)
	}
	if len(rows) == 1 { // else it went past its retention just now
		c.Body, c.Omitted = rows[0].Body, false
	}
	return nil
}

// addSums reads all bodies one after the other: evidence proves each of them by its
// hash, also where the file has no room for the text.
func (b *Reader) addSums(ctx context.Context, s *Story) error {
	room := int64(evidenceBytes)
	for _, c := range s.callbacks() {
		c.Omitted = true
		if err := b.ReadBody(ctx, c); err != nil {
			return err
		}
		c.prove()
		if c.Size > room {
			s.omit(c)
			continue
		}
		room -= c.Size
	}
	return nil
}

// addRepeats reads how often a callback's message came again.
func (b *Reader) addRepeats(ctx context.Context, c *Callback) error {
	var rows []Callback
	err := b.db.Read.NewRaw("SELECT seen, last_seen_at, last_addr FROM callback_repeats WHERE callback_id = ?", c.ID).Scan(ctx, &rows)
	if err != nil {
		return fmt.Errorf("read a callback's repeats: %w", err)
	}
	if len(rows) == 1 {
		c.Seen, c.LastSeenAt, c.LastAddr = rows[0].Seen, rows[0].LastSeenAt, rows[0].LastAddr
	}
	return nil
}

// prove keeps the hash of the body as it came, before anything of it is masked.
func (c *Callback) prove() {
	if c.sum == "" {
		sum := sha256.Sum256(c.Body)
		c.sum = hex.EncodeToString(sum[:])
	}
}

func (s *Story) prove() {
	for _, c := range s.callbacks() {
		c.prove()
	}
}
