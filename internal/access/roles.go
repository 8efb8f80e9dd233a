package access

import (
	"slices"
	"strings"
)

// AllRoles lists all roles.
var AllRoles = []string{Viewer, Support, Ops, Finance, Lead, Admin, Auditor}

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

// ParseRoles reads one role, or several separated by commas, in any order. Errors: ErrRole.
func ParseRoles(text string) (Roles, error) {
	names := strings.Split(text, ",")
	for i, name := range names {
		if names[i] = strings.TrimSpace(name); !slices.Contains(AllRoles, names[i]) {
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
