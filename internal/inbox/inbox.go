// Package inbox keeps messages to operators, which the console shows.
package inbox

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/textlimit"

	"github.com/uptrace/bun"
)

// Kinds of messages.
const (
	Mention = "mention" // somebody named the operator in a note
	OfView  = "view"    // rows appeared in a view
	Device  = "device"  // the operator signed in from a device not used before
)

const (
	// Kept is how long messages are kept.
	Kept = 90 * 24 * time.Hour
	// maxKept bounds the messages of one operator; older ones are removed.
	maxKept = 500
	// maxText bounds the text of a message, in bytes.
	maxText = 1000
	// MaxUnread bounds the count of unread messages.
	MaxUnread = 99
)

// Message is one message to an operator.
type Message struct {
	bun.BaseModel `bun:"table:inbox,alias:ib"`

	ID         int64  `bun:"id,pk"`
	OperatorID int64  `bun:"operator_id"`
	Kind       string `bun:"kind"`
	Actor      string `bun:"actor"`     // who mentioned the operator; "" = nobody
	Object     string `bun:"object"`    // "order", "exception", "view" or "session"
	ObjectID   string `bun:"object_id"` // as in the audit; of a session its address
	Text       string `bun:"text"`      // the note, or the name of the view or device
	Rows       int64  `bun:"rows"`      // of a view
	More       bool   `bun:"more"`      // there are more rows
	At         int64  `bun:"at"`
	ReadAt     *int64 `bun:"read_at"`
}

// Put stores a message, and removes the operator's oldest ones beyond the limit. A message about a
// view replaces the unread one about it, with the rows of both.
func Put(ctx context.Context, tx db.Tx, d *db.DB, m Message) error {
	m.ID, m.At, m.Text = d.NewID(), d.Now(), textlimit.Clip(m.Text, maxText)
	if m.Kind == OfView {
		var before []Message
		err := tx.NewRaw("DELETE FROM inbox WHERE operator_id = ? AND kind = ? AND object_id = ? AND read_at IS NULL RETURNING *",
			m.OperatorID, m.Kind, m.ObjectID).Scan(ctx, &before)
		if err != nil {
			return fmt.Errorf("replace the message about a view: %w", err)
		}
		for _, b := range before {
			m.Rows, m.More = m.Rows+b.Rows, m.More || b.More
		}
	}
	if _, err := tx.NewInsert().Model(&m).Exec(ctx); err != nil {
		return fmt.Errorf("write a message: %w", err)
	}
	_, err := tx.NewRaw(
		"DELETE FROM inbox WHERE operator_id = ? AND id < (SELECT id FROM inbox WHERE operator_id = ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
		m.OperatorID, m.OperatorID, maxKept-1).Exec(ctx)
	if err != nil {
		return fmt.Errorf("remove the oldest messages: %w", err)
	}
	return nil
}

// Unread counts the unread messages of an operator, up to MaxUnread; more = there are more.
func Unread(ctx context.Context, q bun.IDB, operator int64) (n int, more bool, err error) {
	err = q.NewRaw("SELECT count(*) FROM (SELECT 1 FROM inbox WHERE operator_id = ? AND read_at IS NULL LIMIT ?) AS w", operator,
		MaxUnread+1).Scan(ctx, &n)
	if err != nil {
		return 0, false, fmt.Errorf("count unread messages: %w", err)
	}
	return min(n, MaxUnread), n > MaxUnread, nil
}

// Read marks a message of an operator as read, or all up to one if all is set: those that came
// after the page was drawn stay unread.
func Read(ctx context.Context, d *db.DB, operator, id int64, all bool) error {
	which := "id = ?"
	if all {
		which = "id <= ?"
	}
	_, err := d.NewRaw("UPDATE inbox SET read_at = ? WHERE operator_id = ? AND read_at IS NULL AND "+which, d.Now(), operator, id).Exec(ctx)
	if err != nil {
		return fmt.Errorf("mark messages as read: %w", err)
	}
	return nil
}

// A mention is @ and a name, not within a mail address. Chinese writes no space before it.
var mention = regexp.MustCompile(`(?:^|[^A-Za-z0-9._@-])@([A-Za-z0-9][A-Za-z0-9._-]{0,63})`)

// MaxMentions bounds the people that one note reaches.
const MaxMentions = 10

// Mentions returns the names that a note mentions, once each, as they could be meant: a name at
// the end of a sentence is followed by a point.
func Mentions(note string, known func(name string) bool) (names, unknown []string) {
	// The character between two names belongs to both, so the text is scanned from each name on.
	for rest := note; ; {
		at := mention.FindStringSubmatchIndex(rest)
		if at == nil {
			return names, unknown
		}
		name := strings.ToLower(rest[at[2]:at[3]])
		rest = rest[at[3]-1:]
		if trimmed := strings.TrimRight(name, "._-"); !known(name) {
			name = trimmed
		}
		switch {
		case !known(name):
			if !slices.Contains(unknown, name) {
				unknown = append(unknown, name)
			}
		case !slices.Contains(names, name):
			names = append(names, name)
		}
	}
}

// Page is one page of an inbox.
type Page struct {
	Rows  []Message
	First bool  // the newest page
	Older int64 // the next page begins before this id; 0 = there is none
}

// pageRows is the number of messages per page.
const pageRows = 50

// List returns the messages of an operator that are older than one, or the newest ones if it is
// 0, newest first.
func List(ctx context.Context, q bun.IDB, operator, before int64) (p Page, err error) {
	p.First = before == 0
	if p.First {
		before = math.MaxInt64
	}
	err = q.NewSelect().Model(&p.Rows).Where("ib.operator_id = ? AND ib.id < ?", operator, before).OrderExpr("ib.id DESC").Limit(pageRows +
		1).Scan(ctx)
	if err != nil {
		return p, fmt.Errorf("read an inbox: %w", err)
	}
	if len(p.Rows) > pageRows {
		p.Rows, p.Older = p.Rows[:pageRows], p.Rows[pageRows-1].ID
	}
	return p, nil
}
