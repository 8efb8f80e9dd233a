package alert

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"backstop/internal/base/db"
)

// ErrNoTarget means that no alert target is configured.
var ErrNoTarget = errors.New("no target: set BACKSTOP_ALERT_URLS")

// Try writes a test message to every target. It goes the way of every other message, so its
// arrival proves that they arrive. Errors: ErrNoTarget.
func Try(ctx context.Context, tx db.Tx, d *db.DB, targets []string, style Style, sender string) (messages []int64, err error) {
	if len(targets) == 0 {
		return nil, ErrNoTarget
	}
	return post(ctx, tx, d, targets, "Backstop: "+tTested.In(style.Language),
		fmt.Sprintf(tTest.In(style.Language), sender)+"\n"+strings.TrimSuffix(style.Console, "/")+"/alerts")
}

// AuditHead writes a message with the signed end of the audit to every target, for the
// recipients to keep. Without targets it does nothing.
func AuditHead(ctx context.Context, tx db.Tx, d *db.DB, targets []string, style Style, number int64, file string) error {
	_, err := post(ctx, tx, d, targets, "Backstop: "+tHead.In(style.Language), fmt.Sprintf(tHeadKeep.In(style.Language), number)+"\n"+file)
	return err
}

// post writes a message to every target.
func post(ctx context.Context, tx db.Tx, d *db.DB, targets []string, title, body string) (messages []int64, err error) {
	return PostMail(ctx, tx, d, targets, title, body, "")
}

// PostMail writes a message with a second form in HTML to every target, and returns the ids of the
// messages. A target that sends no HTML sends the text.
func PostMail(ctx context.Context, tx db.Tx, d *db.DB, targets []string, title, body, html string) (messages []int64, err error) {
	return postMail(ctx, tx, d, targets, html, func(string) (string, string) { return title, body })
}

// postMail is PostMail with texts that depend on the target.
func postMail(ctx context.Context, tx db.Tx, d *db.DB, targets []string, html string, write func(target string) (title, body string),
) (messages []int64, err error) {
	if len(targets) == 0 {
		return nil, nil
	}
	now := d.Now()
	rows := make([]Message, len(targets))
	for i, target := range targets {
		title, body := write(target)
		rows[i] = Message{
			ID: d.NewID(), Target: target, Title: title, Body: body, HTML: html, Status: Waiting, NextAt: &now,
			CreatedAt: now,
		}
		messages = append(messages, rows[i].ID)
	}
	if _, err := tx.NewInsert().Model(&rows).Exec(ctx); err != nil {
		return nil, fmt.Errorf("write messages: %w", err)
	}
	return messages, nil
}
