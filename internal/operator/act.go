// Package operator has the acts on the console's users: who may come in, and as what.
package operator

import (
	"context"
	"errors"
	"fmt"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Audit names of the acts, and of their object. The commands record the same.
const (
	InviteAct       = "operator.invite"
	RoleAct         = "operator.role"
	MerchantsAct    = "operator.merchants"
	DisableAct      = "operator.disable"
	EnableAct       = "operator.enable"
	ResetAct        = "operator.reset_password"
	EndSessionsAct  = "operator.end_sessions"
	RevokeTokensAct = "operator.revoke_tokens"
	ResetSecondAct  = "operator.reset_second"
	Object          = "operator"
)

// role is what InviteAct and RoleAct give.
type role struct {
	Role string `json:"role" required:"true" max:"500" doc:"The operator's roles, separated by commas."`
}

// merchants is what MerchantsAct gives.
type merchants struct {
	Merchants string `json:"merchants" max:"2000" doc:"Codes of the merchants to which the operator is limited, separated by commas; none = all."`
}

// invitation is what InviteAct gives.
type invitation struct {
	role
	merchants
}

// Kinds returns the acts on the operator named by Ref.ID. InviteAct and ResetAct return an
// *access.Invitation once, after the commit. Errors: those of access.Operators, and access.ErrSelf.
func Kinds(o *access.Operators) []act.Kind {
	kind := func(name string, params act.Params, do func(context.Context, db.Tx, act.Input, string) (act.Outcome, error)) act.Kind {
		return act.Kind{
			Name: name, Object: Object, Permission: access.ManageOperators, Fresh: true, Params: params, Load: act.ByID(load),
			Do: act.Each(func(ctx context.Context, tx db.Tx, in act.Input, s act.Subject) (act.Outcome, error) {
				return do(ctx, tx, in, s.ID)
			}),
		}
	}
	changing := func(name string, change func(context.Context, db.Tx, string) (*access.Operator, error)) act.Kind {
		return kind(name, act.Params{}, func(ctx context.Context, tx db.Tx, in act.Input, name string) (act.Outcome, error) {
			if isSelf(in.By, name) {
				return act.Outcome{}, access.ErrSelf
			}
			row, err := change(ctx, tx, name)
			if err != nil {
				return act.Outcome{}, err
			}
			return act.Outcome{Details: map[string]any{"role": row.Roles}}, nil
		})
	}
	ending := func(name string, end func(context.Context, db.Tx, *access.Operator) error) act.Kind {
		return kind(name, act.Params{}, func(ctx context.Context, tx db.Tx, _ act.Input, name string) (act.Outcome, error) {
			row, err := access.Named(ctx, tx, name)
			if err != nil {
				return act.Outcome{}, err
			}
			return act.Outcome{}, end(ctx, tx, row)
		})
	}
	invite := func(ctx context.Context, tx db.Tx, in act.Input, name string) (act.Outcome, error) {
		p := in.Params.(invitation)
		return invited(map[string]any{"role": p.Role, "merchants": p.Merchants})(o.InviteTx(ctx, tx, name, p.Role, p.Merchants))
	}
	inviting := kind(InviteAct, act.ParamsOf[invitation](), invite)
	inviting.Load = act.ByID(func(_ context.Context, _ bun.IDB, name string) (act.Subject, error) {
		return act.Subject{ID: name}, nil // nobody yet
	})
	return []act.Kind{
		inviting,
		kind(RoleAct, act.ParamsOf[role](), setRoles(o)),
		kind(MerchantsAct, act.ParamsOf[merchants](), limit(o)),
		changing(DisableAct, o.DisableTx), changing(EnableAct, o.EnableTx),
		kind(ResetAct, act.Params{}, func(ctx context.Context, tx db.Tx, in act.Input, name string) (act.Outcome, error) {
			if isSelf(in.By, name) {
				return act.Outcome{}, access.ErrSelf
			}
			return invited(nil)(o.InviteAgainTx(ctx, tx, name))
		}),
		ending(ResetSecondAct, access.ResetSecondTx),
		ending(EndSessionsAct, access.EndSessions), ending(RevokeTokensAct, access.RevokeTokens),
	}
}

// setRoles replaces an operator's roles.
func setRoles(o *access.Operators) func(context.Context, db.Tx, act.Input, string) (act.Outcome, error) {
	return func(ctx context.Context, tx db.Tx, in act.Input, name string) (act.Outcome, error) {
		if isSelf(in.By, name) {
			return act.Outcome{}, access.ErrSelf
		}
		was, err := access.Named(ctx, tx, name)
		if err != nil {
			return act.Outcome{}, err
		}
		r := in.Params.(role).Role
		_, err = o.SetRolesTx(ctx, tx, name, r)
		return act.Outcome{Details: map[string]any{"role": r, "was": was.Roles}}, err
	}
}

// limit limits an operator to merchants.
func limit(o *access.Operators) func(context.Context, db.Tx, act.Input, string) (act.Outcome, error) {
	return func(ctx context.Context, tx db.Tx, in act.Input, name string) (act.Outcome, error) {
		if isSelf(in.By, name) {
			return act.Outcome{}, access.ErrSelf
		}
		was, err := access.Named(ctx, tx, name)
		if err != nil {
			return act.Outcome{}, err
		}
		row, err := o.SetMerchantsTx(ctx, tx, name, in.Params.(merchants).Merchants)
		if err != nil {
			return act.Outcome{}, err
		}
		return act.Outcome{Details: map[string]any{"merchants": row.Merchants, "was": was.Merchants}}, nil
	}
}

func isSelf(by act.Actor, name string) bool { return by.Name == "operator:"+name }

// invited shows an invitation once, after the commit.
func invited(details map[string]any) func(*access.Invitation, error) (act.Outcome, error) {
	return func(in *access.Invitation, err error) (act.Outcome, error) {
		return act.Outcome{Details: details, After: func(context.Context) (any, error) { return in, nil }}, err
	}
}

func load(ctx context.Context, q bun.IDB, name string) (act.Subject, error) {
	row, err := access.Named(ctx, q, name)
	if errors.Is(err, access.ErrNotFound) {
		return act.Subject{}, act.ErrNotFound
	}
	if err != nil {
		return act.Subject{}, fmt.Errorf("load an operator: %w", err)
	}
	return act.Subject{Row: row.ID, ID: row.Name, Value: row}, nil
}
