package approval

import (
	"context"
	"fmt"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Request is a merchant's request that operators decide.
type Request struct {
	Action, Object, ObjectID string
	OrderNo                  string
	MerchantID               int64
	Merchant                 string // its code
	Version                  int64  // of the object
	Amount                   int64  // minor units
	Currency                 string
	Reason                   string
}

// Ask writes a proposal whose maker is a merchant, in the transaction that creates its object.
// It always waits for an operator, since a merchant's key is not a person.
func (d *Desk) Ask(ctx context.Context, tx db.Tx, r Request) (*Approval, error) {
	action, err := d.action(r.Object, r.Action)
	if err != nil {
		return nil, err
	}
	now := d.o.DB.Now()
	a := &Approval{
		ID: d.o.DB.NewID(), Action: action.Name, Object: action.Object, ObjectID: r.ObjectID, OrderNo: r.OrderNo, MerchantID: r.MerchantID,
		Version: r.Version, Amount: r.Amount, Currency: r.Currency, Params: []byte("{}"), Reason: r.Reason, Maker: r.MerchantID,
		MakerKind: ByMerchant,
		Second:    true, State: Waiting, MadeAt: now, ExpiresAt: now + d.o.Life.Microseconds(),
	}
	if a.Hash, err = Sum(a); err != nil {
		return nil, err
	}
	if _, err := tx.NewInsert().Model(a).Exec(ctx); err != nil {
		return nil, fmt.Errorf("write a proposal: %w", err)
	}
	return a, d.writeAudit(ctx, tx, a, "propose", act.Actor{Name: ByMerchant + ":" + r.Merchant}, a.Reason, nil)
}

// Recall withdraws a merchant's proposal. It must run before the object is locked, because
// approvals come first in the order of locks; the caller changes the object. A proposal that no
// longer waits stays as it is.
func (d *Desk) Recall(ctx context.Context, tx db.Tx, id int64, merchant string) error {
	a, err := scan(ctx, d.o.DB.ForUpdate(tx.NewSelect()), id)
	if err != nil || a.State != Waiting {
		return err
	}
	now := d.o.DB.Now()
	a.DecidedAt = &now
	if err := d.move(ctx, tx, a, Withdrawn, "decided_at"); err != nil {
		return err
	}
	return d.writeAudit(ctx, tx, a, "withdraw", act.Actor{Name: ByMerchant + ":" + merchant}, "", nil)
}

// Maker is who made a proposal: an operator, a merchant, or, with the id 0, a command.
type Maker struct {
	Kind string
	ID   int64
}

// MakerOf finds the maker whom Names gives this name; nil = none.
func MakerOf(ctx context.Context, q bun.IDB, name string) (*Maker, error) {
	m := Maker{Kind: ByOperator}
	var err error
	switch code, ok := strings.CutPrefix(name, ByMerchant+":"); {
	case name == ByCommand:
		return &m, nil
	case ok:
		m.Kind = ByMerchant
		err = q.NewRaw("SELECT coalesce((SELECT id FROM merchants WHERE code = ?), 0)", code).Scan(ctx, &m.ID)
	default:
		m.ID, err = access.IDOf(ctx, q, name)
	}
	if err != nil || m.ID == 0 {
		return nil, err
	}
	return &m, nil
}

// Names returns the names of the makers and checkers of approvals by id: an operator's name,
// "merchant:" with the merchant's code, or "command" for 0.
func Names(ctx context.Context, q bun.IDB, all ...*Approval) (map[int64]string, error) {
	var people, merchants []int64
	for _, a := range all {
		if a.MakerKind == ByMerchant {
			merchants = append(merchants, a.Maker)
		} else {
			people = append(people, a.Maker)
		}
		if a.Checker != nil {
			people = append(people, *a.Checker)
		}
	}
	names, err := access.Names(ctx, q, people)
	if err != nil {
		return nil, err
	}
	names[0] = ByCommand
	if len(merchants) == 0 {
		return names, nil
	}
	var rows []struct {
		ID   int64
		Code string
	}
	if err := q.NewRaw("SELECT id, code FROM merchants WHERE id IN (?)", bun.List(merchants)).Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("read the codes of merchants: %w", err)
	}
	for _, m := range rows {
		names[m.ID] = ByMerchant + ":" + m.Code
	}
	return names, nil
}
