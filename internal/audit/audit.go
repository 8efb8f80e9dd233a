// Package audit records acts in a tamper-evident order: every row's hash covers the row before
// it and is keyed with a key that is not in the database.
package audit

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"backstop/internal/base/db"
	"backstop/internal/base/seal"

	"github.com/uptrace/bun"
)

// Act is an act to be recorded. Its text is composed from Action and Params when displayed, in
// the reader's language.
type Act struct {
	Actor    string         // "operator:wang.min", "token:grafana", or Command()
	Action   string         // e.g. "notification.resend"
	Object   string         // kind of subject: "order", "notification", "exception", "merchant", …
	ObjectID string         // as displayed: order number, ntf_…, code
	Params   map[string]any // reason and the like; no secrets
	Remote   string         // the actor's address
}

// Row is one recorded act.
type Row struct {
	bun.BaseModel `bun:"table:audit,alias:au"`

	Number     int64  `bun:"number,pk"` // 1, 2, 3 … without a gap
	At         int64  `bun:"at"`        // Unix µs, the database's clock
	Actor      string `bun:"actor"`
	Action     string `bun:"action"`
	Object     string `bun:"object"`
	ObjectID   string `bun:"object_id"`
	Params     string `bun:"params"` // JSON object with sorted keys
	RemoteAddr string `bun:"remote_addr"`
	Hash       string `bun:"hash"`
	KeyID      string `bun:"key_id"` // the master key from which the hash's key is derived
}

// Log is the audit of a database. It is safe for concurrent use.
type Log struct {
	db   *db.DB
	keys *seal.Keyring
	mac  *seal.MAC
}

// New returns the audit of a database. With an empty keyring no row can be written, and rows
// with a key cannot be checked.
func New(d *db.DB, keys *seal.Keyring) *Log { return &Log{db: d, keys: keys, mac: keys.MAC("audit")} }

var errNoKey = errors.New("no master key: the audit cannot be written without one")

// chain returns the hash of a row that follows one with the given hash; false = its key is not
// available.
func (l *Log) chain(r *Row, before string) (hash string, ok bool) {
	text := fmt.Appendf(nil, "%s %d %d %q %q %q %q %q %q",
		before, r.Number, r.At, r.Actor, r.Action, r.Object, r.ObjectID, r.Params, r.RemoteAddr)
	sum, ok := l.mac.Sum(r.KeyID, text)
	return hex.EncodeToString(sum), ok
}

// lockID is the PostgreSQL advisory lock that serializes writers, because a chain has one end.
// There are a few acts per minute, so waits are short.
const lockID = 0x6261636b73746f70

// Write records an act in the transaction of the act.
func (l *Log) Write(ctx context.Context, tx db.Tx, a Act) error {
	end, err := l.end(ctx, tx)
	if err != nil {
		return err
	}
	return l.add(ctx, tx, end, a)
}

// end locks and reads the end of the chain: the last row, or an unnumbered row if the chain is
// empty.
func (l *Log) end(ctx context.Context, tx db.Tx) (*Row, error) {
	if l.db.IsPostgres() {
		// Each schema has a chain of its own.
		if _, err := tx.NewRaw("SELECT pg_advisory_xact_lock(? + hashtext(current_schema()))", int64(lockID)).Exec(ctx); err != nil {
			return nil, fmt.Errorf("wait for the end of the audit chain: %w", err)
		}
	}
	return last(ctx, tx)
}

// add appends an act to the chain.
func (l *Log) add(ctx context.Context, tx db.Tx, end *Row, a Act) error {
	params, err := json.Marshal(a.Params)
	if err != nil {
		return fmt.Errorf("audit %s: %w", a.Action, err)
	}
	if a.Params == nil {
		params = []byte("{}")
	}
	length, err := length(ctx, tx)
	if err != nil {
		return err
	}
	r := &Row{
		Number: max(end.Number, length) + 1, At: l.db.Now(), Actor: a.Actor, Action: a.Action, Object: a.Object, ObjectID: a.ObjectID,
		Params: string(params), RemoteAddr: a.Remote, KeyID: l.mac.KeyID(),
	}
	if r.KeyID == "" {
		return errNoKey
	}
	r.Hash, _ = l.chain(r, end.Hash)
	if _, err := tx.NewInsert().Model(r).Exec(ctx); err != nil {
		return fmt.Errorf("write the audit row: %w", err)
	}
	_, err = tx.NewRaw(
		"INSERT INTO settings (name, value) VALUES ('audit_length', ?) ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value",
		r.Number).Exec(ctx)
	if err != nil {
		return fmt.Errorf("store the length of the audit chain: %w", err)
	}
	return nil
}

// length returns the number of the last recorded act; 0 = not stored yet. The chain does not
// contain its own length: with rows cut from its end it would still be valid. Numbers are never
// reused, so the gap stays visible.
func length(ctx context.Context, q bun.IDB) (n int64, err error) {
	if err := q.NewRaw("SELECT COALESCE((SELECT value FROM settings WHERE name = 'audit_length'), 0)").Scan(ctx, &n); err != nil {
		return 0, fmt.Errorf("read the length of the audit chain: %w", err)
	}
	return n, nil
}

// last reads the last row of the chain; an unnumbered row if the chain is empty.
func last(ctx context.Context, q bun.IDB) (*Row, error) {
	var rows []Row
	if err := q.NewSelect().Model(&rows).OrderExpr("au.number DESC").Limit(1).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the end of the audit chain: %w", err)
	}
	if len(rows) == 0 {
		return new(Row), nil
	}
	return &rows[0], nil
}

// Head returns the number of the newest act and its hash, which covers all acts; 0 and "" if
// there is none.
func Head(ctx context.Context, q bun.IDB) (number int64, hash string, err error) {
	r, err := last(ctx, q)
	if err != nil {
		return 0, "", err
	}
	return r.Number, r.Hash, nil
}

// Query selects acts, newest first. Empty fields do not filter.
type Query struct {
	Object, ObjectID string
	ObjectIDs        []string // any of these; empty = any
	Oldest           bool     // start with the oldest act
	Limit            int
}

// Actors returns the actors with this name, of any kind: actors are displayed without their
// kind.
func Actors(name string) []string {
	if strings.Contains(name, ":") {
		return []string{name}
	}
	return []string{name, "operator:" + name, "token:" + name, "command:" + name}
}

// List reads acts in order, the newest first unless Oldest is set.
func List(ctx context.Context, q bun.IDB, by Query) ([]Row, error) {
	var rows []Row
	order := "DESC"
	if by.Oldest {
		order = "ASC"
	}
	sel := q.NewSelect().Model(&rows).OrderExpr("au.number ?", bun.Safe(order)).Limit(int64(by.Limit))
	if by.Object != "" {
		sel = sel.Where("au.object = ?", by.Object)
	}
	if by.ObjectID != "" {
		sel = sel.Where("au.object_id = ?", by.ObjectID)
	}
	if len(by.ObjectIDs) > 0 {
		sel = sel.Where("au.object_id IN (?)", bun.List(by.ObjectIDs))
	}
	if err := sel.Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the audit: %w", err)
	}
	return rows, nil
}
