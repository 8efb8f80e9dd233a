package alert

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"backstop/internal/db"

	"github.com/uptrace/bun"
)

// ErrNoTarget says that there is nobody to tell.
var ErrNoTarget = errors.New("no target: set BACKSTOP_ALERT_URLS")

// Try writes a message to every target that says that it is a test. It goes the
// way of every other message, so that what it proves holds for them. Errors:
// ErrNoTarget.
func Try(ctx context.Context, tx bun.Tx, d *db.DB, targets []string, style Style, sender string) (messages []int64, err error) {
	if len(targets) == 0 {
		return nil, ErrNoTarget
	}
	now := d.Now()
	rows := make([]Message, len(targets))
	for i, target := range targets {
		rows[i] = Message{
			ID: d.NewID(), Target: target, Title: "Backstop: " + style.say(wordTested),
			Body:   fmt.Sprintf(style.say(wordTest), sender) + "\n" + strings.TrimSuffix(style.Console, "/") + "/alerts",
			Status: Waiting, NextAt: &now, CreatedAt: now,
		}
		messages = append(messages, rows[i].ID)
	}
	if _, err := tx.NewInsert().Model(&rows).Exec(ctx); err != nil {
		return nil, fmt.Errorf("write test messages: %w", err)
	}
	return messages, nil
}
