package access

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"backstop/internal/audit"
	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Operators manages the console's users. It is safe for concurrent use. Create one per process,
// because it bounds the memory used for password hashing.
type Operators struct {
	db     *db.DB
	audit  *audit.Log
	hasher hasher
	// unknown is the hash checked for unknown names, so that login takes as long for them as
	// for known ones.
	unknown string
}

// NewOperators returns the operators of the database. Changes made by commands are recorded in
// the audit.
func NewOperators(d *db.DB, log *audit.Log) *Operators {
	unknown := phc{memory: hashMemory, passes: hashPasses, threads: hashThreads, salt: make([]byte, saltSize), sum: make([]byte, hashSize)}
	return &Operators{db: d, audit: log, hasher: newHasher(), unknown: unknown.String()}
}

// Add creates an operator, limited to merchants if codes are given. With an empty password it generates and returns a one-time password,
// which must be changed at the first login. Errors: ErrName, ErrRole, ErrPassword,
// ErrExists, UnknownMerchants.
func (o *Operators) Add(ctx context.Context, name, roles, password string, merchants ...string) (oneTime string, err error) {
	if !nameForm.MatchString(name) {
		return "", ErrName
	}
	set, err := ParseRoles(roles)
	if err != nil {
		return "", err
	}
	if password == "" {
		oneTime = newOneTimePassword()
	}
	row := &Operator{Name: name, Roles: set}
	if err := o.add(ctx, row, cmp.Or(password, oneTime), password == "", strings.Join(merchants, ",")); err != nil {
		return "", err
	}
	return oneTime, nil
}

func (o *Operators) add(ctx context.Context, row *Operator, password string, oneTime bool, merchants string) error {
	if err := checkPassword(password); err != nil {
		return err
	}
	hash, err := o.hasher.hash(ctx, password)
	if err != nil {
		return fmt.Errorf("hash the password: %w", err)
	}
	now := o.db.Now()
	row.ID, row.PasswordHash, row.MustChange, row.PasswordExpiresAt = o.db.NewID(), hash, oneTime, oneTimeEnd(now, oneTime)
	row.CreatedAt, row.UpdatedAt = now, now
	return o.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		if err := o.insert(ctx, tx, row, merchants); err != nil {
			return err
		}
		return o.keep(ctx, tx, "operator.add", row)
	})
}

// insert adds a row. The name of a disabled operator who never signed in is free again, so that an
// invitation to a wrong name takes none away. Errors: ErrRole, ErrLimit, ErrExists, UnknownMerchants.
func (o *Operators) insert(ctx context.Context, tx db.Tx, row *Operator, merchants string) (err error) {
	if err := o.checkExist(ctx, tx, row.Roles); err != nil {
		return err
	}
	if row.Merchants, err = ParseMerchants(ctx, tx, merchants); err != nil {
		return err
	}
	if row.Roles.Has(Merchant) && row.Merchants == "" {
		return ErrLimit
	}
	if _, err := tx.NewRaw("DELETE FROM operators WHERE name = ? AND disabled_at IS NOT NULL AND signed_in_at IS NULL"+
		" AND NOT EXISTS (SELECT 1 FROM audit WHERE actor = ?)", row.Name, "operator:"+row.Name).Exec(ctx); err != nil {
		return fmt.Errorf("free the name %s: %w", row.Name, err)
	}
	// Rows that were written by hand may differ in what a login does not.
	var same int
	if err := tx.NewRaw("SELECT count(*) FROM operators WHERE lower(trim(name)) = ?", row.Name).Scan(ctx, &same); err != nil {
		return fmt.Errorf("find operator %s: %w", row.Name, err)
	}
	if same > 0 {
		return ErrExists
	}
	if _, err := tx.NewInsert().Model(row).Exec(ctx); db.IsUnique(err) {
		return ErrExists
	} else if err != nil {
		return fmt.Errorf("add operator %s: %w", row.Name, err)
	}
	return nil
}

// keep records a change of an operator by a command in the audit.
func (o *Operators) keep(ctx context.Context, tx db.Tx, action string, row *Operator) error {
	return o.audit.Write(ctx, tx, audit.Act{
		Actor: audit.Command(), Action: action, Object: "operator", ObjectID: row.Name, Params: params(row),
	})
}

func params(row *Operator) map[string]any {
	p := map[string]any{"role": row.Roles}
	if row.Merchants != "" {
		p["merchants"] = row.Merchants
	}
	return p
}

// oneTimeEnd returns when a one-time password set now expires; nil for any other password.
func oneTimeEnd(now int64, oneTime bool) *int64 {
	if !oneTime {
		return nil
	}
	end := now + oneTimeLife.Microseconds()
	return &end
}

