// Package access manages the users of the installation: console operators with their sessions
// and roles, and the API tokens of services.
package access

import (
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/uptrace/bun"
)

// Built-in roles of an operator; their permissions are in policy.csv.
const (
	Viewer  = "viewer"
	Support = "support"
	Ops     = "ops"
	Finance = "finance"
	Lead    = "lead"
	Admin   = "admin"
	Auditor = "auditor"
	// Merchant is for a merchant's own people: whoever has it is limited to merchants.
	Merchant = "merchant"
)

// Errors that a caller can act on.
var (
	ErrName = errors.New("bad name: use 1 to 64 of a-z, 0-9, dot, - and _, beginning with a letter or digit")
	ErrRole = errors.New("unknown role: use one or more of " + strings.Join(BuiltIn, ", ") + " and your own, separated by commas")
	// ErrRoleLimit and ErrLimit keep the role merchant to those who are limited; they blame the roles and the limit.
	ErrRoleLimit = errors.New("the role merchant is for those who are limited to merchants: limit the operator first")
	ErrLimit     = errors.New("the role merchant needs a limit: name the operator's merchants")
	ErrExists    = errors.New("the name is taken, possibly by a disabled or revoked entry: choose another one")
	ErrNotFound  = errors.New("there is no such name")
	ErrDisabled  = errors.New("the operator is disabled")
	ErrLastAdmin = errors.New("this is the last admin: add another one first")
	// ErrLastApprover: without a lead, nobody could approve proposals.
	ErrLastApprover = errors.New(
		"this is the last operator who may approve: add another one first with backstop operator add NAME --role lead")
	// ErrSelf keeps a person from gaining a role, and from being locked out by mistake.
	ErrSelf        = errors.New("nobody changes or disables themselves: ask another admin")
	ErrNotDisabled = errors.New("the operator is not disabled")
	ErrInvitation  = errors.New("this link was used, has expired or was replaced: ask an admin for a new one")
	// ErrLogin covers a wrong name, a wrong password and a disabled operator alike, so that it
	// does not reveal which names exist.
	ErrLogin = errors.New("wrong name or password")
	// ErrExpired means that the password is correct, but a one-time password that has expired.
	ErrExpired = errors.New("the one-time password has expired: get a new one with backstop operator reset-password")
)

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// Operator is a console user.
type Operator struct {
	bun.BaseModel `bun:"table:operators,alias:op"`

	ID           int64     `bun:"id,pk"`
	Name         string    `bun:"name"`
	Roles        Roles     `bun:"role"`
	Merchants    Merchants `bun:"merchants"`
	PasswordHash string    `bun:"password_hash"`
	MustChange   bool      `bun:"must_change"` // a one-time password is set
	CreatedAt    int64     `bun:"created_at"`
	UpdatedAt    int64     `bun:"updated_at"`
	DisabledAt   *int64    `bun:"disabled_at"`
	// PasswordExpiresAt is when a one-time password expires (Unix µs).
	PasswordExpiresAt *int64 `bun:"password_expires_at"`
	SignedInAt        *int64 `bun:"signed_in_at"` // last; nil = never
	// InviteHash is the hash of the link by which the operator sets a password until
	// PasswordExpiresAt; nil = there is none.
	InviteHash *string `bun:"invite_hash"`
	TOTPSecret *string `bun:"totp_secret"` // sealed
	TOTPSince  *int64  `bun:"totp_since"`  // nil = no second factor

	// Of the session by which the operator was found.
	Gate     Gate   `bun:"-"`
	SecondAt *int64 `bun:"-"` // when the second factor was last given in it
	Issuer   string `bun:"-"` // of the provider that opened it; "" = a password did

	// Console preferences of the operator; "" = the default.
	Language string `bun:"language"` // "zh" or "en"
	Theme    string `bun:"theme"`    // "light" or "dark"
	Zone     string `bun:"zone"`     // "Asia/Shanghai"
	PageRows int    `bun:"page_rows"`
}

// oneTimeLife is how long a one-time password is valid. It is short because the password was
// printed, mailed or stored in a file.
const oneTimeLife = 24 * time.Hour

// expired reports whether the operator's one-time password has expired.
func (op *Operator) expired(now int64) bool {
	return op.MustChange && (op.PasswordExpiresAt == nil || now >= *op.PasswordExpiresAt)
}
