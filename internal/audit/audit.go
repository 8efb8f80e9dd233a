// Package audit keeps what people did, in an order that cannot be changed
// unnoticed: every row's hash covers the row before it.
package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"backstop/internal/db"

	"github.com/uptrace/bun"
)

// Act is what somebody did to something. Texts for people are made from Action
// and Params when it is shown, so that it reads in every language.
type Act struct {
	Actor    string         // "operator:wang.min", "token:grafana", or Command()
	Action   string         // e.g. "notification.resend"
	Object   string         // kind of thing: "order", "notification", "exception", "merchant", …
	ObjectID string         // as people see it: order number, ntf_…, code
	Params   map[string]any // reason and the like; no secrets
	Remote   string         // address of who did it
}

// Row is one kept act.
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
}

// chain is the hash of a row after the one with the given hash.
func (r *Row) chain(before string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %q %q %q %q %q %q",
		before, r.Number, r.At, r.Actor, r.Action, r.Object, r.ObjectID, r.Params, r.RemoteAddr))
	return hex.EncodeToString(sum[:])
}

// lock is the number of PostgreSQL's advisory lock that puts writers in a line:
// a chain has one end. People act a few times a minute, so the line is short.
const lock = 0x6261636b73746f70

// Write keeps an act in the transaction of the act itself.
func Write(ctx context.Context, tx bun.Tx, d *db.DB, a Act) error {
	params, err := json.Marshal(a.Params)
	if err != nil {
		return fmt.Errorf("audit %s: %w", a.Action, err)
	}
	if a.Params == nil {
		params = []byte("{}")
	}
	if d.IsPostgres() {
		// Each schema has a chain of its own.
		if _, err := tx.NewRaw("SELECT pg_advisory_xact_lock(? + hashtext(current_schema()))", int64(lock)).Exec(ctx); err != nil {
			return fmt.Errorf("wait for the end of the audit chain: %w", err)
		}
	}
	number, before, err := Head(ctx, tx)
	if err != nil {
		return err
	}
	length, err := length(ctx, tx)
	if err != nil {
		return err
	}
	r := Row{
		Number: max(number, length) + 1, At: d.Now(), Actor: a.Actor, Action: a.Action, Object: a.Object, ObjectID: a.ObjectID,
		Params: string(params), RemoteAddr: a.Remote,
	}
	r.Hash = r.chain(before)
	if _, err := tx.NewInsert().Model(&r).Exec(ctx); err != nil {
		return fmt.Errorf("write the audit row: %w", err)
	}
	_, err = tx.NewRaw("INSERT INTO settings (name, value) VALUES ('audit_length', ?) ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value", r.Number).Exec(ctx)
	if err != nil {
		return fmt.Errorf("note the length of the audit chain: %w", err)
	}
	return nil
}

// length is the number of the last act that was kept, 0 = not noted yet. The chain
// alone does not know where it ended: rows taken from its end would leave a whole
// one. Their numbers are not given out again, so that the gap stays.
func length(ctx context.Context, q bun.IDB) (int64, error) {
	var noted []int64
	if err := q.NewRaw("SELECT value FROM settings WHERE name = 'audit_length'").Scan(ctx, &noted); err != nil {
		return 0, fmt.Errorf("read the length of the audit chain: %w", err)
	}
	if len(noted) == 0 {
		return 0, nil
	}
	return noted[0], nil
}

// Head returns how many acts the chain has and the hash of the newest one, which
// stands for all of them; 0 and "" where nobody did anything yet.
func Head(ctx context.Context, q bun.IDB) (number int64, hash string, err error) {
	var last []Row
	if err := q.NewSelect().Model(&last).OrderExpr("au.number DESC").Limit(1).Scan(ctx); err != nil {
		return 0, "", fmt.Errorf("read the end of the audit chain: %w", err)
	}
	if len(last) == 0 {
		return 0, "", nil
	}
	return last[0].Number, last[0].Hash, nil
}

// Query asks for acts, newest first. Empty fields do not filter.
type Query struct {
	Actor            string // with or without its kind
	Object, ObjectID string
	ObjectIDs        []string // any of these; empty = any
	From, To         int64    // Unix µs, To not included; 0 = no bound
	Before, After    int64    // only numbers below and above; 0 = no bound
	// Oldest takes those nearest to After instead of the newest.
	Oldest bool
	Limit  int
}

// actors are those of a name: people see an actor without its kind.
func actors(name string) []string {
	if strings.Contains(name, ":") {
		return []string{name}
	}
	return []string{name, "operator:" + name, "token:" + name, "command:" + name}
}

// List reads acts, in the order in which they were taken.
func List(ctx context.Context, q bun.IDB, by Query) ([]Row, error) {
	var rows []Row
	order := "DESC"
	if by.Oldest {
		order = "ASC"
	}
	sel := q.NewSelect().Model(&rows).OrderExpr("au.number ?", bun.Safe(order)).Limit(int64(by.Limit))
	if by.Actor != "" {
		sel = sel.Where("au.actor IN (?)", bun.List(actors(by.Actor)))
	}
	if by.Object != "" {
		sel = sel.Where("au.object = ?", by.Object)
	}
	if by.ObjectID != "" {
		sel = sel.Where("au.object_id = ?", by.ObjectID)
	}
	if len(by.ObjectIDs) > 0 {
		sel = sel.Where("au.object_id IN (?)", bun.List(by.ObjectIDs))
	}
	if by.Before > 0 {
		sel = sel.Where("au.number < ?", by.Before)
	}
	if by.From > 0 {
		sel = sel.Where("au.at >= ?", by.From)
	}
	if by.To > 0 {
		sel = sel.Where("au.at < ?", by.To)
	}
	if by.After > 0 {
		sel = sel.Where("au.number > ?", by.After)
	}
	if err := sel.Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the audit: %w", err)
	}
	return rows, nil
}
