package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"backstop/internal/audit"
	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Errors of sign-ins at a provider.
var (
	ErrNoRole = errors.New("none of the person's groups has a role")
	// ErrNoMerchant means that the provider limits the person to merchants and names none.
	ErrNoMerchant = errors.New("the provider limits the person to no merchant")
	ErrLinked     = errors.New("this operator, or this subject of the provider, is linked already")
	// ErrProvider keeps people who sign in at the provider from also having a password.
	ErrProvider = errors.New("this operator signs in at the provider: password and second factor are set there")
)

// Identity is who a person is at a provider, as it said at one sign-in.
type Identity struct {
	Issuer, Subject string
	Name            string // to have here; "" = the provider gives none that is valid here
	Roles           Roles  // of the person's groups; "" = none
	// Merchants are the codes to which the provider limits the person, separated by commas; "" = no limit,
	// nil = it does not decide.
	Merchants  *string
	NoMerchant bool // it limits the person and names none
}

// IsName reports whether an operator may have the name.
func IsName(name string) bool { return nameForm.MatchString(name) }

// SignInAs returns the operator of an identity with the roles that it has now. The first sign-in
// adds the operator. A person without a role, or limited to no merchant or to one that there is not, loses
// sessions and personal tokens. Errors: ErrNoRole, ErrNoMerchant, ErrDisabled, ErrName, ErrLimit, UnknownMerchants, and ErrExists if somebody
// else has the name.
func (o *Operators) SignInAs(ctx context.Context, id Identity, remote string) (*Operator, error) {
	row, refused, err := o.signInAs(ctx, id, remote)
	if errors.Is(err, db.ErrStale) { // the same person signed in elsewhere for the first time
		row, refused, err = o.signInAs(ctx, id, remote)
	}
	switch {
	case err != nil:
		return nil, err
	case refused != nil:
		return nil, refused
	}
	return row, nil
}

// endsSessions are the refusals of people who may not be here at all any more.
var endsSessions = []error{ErrNoRole, ErrNoMerchant, ErrMerchants, ErrLimit}

// signInAs is SignInAs; refused says why somebody who has signed in before may not any more.
func (o *Operators) signInAs(ctx context.Context, id Identity, remote string) (row *Operator, refused, err error) {
	err = o.db.Tx(ctx, func(ctx context.Context, tx db.Tx) (err error) {
		if id.Roles, err = o.existing(ctx, tx, id.Roles); err != nil {
			return err
		}
		row, err = find(ctx, o.db.ForUpdate(tx.NewSelect()).
			Where("op.id = (SELECT operator_id FROM operator_identities WHERE issuer = ? AND subject = ?)", id.Issuer, id.Subject))
		switch {
		case errors.Is(err, ErrNotFound):
			row, err = o.join(ctx, tx, id, remote)
			return err
		case err != nil:
			return err
		}
		refused = o.adopt(ctx, tx, row, id, remote)
		if slices.ContainsFunc(endsSessions, func(end error) bool { return errors.Is(refused, end) }) {
			return errors.Join(EndSessions(ctx, tx, row), RevokeTokens(ctx, tx, row))
		}
		return refused
	})
	return row, refused, err
}

// mayEnter reports whether the provider gives the person a role and, of a limit, a merchant. Errors:
// ErrNoRole, ErrNoMerchant.
func (id Identity) mayEnter() error {
	switch {
	case id.Roles == "":
		return ErrNoRole
	case id.NoMerchant:
		return ErrNoMerchant
	}
	return nil
}

// join adds the operator of an identity. Errors: those of mayEnter, ErrName, ErrExists, UnknownMerchants,
// db.ErrStale.
func (o *Operators) join(ctx context.Context, tx db.Tx, id Identity, remote string) (*Operator, error) {
	if err := id.mayEnter(); err != nil {
		return nil, err
	}
	if !IsName(id.Name) {
		return nil, ErrName
	}
	now := o.db.Now()
	row := &Operator{ID: o.db.NewID(), Name: id.Name, Roles: id.Roles, CreatedAt: now, UpdatedAt: now, SignedInAt: &now}
	_, err := tx.NewRaw("INSERT INTO operator_identities (issuer, subject, operator_id, created_at) VALUES (?, ?, ?, ?)", id.Issuer, id.Subject,
		row.ID, now).Exec(ctx)
	if db.IsUnique(err) {
		return nil, db.ErrStale
	}
	if err != nil {
		return nil, fmt.Errorf("add the identity of %s: %w", id.Name, err)
	}
	var merchants string
	if id.Merchants != nil {
		merchants = *id.Merchants
	}
	if err := o.insert(ctx, tx, row, merchants); err != nil {
		return nil, err
	}
	joined := params(row)
	joined["issuer"] = id.Issuer
	return row, o.byProvider(ctx, tx, "operator.join", row, remote, joined)
}

