package payout

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// ByNo finds a payout by its number. Errors: ErrNotFound.
func ByNo(ctx context.Context, q bun.IDB, no string) (*Payout, error) {
	return one(ctx, q, q.NewSelect().Where("po.payout_no = ?", no))
}

// ByOut finds a merchant's payout by the merchant's number. Errors: ErrNotFound.
func ByOut(ctx context.Context, q bun.IDB, merchantID int64, outPayoutNo string) (*Payout, error) {
	return one(ctx, q, q.NewSelect().Where("po.merchant_id = ? AND po.out_payout_no = ?", merchantID, outPayoutNo))
}

func byID(ctx context.Context, q db.Session, d *db.DB, id int64) (*Payout, error) {
	all, err := byIDs(ctx, q, d, []int64{id}, "")
	if err == nil && all[id] == nil {
		err = ErrNotFound
	}
	return all[id], err
}

// byIDs reads payouts with their steps; after is the end of the query.
func byIDs(ctx context.Context, q db.Session, d *db.DB, ids []int64, after string) (map[int64]*Payout, error) {
	var rows []*Payout
	if err := q.Prepared(ctx, &rows, "SELECT "+d.Columns((*Payout)(nil))+" FROM payouts WHERE id IN (?) ORDER BY id"+after,
		ids); err != nil {
		return nil, fmt.Errorf("read payouts: %w", err)
	}
	return withSteps(ctx, q, d, rows)
}

// withSteps reads the steps of payouts into them, and returns them by id.
func withSteps(ctx context.Context, q db.Session, d *db.DB, rows []*Payout) (map[int64]*Payout, error) {
	of, ids := make(map[int64]*Payout, len(rows)), make([]int64, len(rows))
	for i, p := range rows {
		of[p.ID], ids[i] = p, p.ID
	}
	var steps []Step
	if len(rows) > 0 {
		if err := q.Prepared(ctx, &steps, "SELECT "+d.Columns((*Step)(nil))+" FROM fund_steps WHERE payout_id IN (?)", ids); err != nil {
			return nil, fmt.Errorf("read the steps of payouts: %w", err)
		}
	}
	for _, s := range steps {
		*of[s.PayoutID].at(s.Step) = s.State
	}
	return of, nil
}

func one(ctx context.Context, q bun.IDB, s *bun.SelectQuery) (*Payout, error) {
	p := new(Payout)
	err := s.Model(p).Limit(1).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read a payout: %w", err)
	}
	return p, Fill(ctx, q, p)
}

// lock is lockAll for one payout. Errors: ErrNotFound.
func (m *Machine) lock(ctx context.Context, tx db.Tx, id int64) (*Payout, error) {
	all, err := m.lockAll(ctx, tx, []int64{id})
	if err == nil && all[id] == nil {
		err = ErrNotFound
	}
	return all[id], err
}

// lockAll locks and reads payouts for a change. Payouts come after orders, attempts and refunds
// in the order of locks, and before stock and accounts.
func (m *Machine) lockAll(ctx context.Context, tx db.Tx, ids []int64) (map[int64]*Payout, error) {
	return byIDs(ctx, tx, m.DB, ids, m.DB.ForUpdateText())
}

// Fill reads the steps of payouts into them.
func Fill(ctx context.Context, q bun.IDB, all ...*Payout) error {
	ids := make([]int64, len(all))
	of := make(map[int64]*Payout, len(all))
	for i, p := range all {
		ids[i], of[p.ID] = p.ID, p
	}
	steps, err := StepsOf(ctx, q, ids)
	for _, s := range steps {
		*of[s.PayoutID].at(s.Step) = s.State
	}
	return err
}

// at returns the field that has the state of a step.
func (p *Steps) at(step string) *StepState {
	switch step {
	case Debit:
		return &p.Debit
	case Credit:
		return &p.Credit
	}
	return &p.Reversal
}

// StepsOf reads the steps of payouts, each payout's in their order.
func StepsOf(ctx context.Context, q bun.IDB, ids []int64) ([]Step, error) {
	all := []Step{}
	if len(ids) == 0 {
		return all, nil
	}
	if err := q.NewSelect().Model(&all).Where("fs.payout_id IN (?)", bun.List(ids)).OrderExpr("fs.payout_id, fs.id").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the steps of payouts: %w", err)
	}
	return all, nil
}

// InTransit returns how much of a merchant's money is debited for open payouts, by currency, in
// minor units.
func InTransit(ctx context.Context, q bun.IDB, merchantID int64) (map[string]int64, error) {
	var rows []struct {
		Currency string
		Amount   int64
	}
	err := q.NewRaw(
		"SELECT currency, CAST(sum(amount) AS BIGINT) AS amount FROM payouts WHERE merchant_id = ? AND debited_at IS NOT NULL AND "+
			Moves.In("status", Moves.Open()...)+" GROUP BY currency", merchantID).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("sum a merchant's open payouts: %w", err)
	}
	sums := map[string]int64{}
	for _, r := range rows {
		sums[r.Currency] = r.Amount
	}
	return sums, nil
}
