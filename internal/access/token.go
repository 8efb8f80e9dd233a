package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"backstop/internal/audit"
	"backstop/internal/db"
	"backstop/internal/seal"

	"github.com/uptrace/bun"
)

// Monitor lets a service read the monitoring API.
const Monitor = "monitor"

// Scopes lists what a token may be for.
var Scopes = []string{Monitor}

// tokenPrefix lets people and secret scanners tell what they found.
const tokenPrefix = "bst_"

// ErrScope says that a token cannot be for that. Other errors that a caller can
// act on are ErrName, ErrExists and ErrNotFound.
var ErrScope = errors.New("unknown scope: use one of " + strings.Join(Scopes, ", "))

// Token is the API token of a service. Only a hash of the secret is stored.
type Token struct {
	bun.BaseModel `bun:"table:api_tokens,alias:tk"`

	ID        int64  `bun:"id,pk"`
	Name      string `bun:"name"`
	Scope     string `bun:"scope"`
	Hash      string `bun:"token_hash"`
	CreatedAt int64  `bun:"created_at"`
	RevokedAt *int64 `bun:"revoked_at"`
}

// Tokens keeps the API tokens of services.
type Tokens struct{ db *db.DB }

// NewTokens returns the tokens of the database.
func NewTokens(d *db.DB) *Tokens { return &Tokens{db: d} }

// Add makes a token and returns the secret, which is not kept anywhere. Errors:
// ErrName, ErrScope, ErrExists.
func (t *Tokens) Add(ctx context.Context, name, scope string) (secret string, err error) {
	if !nameForm.MatchString(name) {
		return "", ErrName
	}
	if !slices.Contains(Scopes, scope) {
		return "", ErrScope
	}
	secret = seal.NewToken(tokenPrefix)
	row := Token{ID: t.db.NewID(), Name: name, Scope: scope, Hash: seal.HashToken(secret), CreatedAt: t.db.Now()}
	err = t.db.Tx(ctx, func(ctx context.Context, tx bun.Tx) error {
		if _, err := tx.NewInsert().Model(&row).Exec(ctx); err != nil {
			return err
		}
		return t.keep(ctx, tx, "token.add", row)
	})
	if db.IsUnique(err) {
		return "", ErrExists
	}
	if err != nil {
		return "", fmt.Errorf("add token %s: %w", name, err)
	}
	return secret, nil
}

// keep leaves what a command did to a token in the audit.
func (t *Tokens) keep(ctx context.Context, tx bun.Tx, action string, row Token) error {
	return audit.Write(ctx, tx, t.db, audit.Act{
		Actor: audit.Command(), Action: action, Object: "token", ObjectID: row.Name, Params: map[string]any{"scope": row.Scope},
	})
}

// List returns all tokens by name, revoked ones included.
func (t *Tokens) List(ctx context.Context) ([]Token, error) {
	var rows []Token
	if err := t.db.Read.NewSelect().Model(&rows).OrderExpr("tk.name").Scan(ctx); err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	return rows, nil
}

// Revoke ends a token for good. Revoking it again is fine. Errors: ErrNotFound.
func (t *Tokens) Revoke(ctx context.Context, name string) error {
	return t.db.Tx(ctx, func(ctx context.Context, tx bun.Tx) error {
		var row Token
		err := t.db.ForUpdate(tx.NewSelect().Model(&row).Where("tk.name = ?", name)).Scan(ctx)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return ErrNotFound
		case err != nil:
			return fmt.Errorf("read token: %w", err)
		case row.RevokedAt != nil:
			return nil
		}
		if _, err := tx.NewRaw("UPDATE api_tokens SET revoked_at = ? WHERE id = ?", t.db.Now(), row.ID).Exec(ctx); err != nil {
			return fmt.Errorf("revoke token %s: %w", name, err)
		}
		return t.keep(ctx, tx, "token.revoke", row)
	})
}
