package alert

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/metric"

	"github.com/uptrace/bun"
)

// Message is one text for one target.
type Message struct {
	bun.BaseModel `bun:"table:alert_messages,alias:am"`

	ID         int64  `bun:"id,pk"`
	Target     string `bun:"target"` // Target.Name; contains no secrets
	Title      string `bun:"title"`
	Body       string `bun:"body"`
	HTML       string `bun:"html"` // the same as HTML, for mails; empty = text only
	Status     string `bun:"status"`
	Attempts   int64  `bun:"attempts"`
	NextAt     *int64 `bun:"next_at"`
	LastError  string `bun:"last_error"`
	CreatedAt  int64  `bun:"created_at"`
	FinishedAt *int64 `bun:"finished_at"`
}

// Target sends a text to operators.
type Target interface {
	// Name identifies the target and contains no secret. It is stored with messages, so it
	// stays the same over restarts.
	Name() string
	// Send returns an error, without secrets, if the text was not delivered.
	Send(ctx context.Context, title, body string) error
}

// MailTarget is a Target that sends mails with a second form in HTML. id stays the same when a
// mail is sent again.
type MailTarget interface {
	Target
	SendMail(ctx context.Context, id int64, title, body, html string) error
}

// waits are the times between attempts to send a message; after the last one it is given up.
// They add up to about a day, so a chat service that is down overnight loses nothing.
var waits = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour,
	2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 8 * time.Hour,
}

// Limits on sending.
const (
	maxSend     = 20               // messages of one round
	sendTimeout = 15 * time.Second // of one message
	sendLease   = time.Minute      // after this, another node sends the messages of a node that ended
)

// Send sends the due messages. A message is repeated until its target accepts it: at least
// once.
func Send(ctx context.Context, d *db.DB, targets []Target, log *slog.Logger) error {
	by := make(map[string]Target, len(targets))
	for _, t := range targets {
		by[t.Name()] = t
	}
	now := d.Now()
	var due []Message
	err := d.NewRaw("UPDATE alert_messages SET attempts = attempts + 1, next_at = ? WHERE next_at <= ? AND id IN"+
		" (SELECT id FROM alert_messages WHERE next_at <= ? ORDER BY next_at LIMIT ?) RETURNING *",
		now+sendLease.Microseconds(), now, now, maxSend).Scan(ctx, &due)
	if err != nil {
		return fmt.Errorf("claim messages: %w", err)
	}
	// All at once: a hanging target must not delay the others, nor hold the messages behind it
	// until their lease ends and another node sends them too.
	unwritten := make([]error, len(due))
	var all sync.WaitGroup
	for i, m := range due {
		all.Go(func() {
			err := trySend(ctx, by[m.Target], m)
			if err != nil {
				log.Warn("send an alert", "target", m.Target, "attempt", m.Attempts, "error", err)
			}
			unwritten[i] = finish(ctx, d, m, err)
		})
	}
	all.Wait()
	return errors.Join(unwritten...)
}

func trySend(ctx context.Context, t Target, m Message) error {
	if t == nil {
		return fmt.Errorf("the target is no longer among BACKSTOP_ALERT_URLS or BACKSTOP_REPORT_URLS")
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	if mail, ok := t.(MailTarget); ok && m.HTML != "" {
		return mail.SendMail(ctx, m.ID, m.Title, m.Body, m.HTML)
	}
	return t.Send(ctx, m.Title, m.Body)
}

// Results of an attempt to send.
const (
	trySent   = "sent"
	tryAgain  = "retry"
	tryFailed = "failed"
)

// Tries lists all results of an attempt.
var Tries = []string{trySent, tryAgain, tryFailed}

// finish writes the result of an attempt.
func finish(ctx context.Context, d *db.DB, m Message, failed error) error {
	now := d.Now()
	m.Status, m.NextAt, m.FinishedAt, m.LastError = Sent, nil, &now, ""
	result := trySent
	if failed != nil {
		m.Status, m.LastError, result = Failed, failed.Error(), tryFailed
		if n := int(m.Attempts) - 1; n < len(waits) {
			next := now + waits[n].Microseconds()
			m.Status, m.NextAt, m.FinishedAt, result = Waiting, &next, nil, tryAgain
		}
	}
	metric.AlertMessages.WithLabelValues(result).Inc()
	_, err := d.NewRaw(
		"UPDATE alert_messages SET status = ?, next_at = ?, finished_at = ?, last_error = ? WHERE id = ? AND attempts = ? AND status IN (?)",
		m.Status, m.NextAt, m.FinishedAt, m.LastError, m.ID, m.Attempts,
		bun.List(MessageMoves.From(m.Status))).Exec(context.WithoutCancel(ctx))
	if err != nil {
		return fmt.Errorf("write the result of a message: %w", err)
	}
	return nil
}

// SendAgain makes a failed message due again, with the same text and a new schedule; false = it
// had not failed.
func SendAgain(ctx context.Context, q bun.IDB, d *db.DB, id int64) (bool, error) {
	res, err := q.NewRaw(
		"UPDATE alert_messages SET status = ?, attempts = 0, next_at = ?, finished_at = NULL WHERE id = ? AND status IN (?)",
		Waiting, d.Now(), id, bun.List(MessageMoves.From(Waiting, Failed))).Exec(ctx)
	if err != nil {
		return false, fmt.Errorf("send a message again: %w", err)
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

// MessageByID reads one message; nil = there is none.
func MessageByID(ctx context.Context, q bun.IDB, id int64) (*Message, error) {
	var rows []*Message
	if err := q.NewSelect().Model(&rows).Where("am.id = ?", id).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read a message: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return rows[0], nil
}

// Messages reads messages, newest first.
func Messages(ctx context.Context, q bun.IDB, before int64, limit int) ([]Message, error) {
	var rows []Message
	sel := q.NewSelect().Model(&rows).OrderExpr("am.id DESC").Limit(int64(limit))
	if before > 0 {
		sel = sel.Where("am.id < ?", before)
	}
	if err := sel.Scan(ctx); err != nil {
		return nil, fmt.Errorf("read messages: %w", err)
	}
	return rows, nil
}
