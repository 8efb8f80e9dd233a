package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/seal"
)

// personalPrefix lets operators and secret scanners recognize a personal token.
const personalPrefix = "bso_"

// maxPersonalLife bounds the life of a personal token.
const maxPersonalLife = 366 * 24 * time.Hour

// ErrLife means that the requested life of a token is out of range.
var ErrLife = errors.New("a token lives for 1m to 8784h")

// PersonalTokens manages the tokens with which operators use the API. The holder acts as the
// operator, under that name and with the operator's current role. Only hashes are stored.
type PersonalTokens struct {
	db    *db.DB
	audit *audit.Log
	mac   *seal.MAC
}

// NewPersonalTokens returns the personal tokens of the database.
func NewPersonalTokens(d *db.DB, keys *seal.Keyring) *PersonalTokens {
	return &PersonalTokens{db: d, audit: audit.New(d, keys), mac: bearers(keys)}
}

// MayBe reports whether a key has the form of a personal token, without a query.
func (p *PersonalTokens) MayBe(key string) bool { return p.mac.IsToken(personalPrefix, key) }

// Add creates another token for an operator and returns the secret, which is not stored.
// Errors: ErrNotFound, ErrDisabled, ErrLife.
func (p *PersonalTokens) Add(ctx context.Context, name string, life time.Duration) (secret string, err error) {
	if life < time.Minute || life > maxPersonalLife {
		return "", ErrLife
	}
	secret = p.mac.NewToken(personalPrefix)
	return secret, p.change(ctx, name, "operator.token", map[string]any{"expires": life.String()},
		func(ctx context.Context, tx db.Tx, op *Operator) error {
			if op.DisabledAt != nil {
				return ErrDisabled
			}
			now := p.db.Now()
			if _, err := tx.NewRaw("DELETE FROM operator_tokens WHERE operator_id = ? AND expires_at <= ?", op.ID,
				now).Exec(ctx); err != nil {
				return fmt.Errorf("remove expired tokens of %s: %w", name, err)
			}
			_, err := tx.NewRaw("INSERT INTO operator_tokens (id, operator_id, token_hash, created_at, expires_at) VALUES (?, ?, ?, ?, ?)",
				p.db.NewID(), op.ID, seal.HashToken(secret), now, now+life.Microseconds()).Exec(ctx)
			if err != nil {
				return fmt.Errorf("add a token of %s: %w", name, err)
			}
			return nil
		})
}

// Revoke revokes all tokens of an operator. Errors: ErrNotFound.
func (p *PersonalTokens) Revoke(ctx context.Context, name string) error {
	return p.change(ctx, name, "operator.revoke_tokens", nil, RevokeTokens)
}

// RevokeTokens revokes all personal tokens of an operator.
func RevokeTokens(ctx context.Context, tx db.Tx, op *Operator) error {
	if _, err := tx.NewRaw("DELETE FROM operator_tokens WHERE operator_id = ?", op.ID).Exec(ctx); err != nil {
		return fmt.Errorf("revoke the tokens of %s: %w", op.Name, err)
	}
	return nil
}

// PersonalToken is one of an operator's tokens.
type PersonalToken struct {
	OperatorID int64  `bun:"operator_id"`
	CreatedAt  int64  `bun:"created_at"` // Unix µs
	ExpiresAt  int64  `bun:"expires_at"`
	UsedAt     *int64 `bun:"used_at"` // last, to the hour; nil = never
}

// tokensListed bounds the tokens that are listed.
const tokensListed = 1000

// RunningTokens returns the tokens that have not expired, newest first; of = the operator's id, 0 = all.
func RunningTokens(ctx context.Context, d *db.DB, of int64) (rows []PersonalToken, err error) {
	err = d.Read.NewRaw("SELECT t.operator_id, t.created_at, t.expires_at, ku.used_at FROM operator_tokens AS t"+
		" LEFT JOIN key_uses AS ku ON ku.key_hash = t.token_hash WHERE t.expires_at > ? AND (? = 0 OR t.operator_id = ?)"+
		" ORDER BY t.id DESC LIMIT ?", d.Now(), of, of, tokensListed).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the personal tokens: %w", err)
	}
	return rows, nil
}

// change modifies the tokens of an operator and records it in the audit.
func (p *PersonalTokens) change(ctx context.Context, name, action string, params map[string]any,
	do func(context.Context, db.Tx, *Operator) error,
) error {
	return p.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		op, err := find(ctx, p.db.ForUpdate(tx.NewSelect()).Where("op.name = ?", name))
		if err != nil && !errors.Is(err, ErrDisabled) {
			return err
		}
		if err := do(ctx, tx, op); err != nil {
			return err
		}
		return p.audit.Write(ctx, tx, audit.Act{Actor: audit.Command(), Action: action, Object: "operator", ObjectID: name, Params: params})
	})
}

// Find returns the operator that the token belongs to, as of now. Errors: ErrSession.
func (p *PersonalTokens) Find(ctx context.Context, key string) (*Operator, error) {
	if !p.MayBe(key) {
		return nil, ErrSession
	}
	var id int64
	err := p.db.Read.NewRaw("SELECT operator_id FROM operator_tokens WHERE token_hash = ? AND expires_at > ?", seal.HashToken(key),
		p.db.Now()).Scan(ctx, &id)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrSession
	}
	if err != nil {
		return nil, fmt.Errorf("read a personal token: %w", err)
	}
	op, err := find(ctx, p.db.Read.NewSelect().Where("op.id = ?", id))
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrDisabled) {
		return nil, ErrSession
	}
	return op, err
}
