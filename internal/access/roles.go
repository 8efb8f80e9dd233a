package access

import (
	"database/sql/driver"
	"fmt"
	"slices"
)

// AllRoles lists all roles.
var AllRoles = []string{Viewer, Support, Ops, Finance, Lead, Admin, Auditor}

// Roles are the roles in which somebody acts: a set, of one role for now. The zero value is
// unknown, as those of a merchant, a service, a command or an operator who is gone: it has no
// role, so it has no permission, and never stands for any role.
type Roles struct{ role string }

// RolesOf returns the set of one role. A text that is no role is unknown.
func RolesOf(role string) Roles {
	if !slices.Contains(AllRoles, role) {
		return Roles{}
	}
	return Roles{role}
}

// Has reports whether the role is in the set.
func (r Roles) Has(role string) bool { return r.HasAny(role) }

// HasAny reports whether one of the roles is in the set; of an unknown set, none is.
func (r Roles) HasAny(roles ...string) bool { return r != Roles{} && slices.Contains(roles, r.role) }

// String returns the stored form; "" = unknown.
func (r Roles) String() string { return r.role }

// Value implements driver.Valuer.
func (r Roles) Value() (driver.Value, error) { return r.role, nil }

// Scan implements sql.Scanner.
func (r *Roles) Scan(stored any) error {
	switch text := stored.(type) {
	case nil:
		*r = Roles{}
	case string:
		*r = RolesOf(text)
	case []byte:
		*r = RolesOf(string(text))
	default:
		return fmt.Errorf("read roles: %T is no text", stored)
	}
	return nil
}