// FirstAdmin is the name of the operator created at the first start.
const FirstAdmin = "admin"

// EnsureAdmin creates the operator FirstAdmin if there is no operator yet. Its one-time
// password comes from given or, if given is nil, is generated and returned. If several nodes
// start at once, only one creates it.
func (o *Operators) EnsureAdmin(ctx context.Context, given func() (string, error)) (oneTime string, made bool, err error) {
	var any int
	if err := o.db.Read.NewRaw("SELECT count(*) FROM operators").Scan(ctx, &any); err != nil {
		return "", false, fmt.Errorf("count operators: %w", err)
	}
	if any > 0 {
		return "", false, nil // most starts: no password needs to be hashed
	}
	password := ""
	if given == nil {
		oneTime = newOneTimePassword()
		password = oneTime
	} else if password, err = given(); err != nil {
		return "", false, err
	}
	if err = o.add(ctx, &Operator{Name: FirstAdmin, Roles: Admin}, password, true, ""); errors.Is(err, ErrExists) {
		return "", false, nil
	}
	return oneTime, err == nil, err
}

// List returns all operators by name, disabled ones included.
func (o *Operators) List(ctx context.Context) ([]Operator, error) {
	var rows []Operator
	if err := o.db.Read.NewSelect().Model(&rows).OrderExpr("op.name").Scan(ctx); err != nil {
		return nil, fmt.Errorf("list operators: %w", err)
	}
	return rows, nil
}

// WhoMay returns the names of the enabled operators who have the permission.
func (o *Operators) WhoMay(ctx context.Context, p *Policy, permission Permission) (names []string, err error) {
	all, err := o.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, op := range all {
		if op.DisabledAt == nil && p.Allows(op.Roles, permission) {
			names = append(names, op.Name)
		}
	}
	return names, nil
}

// find reads one operator. Errors: ErrNotFound, ErrDisabled.
func find(ctx context.Context, q *bun.SelectQuery) (*Operator, error) {
	row := new(Operator)
	err := q.Model(row).Scan(ctx)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, ErrNotFound
	case err != nil:
		return nil, fmt.Errorf("read operator: %w", err)
	case row.DisabledAt != nil:
		return row, ErrDisabled
	}
	return row, nil
}

// Named returns the operator with this name, even if disabled. Errors: ErrNotFound.
func Named(ctx context.Context, q bun.IDB, name string) (*Operator, error) {
	row, err := find(ctx, q.NewSelect().Where("op.name = ?", name))
	if errors.Is(err, ErrDisabled) {
		err = nil
	}
	return row, err
}

// ByID returns the enabled operator with this id. Errors: ErrNotFound, ErrDisabled.
func ByID(ctx context.Context, q bun.IDB, id int64) (*Operator, error) {
	return find(ctx, q.NewSelect().Where("op.id = ?", id))
}

// Enabled returns the enabled operators, by id.
func Enabled(ctx context.Context, q bun.IDB) ([]Operator, error) {
	var rows []Operator
	if err := q.NewSelect().Model(&rows).Where("op.disabled_at IS NULL").OrderExpr("op.id").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the enabled operators: %w", err)
	}
	return rows, nil
}

// Lock locks operators until the transaction ends and returns the enabled ones by id. None of
// them can be disabled or change roles meanwhile.
func (o *Operators) Lock(ctx context.Context, tx db.Tx, ids ...int64) (map[int64]*Operator, error) {
	return enabledOf(ctx, o.db.ForUpdate(tx.NewSelect()), ids)
}

// EnabledOf returns those of the operators who are enabled now, by id.
func (o *Operators) EnabledOf(ctx context.Context, ids ...int64) (map[int64]*Operator, error) {
	return enabledOf(ctx, o.db.Read.NewSelect(), ids)
}

func enabledOf(ctx context.Context, q *bun.SelectQuery, ids []int64) (map[int64]*Operator, error) {
	var rows []Operator
	if err := q.Model(&rows).Where("op.id IN (?)", bun.List(ids)).Where("op.disabled_at IS NULL").OrderExpr("op.id").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read operators: %w", err)
	}
	by := make(map[int64]*Operator, len(rows))
	for i := range rows {
		by[rows[i].ID] = &rows[i]
	}
	return by, nil
}

// Names returns the names of operators by id, disabled ones included.
func Names(ctx context.Context, q bun.IDB, ids []int64) (map[int64]string, error) {
	by := make(map[int64]string, len(ids))
	if len(ids) == 0 {
		return by, nil
	}
	var rows []Operator
	if err := q.NewSelect().Model(&rows).Column("id", "name").Where("op.id IN (?)", bun.List(ids)).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the names of operators: %w", err)
	}
	for _, op := range rows {
		by[op.ID] = op.Name
	}
	return by, nil
}

