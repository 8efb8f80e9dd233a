package approval

import (
	"context"
	"errors"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/invalid"
	"backstop/internal/base/text"
)

// QueryAgain queries the supplier about a proposal that can still take effect, decides nothing, and
// returns it with the answer. Errors: ErrPerson, act.ErrNotFound, *act.Denied, ErrExpired,
// ErrEnded, act.ErrChanged, *act.FieldError.
func (d *Desk) QueryAgain(ctx context.Context, v Verdict) (*Approval, error) {
	a, action, err := d.find(ctx, v)
	if err != nil {
		return nil, err
	}
	if !d.has(v.By.Roles, access.QueryOrders) {
		return nil, &act.Denied{Permission: access.QueryOrders, Roles: d.o.Policy.RolesWith(access.QueryOrders)}
	}
	if action.Second.Query == nil {
		return nil, invalid.Field("action", text.Text{ZH: "这种处理不需要查询渠道", EN: "no supplier is queried for this"})
	}
	from := Waiting
	if a.State == Failed {
		from = Failed
	}
	if err := d.current(ctx, a, from); err != nil {
		return nil, err
	}
	reason, err := act.CheckReason(v.Reason)
	if err != nil {
		return nil, err
	}
	params, err := action.params(a.Params)
	if err != nil {
		return nil, err
	}
	s, err := action.find(ctx, d.o.DB.Read, a.ObjectID)
	if err == nil && !a.matches(s, from) {
		err = act.ErrChanged
	}
	if err != nil {
		return nil, err
	}
	var first bool
	err = d.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		if first, err = act.ClaimKey(ctx, tx, d.o.DB.Now(), v.Key); err != nil || !first {
			return err
		}
		if err := d.writeAudit(ctx, tx, a, "query", v.By, reason, nil); err != nil {
			return err
		}
		return act.SaveKey(ctx, tx, v.Key)
	})
	if err != nil || !first {
		return a, err
	}
	if _, err = d.queryFor(ctx, a, action, s, params); err != nil {
		if _, contrary := errors.AsType[*LiveError](err); !contrary {
			return nil, err
		}
	}
	return a, nil
}
