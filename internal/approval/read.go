package approval

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"backstop/internal/act"
	"backstop/internal/evidence"

	"github.com/uptrace/bun"
)

// ParseNo parses an approval's public id. Errors: act.ErrNotFound.
func ParseNo(no string) (int64, error) {
	digits, ok := strings.CutPrefix(no, prefix)
	id, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || id < 1 || strconv.FormatInt(id, 10) != digits {
		return 0, act.ErrNotFound
	}
	return id, nil
}

// Sum returns the SHA-256, in hex, of what an approval decides: the canonical JSON (RFC 8785)
// of its action, object, version, money and parameters.
func Sum(a *Approval) (string, error) {
	text, err := json.Marshal(map[string]any{
		"action": a.Action, "object": a.Object, "object_id": a.ObjectID, "version": a.Version,
		"amount": a.Amount, "currency": a.Currency, "params": a.Params,
	})
	if err == nil {
		text, err = evidence.Canonical(text)
	}
	if err != nil {
		return "", fmt.Errorf("encode what approval %s decides: %w", a.No(), err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// Find reads an approval. Errors: act.ErrNotFound.
func Find(ctx context.Context, q bun.IDB, id int64) (*Approval, error) {
	return scan(ctx, q.NewSelect(), id)
}

// Find reads an approval that the actor may see. Errors: act.ErrNotFound.
func (d *Desk) Find(ctx context.Context, id int64, by act.Actor) (*Approval, error) {
	a, err := Find(ctx, d.o.DB.Read, id)
	if err == nil && !by.Sees(a.MerchantID) {
		return nil, act.ErrNotFound
	}
	return a, err
}

// Subject returns an approval with its object as it is now. Errors: act.ErrNotFound.
func (d *Desk) Subject(ctx context.Context, id int64, by act.Actor) (*Approval, act.Subject, error) {
	a, err := d.Find(ctx, id, by)
	if err != nil {
		return nil, act.Subject{}, err
	}
	action, err := d.action(a.Object, a.Action)
	if err != nil {
		return nil, act.Subject{}, err
	}
	s, err := action.find(ctx, d.o.DB.Read, a.ObjectID)
	return a, s, err
}

func scan(ctx context.Context, q *bun.SelectQuery, id int64) (*Approval, error) {
	a := new(Approval)
	err := q.Model(a).Where("ap.id = ?", id).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, act.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read approval %d: %w", id, err)
	}
	return a, nil
}

// Query selects approvals. Empty fields do not filter.
type Query struct {
	State                             State
	Maker                             *Maker // nil = any
	Action, Object, ObjectID, OrderNo string
	Merchants                         []int64 // nil = all
	Below                             int64   // only smaller ids; 0 = all
	Limit                             int
}

// List reads approvals, newest first.
func List(ctx context.Context, q bun.IDB, by Query) ([]*Approval, error) {
	all := []*Approval{}
	sel := q.NewSelect().Model(&all).OrderExpr("ap.id DESC").Limit(int64(by.Limit))
	for _, f := range []struct{ column, word string }{
		{"state", string(by.State)}, {"action", by.Action}, {"object", by.Object}, {"object_id", by.ObjectID}, {"order_no", by.OrderNo},
	} {
		if f.word != "" {
			sel = sel.Where("ap.? = ?", bun.Ident(f.column), f.word)
		}
	}
	if by.OrderNo != "" {
		sel = sel.Where("ap.order_no <> ''") // the condition of the partial index
	}
	if by.Maker != nil {
		sel = sel.Where("ap.maker = ?", by.Maker.ID).Where("ap.maker_kind = ?", by.Maker.Kind)
	}
	if by.Merchants != nil {
		sel = sel.Where("ap.merchant_id IN (?)", bun.List(by.Merchants))
	}
	if by.Below != 0 {
		sel = sel.Where("ap.id < ?", by.Below)
	}
	if err := sel.Scan(ctx); err != nil {
		return nil, fmt.Errorf("read approvals: %w", err)
	}
	return all, nil
}