// IDOf returns the id of the operator with this name, even if disabled; 0 = none.
func IDOf(ctx context.Context, q bun.IDB, name string) (id int64, err error) {
	err = q.NewRaw("SELECT coalesce((SELECT id FROM operators WHERE name = ?), 0)", name).Scan(ctx, &id)
	if err != nil {
		return 0, fmt.Errorf("find operator %s: %w", name, err)
	}
	return id, nil
}

// Disable locks an operator out, by a command. Errors: those of DisableTx.
func (o *Operators) Disable(ctx context.Context, name string) error {
	return o.byCommand(ctx, "operator.disable", name, o.DisableTx)
}

// Enable lets a disabled operator in again, by a command. Errors: ErrNotFound, ErrNotDisabled.
func (o *Operators) Enable(ctx context.Context, name string) error {
	return o.byCommand(ctx, "operator.enable", name, o.EnableTx)
}

// SetRoles replaces an operator's roles, effective from the next request, by a command. Errors: those
// of SetRolesTx. Roles that the operator has already are no change.
func (o *Operators) SetRoles(ctx context.Context, name, roles string) error {
	return o.byCommand(ctx, "operator.role", name, func(ctx context.Context, tx db.Tx, name string) (*Operator, error) {
		return o.SetRolesTx(ctx, tx, name, roles)
	})
}

// byCommand makes a change and records it in the audit; a change that returns no operator was none.
func (o *Operators) byCommand(ctx context.Context, action, name string,
	change func(context.Context, db.Tx, string) (*Operator, error),
) error {
	return o.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		row, err := change(ctx, tx, name)
		if err != nil || row == nil {
			return err
		}
		return o.keep(ctx, tx, action, row)
	})
}

// DisableTx locks an operator out. The last enabled admin cannot be disabled, because only an
// admin can add operators; nor can the last lead, because only a lead can approve what everyone
// else proposes. Errors: ErrNotFound, ErrDisabled, ErrLastAdmin, ErrLastApprover.
func (o *Operators) DisableTx(ctx context.Context, tx db.Tx, name string) (*Operator, error) {
	row, err := o.replaceable(ctx, tx, name, "")
	if err != nil {
		return nil, err
	}
	now := o.db.Now()
	if _, err = tx.NewRaw("UPDATE operators SET disabled_at = ?, invite_hash = NULL, updated_at = ? WHERE id = ?", now, now,
		row.ID).Exec(ctx); err != nil {
		return nil, fmt.Errorf("disable operator %s: %w", name, err)
	}
	return row, nil
}

// EnableTx lets a disabled operator in again, with the password as it was. Errors: ErrNotFound,
// ErrNotDisabled.
func (o *Operators) EnableTx(ctx context.Context, tx db.Tx, name string) (*Operator, error) {
	row, err := find(ctx, o.db.ForUpdate(tx.NewSelect()).Where("op.name = ?", name))
	if err == nil {
		return nil, ErrNotDisabled
	}
	if !errors.Is(err, ErrDisabled) {
		return nil, err
	}
	// Sessions of before, some of which may be somebody else's by now, do not come back.
	if err := EndSessions(ctx, tx, row); err != nil {
		return nil, err
	}
	if _, err = tx.NewRaw("UPDATE operators SET disabled_at = NULL, updated_at = ? WHERE id = ?", o.db.Now(), row.ID).Exec(ctx); err != nil {
		return nil, fmt.Errorf("enable operator %s: %w", name, err)
	}
	return row, nil
}

// SetRolesTx replaces an operator's roles; nil = the operator has them already. Errors: ErrRole,
// ErrRoleLimit and those of DisableTx.
func (o *Operators) SetRolesTx(ctx context.Context, tx db.Tx, name, roles string) (*Operator, error) {
	set, err := ParseRoles(roles)
	if err != nil {
		return nil, err
	}
	if err := o.checkExist(ctx, tx, set); err != nil {
		return nil, err
	}
	row, err := o.replaceable(ctx, tx, name, set)
	if err != nil || row.Roles == set {
		return nil, err
	}
	if set.Has(Merchant) && row.Merchants == "" {
		return nil, ErrRoleLimit
	}
	if _, err := tx.NewRaw("UPDATE operators SET role = ?, updated_at = ? WHERE id = ?", set, o.db.Now(), row.ID).Exec(ctx); err != nil {
		return nil, fmt.Errorf("change the roles of %s: %w", name, err)
	}
	row.Roles = set
	return row, nil
}

