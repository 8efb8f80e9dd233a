package alert

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"backstop/internal/base/db"
)

// ErrNoTarget says that there is nobody to tell.
var ErrNoTarget = errors.New("no target: set BACKSTOP_ALERT_URLS")

// Try writes a message to every target that says that it is a test. It goes the
// way of every other message, so that what it proves holds for them. Errors:
// ErrNoTarget.
func Try(ctx context.Context, tx db.Tx, d *db.DB, targets []string, style Style, sender string) (messages []int64, err error) {
	if len(targets) == 0 {
		return nil, ErrNoTarget
	}
	return post(ctx, tx, d, targets, "Backstop: "+style.say(wordTested),
		fmt.Sprintf(style.say(wordTest), sender)+"\n"+strings.TrimSuffix(style.Console, "/")+"/alerts")
}

// AuditHead writes a message to every target that holds the signed end of the audit,
// for people to keep. Without targets there is none.
func AuditHead(ctx context.Context, tx db.Tx, d *db.DB, targets []string, style Style, number int64, file string) error {
	_, err := post(ctx, tx, d, targets, "Backstop: "+style.say(wordHead), fmt.Sprintf(style.say(wordHeadKeep), number)+"\n"+file)
	return err
}

// post writes a message to every target.
func post(ctx context.Context, tx db.Tx, d *db.DB, targets []string, title, body string) (messages []int64, err error) {
	if len(targets) == 0 {
		return nil, nil
	}
	now := d.Now()
	rows := make([]Message, len(targets))
	for i, target := range targets {
		rows[i] = Message{ID: d.NewID(), Target: target, Title: title, Body: body, Status: Waiting, NextAt: &now, CreatedAt: now}
		messages = append(messages, rows[i].ID)
	}
	if _, err := tx.NewInsert().Model(&rows).Exec(ctx); err != nil {
		return nil, fmt.Errorf("write messages: %w", err)
	}
	return messages, nil
}