// adopt gives the operator the roles of the groups, and the limit where the provider sets it. The provider
// decides, so that the last admin can lose the role too: the operator for emergencies has a password.
// Errors: those of mayEnter, ErrLimit, UnknownMerchants; nothing is changed then.
func (o *Operators) adopt(ctx context.Context, tx db.Tx, row *Operator, id Identity, remote string) (err error) {
	if err := id.mayEnter(); err != nil {
		return err
	}
	was, limit := row.Roles, row.Merchants
	if id.Merchants != nil {
		if limit, err = ParseMerchants(ctx, tx, *id.Merchants); err != nil {
			return err
		}
	}
	if id.Roles.Has(Merchant) && limit == "" {
		return ErrLimit
	}
	if was == id.Roles && limit == row.Merchants {
		return nil
	}
	if _, err := tx.NewRaw("UPDATE operators SET role = ?, merchants = ?, updated_at = ? WHERE id = ?", id.Roles, limit, o.db.Now(),
		row.ID).Exec(ctx); err != nil {
		return fmt.Errorf("change the roles of %s: %w", row.Name, err)
	}
	row.Roles, row.Merchants = id.Roles, limit
	changed := params(row)
	changed["was"], changed["issuer"] = was, id.Issuer
	return o.byProvider(ctx, tx, "operator.role", row, remote, changed)
}

// Link makes somebody at a provider sign in as an operator who had a password until now, by a command:
// password, second factor and sessions are gone. Errors: ErrNotFound, ErrDisabled, ErrLinked.
func (o *Operators) Link(ctx context.Context, name, issuer, subject string) error {
	return o.byCommand(ctx, "operator.link", name, func(ctx context.Context, tx db.Tx, name string) (*Operator, error) {
		row, err := find(ctx, o.db.ForUpdate(tx.NewSelect()).Where("op.name = ?", name))
		if err != nil {
			return nil, err
		}
		now := o.db.Now()
		_, err = tx.NewRaw("INSERT INTO operator_identities (issuer, subject, operator_id, created_at) VALUES (?, ?, ?, ?)", issuer, subject,
			row.ID, now).Exec(ctx)
		if db.IsUnique(err) {
			return nil, ErrLinked
		}
		if err != nil {
			return nil, fmt.Errorf("link %s: %w", name, err)
		}
		if _, err := tx.NewRaw("UPDATE operators SET password_hash = '', must_change = ?, password_expires_at = NULL, invite_hash = NULL,"+
			" updated_at = ? WHERE id = ?", false, now, row.ID).Exec(ctx); err != nil {
			return nil, fmt.Errorf("remove the password of %s: %w", name, err)
		}
		if err := RemoveSecond(ctx, tx, row); err != nil && !errors.Is(err, ErrNoSecond) {
			return nil, err
		}
		return row, EndSessions(ctx, tx, row)
	})
}

// byProvider records in the audit what a sign-in changed.
func (o *Operators) byProvider(ctx context.Context, tx db.Tx, action string, row *Operator, remote string, params map[string]any) error {
	return o.audit.Write(ctx, tx, audit.Act{
		Actor: "operator:" + row.Name, Action: action, Object: "operator", ObjectID: row.Name, Params: params, Remote: remote,
	})
}

// IssuerOf returns the provider at which an operator signs in; "" = none, but by password.
func IssuerOf(ctx context.Context, q bun.IDB, operator int64) (issuer string, err error) {
	err = q.NewRaw("SELECT issuer FROM operator_identities WHERE operator_id = ?", operator).Scan(ctx, &issuer)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("read the identity of an operator: %w", err)
	}
	return issuer, nil
}

// checkOwnPassword refuses a password for somebody who signs in at a provider. Errors: ErrProvider.
func checkOwnPassword(ctx context.Context, q bun.IDB, operator int64) error {
	issuer, err := IssuerOf(ctx, q, operator)
	if err == nil && issuer != "" {
		return ErrProvider
	}
	return err
}