// replaceable finds an operator who may lose all roles but those that stay, because others have
// them too. An operator who is limited to merchants is neither admin nor lead of the installation.
func (o *Operators) replaceable(ctx context.Context, tx db.Tx, name string, stay Roles) (*Operator, error) {
	// Lock all admins and leads by id: if two of them disable each other at once, only one
	// still finds the other enabled.
	var others []Operator
	q := tx.NewSelect().Model(&others).Where("op.role LIKE ? OR op.role LIKE ?", "%"+Admin+"%", "%"+Lead+"%").
		Where("op.disabled_at IS NULL AND op.merchants = ''").OrderExpr("op.id")
	if err := o.db.ForUpdate(q).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read admins and leads: %w", err)
	}
	row, err := find(ctx, tx.NewSelect().Model((*Operator)(nil)).Where("op.name = ?", name))
	if err != nil {
		return nil, err
	}
	for role, last := range map[string]error{Admin: ErrLastAdmin, Lead: ErrLastApprover} {
		if row.Merchants != "" || !row.Roles.Has(role) || stay.Has(role) {
			continue
		}
		if !slices.ContainsFunc(others, func(op Operator) bool { return op.Roles.Has(role) && op.ID != row.ID }) {
			return row, last
		}
	}
	return row, nil
}

// ResetPassword sets and returns a one-time password, which must be changed at the next login.
// Errors: ErrNotFound, ErrDisabled, ErrProvider.
func (o *Operators) ResetPassword(ctx context.Context, name string) (oneTime string, err error) {
	row, err := find(ctx, o.db.NewSelect().Model((*Operator)(nil)).Where("op.name = ?", name))
	if err != nil {
		return "", err
	}
	if err := checkOwnPassword(ctx, o.db.Read, row.ID); err != nil {
		return "", err
	}
	oneTime = newOneTimePassword()
	return oneTime, o.setPassword(ctx, row, oneTime, true, func(ctx context.Context, tx db.Tx) error {
		return o.keep(ctx, tx, "operator.reset_password", row)
	})
}

// ChangePassword replaces the password. Errors: ErrLogin, ErrExpired, ErrPassword.
func (o *Operators) ChangePassword(ctx context.Context, name, old, password string) error {
	row, err := o.Login(ctx, name, old)
	if err != nil {
		return err
	}
	if err := checkPassword(password); err != nil {
		return err
	}
	if password == old {
		return fmt.Errorf("%w: it is the same as before", ErrPassword)
	}
	return o.setPassword(ctx, row, password, false, func(context.Context, db.Tx) error { return nil })
}

// setPassword is a compare-and-set on the old hash: of two concurrent changes, the second fails
// because the password it was based on is no longer valid. then runs in the same transaction.
func (o *Operators) setPassword(ctx context.Context, row *Operator, password string, oneTime bool,
	then func(context.Context, db.Tx) error,
) error {
	hash, err := o.hasher.hash(ctx, password)
	if err != nil {
		return fmt.Errorf("hash the password: %w", err)
	}
	now := o.db.Now()
	return o.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		res, err := tx.NewRaw("UPDATE operators SET password_hash = ?, must_change = ?, password_expires_at = ?, updated_at = ?, invite_hash = NULL"+
			" WHERE id = ? AND password_hash = ? AND disabled_at IS NULL",
			hash, oneTime, oneTimeEnd(now, oneTime), now, row.ID, row.PasswordHash).Exec(ctx)
		if err != nil {
			return fmt.Errorf("set the password of %s: %w", row.Name, err)
		}
		if n, _ := res.RowsAffected(); n == 0 {
			return db.ErrStale
		}
		if err := EndSessions(ctx, tx, row); err != nil { // they were opened with the old password
			return err
		}
		return then(ctx, tx)
	})
}

// Login returns the operator with this name and password. It takes the same time for known and
// unknown names. Errors: ErrLogin, ErrExpired.
func (o *Operators) Login(ctx context.Context, name, password string) (*Operator, error) {
	row, err := find(ctx, o.db.Read.NewSelect().Model((*Operator)(nil)).Where("op.name = ?", name))
	known := err == nil && row.PasswordHash != "" // that of somebody invited is not set yet
	if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrDisabled) {
		return nil, err
	}
	if len(password) > 4*maxPassword {
		password = "" // no password is that long; do not spend time hashing megabytes
	}
	stored := o.unknown
	if known {
		stored = row.PasswordHash
	}
	ok, err := o.hasher.matches(ctx, password, stored)
	if err != nil {
		return nil, fmt.Errorf("check the password of %s: %w", name, err)
	}
	if !known || !ok {
		return nil, ErrLogin
	}
	if row.expired(o.db.Now()) {
		return nil, ErrExpired
	}
	return row, nil
}
