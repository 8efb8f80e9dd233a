package access

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// AllRoles lists the built-in roles of the installation's own people.
var AllRoles = []string{Viewer, Support, Ops, Finance, Lead, Admin, Auditor}

// BuiltIn lists all built-in roles.
var BuiltIn = append(slices.Clone(AllRoles), Merchant)

// Roles are the roles in which somebody acts: a set, as sorted names joined by commas. "" is
// unknown, as those of a merchant, a service, a command or an operator who is gone: it has no
// role, so it has no permission, and never stands for any role.
type Roles string

// RolesOf returns the set of these roles.
func RolesOf(names ...string) Roles {
	names = slices.Clone(names)
	slices.Sort(names)
	return Roles(strings.Join(slices.Compact(names), ","))
}

// ParseRoles reads one role, or several separated by commas, in any order, whether or not there are
// such roles. Errors: ErrRole.
func ParseRoles(text string) (Roles, error) {
	names := strings.Split(text, ",")
	for i, name := range names {
		if names[i] = strings.TrimSpace(name); !nameForm.MatchString(names[i]) {
			return "", ErrRole
		}
	}
	return RolesOf(names...), nil
}

// Names returns the names of the roles; of an unknown set, none.
func (r Roles) Names() []string {
	if r == "" {
		return nil
	}
	return strings.Split(string(r), ",")
}

// Has reports whether the role is in the set.
func (r Roles) Has(role string) bool { return slices.Contains(r.Names(), role) }

// HasAny reports whether one of the roles is in the set; of an unknown set, none is.
func (r Roles) HasAny(roles ...string) bool { return slices.ContainsFunc(roles, r.Has) }

// Own is a role of this installation, besides the built-in ones.
type Own struct {
	bun.BaseModel `bun:"table:roles,alias:ro"`

	ID         int64  `bun:"id,pk"`
	Name       string `bun:"code"`
	May        string `bun:"may"` // permissions, joined by commas
	CreatedAt  int64  `bun:"created_at"`
	UpdatedAt  int64  `bun:"updated_at"`
	DisabledAt *int64 `bun:"disabled_at"` // nobody has it, and nobody is given it
}

// existing returns those of the roles that there are. Own ones are locked, so that they stay until the
// transaction ends.
func (o *Operators) existing(ctx context.Context, tx db.Tx, r Roles) (Roles, error) {
	names := slices.DeleteFunc(r.Names(), func(role string) bool { return !slices.Contains(BuiltIn, role) })
	if len(names) == len(r.Names()) {
		return r, nil
	}
	var own []Own
	q := o.db.ForUpdate(tx.NewSelect().Model(&own).Where("ro.code IN (?)", bun.List(r.Names())).Where("ro.disabled_at IS NULL"))
	if err := q.OrderExpr("ro.id").Scan(ctx); err != nil {
		return "", fmt.Errorf("find roles: %w", err)
	}
	for _, role := range own {
		names = append(names, role.Name)
	}
	return RolesOf(names...), nil
}

// Undeclared returns those of the roles that are neither built-in nor were ever declared.
func Undeclared(ctx context.Context, q bun.IDB, roles []string) ([]string, error) {
	var own []string
	if err := q.NewRaw("SELECT code FROM roles").Scan(ctx, &own); err != nil {
		return nil, fmt.Errorf("read roles: %w", err)
	}
	return slices.DeleteFunc(slices.Clone(roles), func(role string) bool {
		return slices.Contains(BuiltIn, role) || slices.Contains(own, role)
	}), nil
}

// checkExist refuses roles that there are not. Errors: ErrRole.
func (o *Operators) checkExist(ctx context.Context, tx db.Tx, r Roles) error {
	found, err := o.existing(ctx, tx, r)
	if err == nil && found != r {
		return ErrRole
	}
	return err
}

// Holders returns the names of the enabled operators by the own role that they have.
func Holders(ctx context.Context, q bun.IDB) (map[string][]string, error) {
	all, err := Enabled(ctx, q)
	if err != nil {
		return nil, err
	}
	holders := map[string][]string{}
	for _, op := range all {
		for _, role := range op.Roles.Names() {
			if !slices.Contains(BuiltIn, role) {
				holders[role] = append(holders[role], op.Name)
			}
		}
	}
	return holders, nil
}
