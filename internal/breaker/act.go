package breaker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/recipient"

	"github.com/uptrace/bun"
)

// MoveAct returns the audit name of an act on a breaker.
func MoveAct(move Act) string { return "breaker." + string(move) }

// Acts returns the acts that open, close and probe the breaker of the merchant with code
// Ref.ID. Errors: ErrAlready.
func (b *Cache) Acts() (all []act.Kind) {
	for _, move := range []Act{OpenIt, CloseIt, ProbeIt} {
		all = append(all, act.Kind{
			Name: MoveAct(move), Object: "merchant", Permission: access.ControlBreakers, Scope: access.Control, Load: loadMerchants,
			Do: func(ctx context.Context, tx db.Tx, in act.Input, subjects []act.Subject) ([]act.Outcome, error) {
				return b.moveAll(ctx, tx, move, in, subjects)
			},
		})
	}
	return all
}

// moveAll moves breakers in the order of merchant ids, the order in which all transactions lock
// them.
func (b *Cache) moveAll(ctx context.Context, tx db.Tx, move Act, in act.Input, subjects []act.Subject) ([]act.Outcome, error) {
	outs, order := make([]act.Outcome, len(subjects)), make([]int, len(subjects))
	for i := range subjects {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(subjects[i].MerchantID, subjects[j].MerchantID) })
	for _, i := range order {
		err := b.ByOperator(ctx, tx, recipient.OfMerchant(subjects[i].MerchantID), move, in.By.Name, in.Reason)
		if err != nil && !errors.Is(err, ErrAlready) {
			return nil, err
		}
		outs[i].Err = err
	}
	return outs, nil
}

// loadMerchants finds merchants by code. The version of each is the generation of its breaker.
func loadMerchants(ctx context.Context, q bun.IDB, refs []act.Ref) ([]act.Subject, error) {
	codes := make([]string, len(refs))
	for i, r := range refs {
		codes[i] = r.ID
	}
	var rows []struct {
		ID, Version int64
		Code        string
	}
	err := q.NewRaw(
		"SELECT m.id, m.code, coalesce(b.generation, 0) AS version FROM merchants AS m LEFT JOIN breakers AS b ON b.owner_id = m.id"+
			" WHERE m.code IN (?)", bun.List(codes)).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("find merchants: %w", err)
	}
	subjects := make([]act.Subject, len(rows))
	for i, r := range rows {
		subjects[i] = act.Subject{Row: r.ID, ID: r.Code, MerchantID: r.ID, Version: r.Version}
	}
	return subjects, nil
}
