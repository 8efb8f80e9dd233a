package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/uptrace/bun"
)

// callbacks returns the callbacks of the history, oldest first.
func (s *Story) callbacks() (all []*Callback) {
	for _, i := range s.Items {
		if i.Callback != nil {
			all = append(all, i.Callback)
		}
	}
	return all
}

// omit drops a callback's body.
func (s *Story) omit(c *Callback) {
	c.Body, c.Omitted = nil, true
	s.Left.Texts, s.Left.Bytes = s.Left.Texts+1, s.Left.Bytes+c.Size
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
	var rows []Callback
	if err := b.db.Read.NewRaw("SELECT id, body FROM callbacks WHERE id IN (?)", bun.List(ids)).Scan(ctx, &rows); err != nil {
		return fmt.Errorf("read the callbacks' bodies: %w", err)
	}
	for _, r := range rows {
		of[r.ID].Body = r.Body
	}
	return nil
}

// ReadBody reads a body that was left out.
func (b *Reader) ReadBody(ctx context.Context, c *Callback) error {
	if !c.Omitted {
		return nil
	}
	var rows []Callback
	if err := b.db.Read.NewRaw("SELECT id, body FROM callbacks WHERE id = ?", c.ID).Scan(ctx, &rows); err != nil {
		return fmt.Errorf("read a callback's body: %w", err)
	}
	if len(rows) == 1 { // otherwise its retention has just ended
		c.Body, c.Omitted = rows[0].Body, false
	}
	return nil
}

// addSums reads all bodies one by one: evidence includes the hash of each, even if the file has
// no room for the text.
func (b *Reader) addSums(ctx context.Context, s *Story) error {
	room := int64(evidenceTexts)
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

// prove stores the hash of the body as received, before anything in it is masked.
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
