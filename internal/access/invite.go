package access

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"backstop/internal/base/db"
	"backstop/internal/base/seal"
)

// invitePrefix lets operators and secret scanners recognize the link's token.
const invitePrefix = "bsi_"

// Invitation is the link by which an operator sets a password, once, within 24 hours. Only a hash of
// its token is stored.
type Invitation struct {
	Name  string
	Token string
	Until int64 // Unix µs
}

func newInvitation(name string, now int64) (in *Invitation, hash string) {
	in = &Invitation{Name: name, Token: invitePrefix + rand.Text(), Until: now + oneTimeLife.Microseconds()}
	return in, seal.HashToken(in.Token)
}

// InviteTx adds an operator who can sign in once a password is set by the link. Errors: ErrName,
// ErrRole, ErrExists, UnknownMerchants.
func (o *Operators) InviteTx(ctx context.Context, tx db.Tx, name, roles, merchants string) (*Invitation, error) {
	if !nameForm.MatchString(name) {
		return nil, ErrName
	}
	set, err := ParseRoles(roles)
	if err != nil {
		return nil, err
	}
	now := o.db.Now()
	in, hash := newInvitation(name, now)
	return in, o.insert(ctx, tx, &Operator{
		ID: o.db.NewID(), Name: name, Roles: set, MustChange: true, CreatedAt: now, UpdatedAt: now, PasswordExpiresAt: &in.Until,
		InviteHash: &hash,
	}, merchants)
}

// InviteAgainTx takes the password of an operator away, ends all sessions, and returns the link by
// which a new one is set. Errors: ErrNotFound, ErrDisabled, ErrProvider.
func (o *Operators) InviteAgainTx(ctx context.Context, tx db.Tx, name string) (*Invitation, error) {
	row, err := find(ctx, o.db.ForUpdate(tx.NewSelect()).Where("op.name = ?", name))
	if err != nil {
		return nil, err
	}
	if err := checkOwnPassword(ctx, tx, row.ID); err != nil {
		return nil, err
	}
	now := o.db.Now()
	in, hash := newInvitation(name, now)
	if _, err := tx.NewRaw("UPDATE operators SET password_hash = '', must_change = ?, password_expires_at = ?, invite_hash = ?,"+
		" updated_at = ? WHERE id = ?", true, in.Until, hash, now, row.ID).Exec(ctx); err != nil {
		return nil, fmt.Errorf("reset the password of %s: %w", name, err)
	}
	return in, EndSessions(ctx, tx, row)
}

// Invited returns the operator whom a link invites. Errors: ErrInvitation.
func (o *Operators) Invited(ctx context.Context, token string) (*Operator, error) {
	row, err := find(ctx, o.db.NewSelect().Where("op.invite_hash = ?", seal.HashToken(token)))
	switch {
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrDisabled):
		return nil, ErrInvitation
	case err != nil:
		return nil, err
	case row.expired(o.db.Now()):
		return nil, ErrInvitation
	}
	return row, nil
}

// Accept sets the password of whom a link invites, and uses the link up. then runs in the same
// transaction. Errors: ErrInvitation, ErrPassword.
func (o *Operators) Accept(ctx context.Context, token, password string,
	then func(context.Context, db.Tx, *Operator) error,
) (*Operator, error) {
	row, err := o.Invited(ctx, token)
	if err != nil {
		return nil, err
	}
	if err := checkPassword(password); err != nil {
		return nil, err
	}
	err = o.setPassword(ctx, row, password, false, func(ctx context.Context, tx db.Tx) error { return then(ctx, tx, row) })
	if errors.Is(err, db.ErrStale) { // somebody was faster
		return nil, ErrInvitation
	}
	row.MustChange = false
	return row, err
}
