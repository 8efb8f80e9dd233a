package settings

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"backstop/internal/access"
	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Grants has the permissions of the enabled own roles, by name.
type Grants map[string][]access.Permission

// GrantTo makes the own roles of each version known to the policy. Call it before Refresh.
func (s *Store) GrantTo(policy *access.Policy) { s.policy = policy }

// readGrants reads the own roles.
func readGrants(ctx context.Context, q bun.IDB) (Grants, error) {
	var rows []access.Own
	if err := q.NewSelect().Model(&rows).Column("code", "may").Where("ro.disabled_at IS NULL").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read roles: %w", err)
	}
	own := Grants{}
	for _, r := range rows {
		for _, word := range permissions(r.May) {
			own[r.Name] = append(own[r.Name], access.Permission(word))
		}
		own[r.Name] = slices.Clip(own[r.Name])
	}
	return own, nil
}

func permissions(stored string) []string {
	return strings.FieldsFunc(stored, func(r rune) bool { return r == ',' })
}

// Role returns a stored role, or nil.
func (s *Stored) Role(name string) *Role {
	r := s.roles[name]
	if r == nil {
		return nil
	}
	return &Role{Name: name, May: permissions(r.May), Enabled: r.DisabledAt == nil}
}

// Roles returns the names of all own roles, sorted.
func (s *Stored) Roles() []string { return sortedKeys(s.roles) }

// NewRole returns a new role with its defaults.
func NewRole(name string) *Role { return &Role{Name: name, Enabled: true} }

// role checks what the tags do not describe.
func (k *checker) role(v *Role) {
	if slices.Contains(access.BuiltIn, v.Name) {
		k.wrong("name", "%s is a built-in role: choose another name", v.Name)
	}
	for i, word := range v.May {
		at := fmt.Sprintf("may[%d]", i)
		switch permission := access.Permission(word); {
		case slices.Contains(access.Reserved, permission):
			k.wrong(at, "only built-in roles have %s, which decides who may do what", word)
		case !slices.Contains(access.Permissions, permission):
			k.wrong(at, "%s", unknownWord(word, grantable()))
		}
	}
	k.once("may[%d]", v.May)
}

// grantable are the permissions that own roles can have.
func grantable() (words []string) {
	for _, permission := range access.Permissions {
		if !slices.Contains(access.Reserved, permission) {
			words = append(words, string(permission))
		}
	}
	return words
}

// roleHeld checks that nobody loses a role unnoticed.
func (k *checker) roleHeld(v *Role, holders map[string][]string) {
	if held := holders[v.Name]; len(held) > 0 && !v.Enabled {
		k.wrong("enabled", "%s still has it: give them another role first", strings.Join(held, ", "))
	}
}

// role writes a role. Errors: db.ErrStale if somebody was given it meanwhile.
func (w *commit) role(ctx context.Context, v *Role) error {
	row := &access.Own{ID: w.env.DB.NewID(), Name: v.Name, May: strings.Join(v.May, ","), CreatedAt: w.now, UpdatedAt: w.now}
	if !v.Enabled {
		row.DisabledAt = &w.now
	}
	old := w.roles[v.Name]
	if old == nil {
		_, err := w.tx.NewInsert().Model(row).Exec(ctx)
		return err
	}
	row.ID = old.ID
	if _, err := w.tx.NewUpdate().Model(row).WherePK().Column("may", "updated_at", "disabled_at").Exec(ctx); err != nil {
		return err
	}
	holders, err := access.Holders(ctx, w.tx) // after the lock of the row, which whoever gives the role needs too
	if err == nil && !v.Enabled && len(holders[v.Name]) > 0 {
		return db.ErrStale
	}
	return err
}
