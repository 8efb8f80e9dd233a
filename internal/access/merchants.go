package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// UnknownMerchants names codes that no merchant has.
type UnknownMerchants []string

// ErrMerchants is every UnknownMerchants.
var ErrMerchants = errors.New("there is no such merchant")

// Is reports whether the error is meant.
func (u UnknownMerchants) Is(target error) bool { return target == ErrMerchants }

func (u UnknownMerchants) Error() string { return "there is no merchant " + strings.Join(u, ", ") }

// Merchants limits an operator or a service to merchants: their sorted codes, joined by commas.
// "" = no limit.
type Merchants string

// Codes returns the codes; without a limit, none.
func (m Merchants) Codes() []string { return Roles(m).Names() }

// ParseMerchants reads codes separated by commas; "" = no limit. Errors: UnknownMerchants.
func ParseMerchants(ctx context.Context, q bun.IDB, text string) (Merchants, error) {
	codes := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	if len(codes) == 0 {
		return "", nil
	}
	var known []string
	if err := q.NewRaw("SELECT code FROM merchants WHERE code IN (?)", bun.List(codes)).Scan(ctx, &known); err != nil {
		return "", fmt.Errorf("find merchants: %w", err)
	}
	if unknown := slices.DeleteFunc(codes, func(code string) bool { return slices.Contains(known, code) }); len(unknown) > 0 {
		return "", UnknownMerchants(unknown)
	}
	return Merchants(RolesOf(known...)), nil
}

// SetMerchants limits an operator to merchants by a command; "" = no limit. Errors: those of
// SetMerchantsTx.
func (o *Operators) SetMerchants(ctx context.Context, name, codes string) error {
	return o.byCommand(ctx, "operator.merchants", name, func(ctx context.Context, tx db.Tx, name string) (*Operator, error) {
		return o.SetMerchantsTx(ctx, tx, name, codes)
	})
}

// SetMerchantsTx is SetMerchants within a transaction. Whoever is limited is no admin or lead of the
// installation any more. Errors: UnknownMerchants, ErrLimit and those of DisableTx.
func (o *Operators) SetMerchantsTx(ctx context.Context, tx db.Tx, name, codes string) (*Operator, error) {
	limit, err := ParseMerchants(ctx, tx, codes)
	if err != nil {
		return nil, err
	}
	var stay Roles
	if limit == "" {
		stay = RolesOf(AllRoles...)
	}
	row, err := o.replaceable(ctx, tx, name, stay)
	if err != nil {
		return nil, err
	}
	if row.Roles.Has(Merchant) && limit == "" {
		return nil, ErrLimit
	}
	row.Merchants = limit
	if _, err := tx.NewRaw("UPDATE operators SET merchants = ?, updated_at = ? WHERE id = ?", limit, o.db.Now(), row.ID).Exec(ctx); err != nil {
		return nil, fmt.Errorf("limit %s to merchants: %w", name, err)
	}
	return row, nil
}
