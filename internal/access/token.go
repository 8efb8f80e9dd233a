package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/seal"

	"github.com/uptrace/bun"
)

// Scopes of service tokens.
const (
	Monitor    = "monitor"    // reads the admin API
	Control    = "control"    // opens, closes and probes breakers, and pings
	Compensate = "compensate" // queries suppliers, and runs compensations
)

// Scopes lists all scopes, in the order in which they are stored.
var Scopes = []string{Monitor, Control, Compensate}

// tokenPrefix lets operators and secret scanners recognize a token.
const tokenPrefix = "bst_"

// ErrScope means that a scope does not exist. Callers can also act on ErrName, ErrExists and
// ErrNotFound.
var ErrScope = errors.New("unknown scope: use one or more of " + strings.Join(Scopes, ", ") + ", separated by commas")

// Token is the API token of a service. Only a hash of the secret is stored.
type Token struct {
	bun.BaseModel `bun:"table:api_tokens,alias:tk"`

	ID        int64     `bun:"id,pk"`
	Name      string    `bun:"name"`
	Scope     string    `bun:"scope"` // as parseScopes writes them
	Merchants Merchants `bun:"merchants"`
	Hash      string    `bun:"token_hash"`
	CreatedAt int64     `bun:"created_at"`
	RevokedAt *int64    `bun:"revoked_at"`
	UsedAt    *int64    `bun:"used_at,scanonly"` // last, to the hour; of List only
}

// Has reports whether the token has a scope.
func (t *Token) Has(scope string) bool {
	return scope != "" && slices.Contains(strings.Split(t.Scope, ","), scope)
}

// parseScopes reads comma-separated scopes in any order and returns them in the order of
// Scopes.
func parseScopes(text string) (string, error) {
	given := strings.Split(text, ",")
	for i, scope := range given {
		if given[i] = strings.TrimSpace(scope); !slices.Contains(Scopes, given[i]) {
			return "", ErrScope
		}
	}
	scopes := slices.DeleteFunc(slices.Clone(Scopes), func(scope string) bool { return !slices.Contains(given, scope) })
	return strings.Join(scopes, ","), nil
}

// bearers returns the MAC of session and service tokens, by which a forged token is rejected
// without a query.
func bearers(keys *seal.Keyring) *seal.MAC { return keys.MAC("bearer") }

// Tokens manages the API tokens of services.
type Tokens struct {
	db    *db.DB
	audit *audit.Log
	mac   *seal.MAC
}

// NewTokens returns the tokens of the database.
func NewTokens(d *db.DB, keys *seal.Keyring) *Tokens {
	return &Tokens{db: d, audit: audit.New(d, keys), mac: bearers(keys)}
}

// MayBe reports whether a key may be a service token, without a query.
func (t *Tokens) MayBe(key string) bool { return t.mac.IsToken(tokenPrefix, key) }

// Running returns at most limit tokens that are not revoked.
func (t *Tokens) Running(ctx context.Context, limit int) ([]Token, error) {
	var rows []Token
	if err := t.db.Read.NewSelect().Model(&rows).Where("tk.revoked_at IS NULL").Limit(int64(limit)).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the tokens: %w", err)
	}
	return rows, nil
}

// Add creates a token with one or more scopes, limited to merchants if codes are given, and returns
// the secret, which is not stored. Errors: ErrName, ErrScope, ErrExists, UnknownMerchants.
func (t *Tokens) Add(ctx context.Context, name, scopes string, merchants ...string) (secret string, err error) {
	if !nameForm.MatchString(name) {
		return "", ErrName
	}
	scope, err := parseScopes(scopes)
	if err != nil {
		return "", err
	}
	secret = t.mac.NewToken(tokenPrefix)
	row := Token{ID: t.db.NewID(), Name: name, Scope: scope, Hash: seal.HashToken(secret), CreatedAt: t.db.Now()}
	err = t.db.Tx(ctx, func(ctx context.Context, tx db.Tx) (err error) {
		if row.Merchants, err = ParseMerchants(ctx, tx, strings.Join(merchants, ",")); err != nil {
			return err
		}
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

// keep records a change of a token by a command in the audit.
func (t *Tokens) keep(ctx context.Context, tx db.Tx, action string, row Token) error {
	params := map[string]any{"scope": row.Scope}
	if row.Merchants != "" {
		params["merchants"] = row.Merchants
	}
	return t.audit.Write(ctx, tx, audit.Act{Actor: audit.Command(), Action: action, Object: "token", ObjectID: row.Name, Params: params})
}

// List returns all tokens by name, revoked ones included.
func (t *Tokens) List(ctx context.Context) ([]Token, error) {
	var rows []Token
	err := t.db.Read.NewSelect().Model(&rows).ColumnExpr("tk.*, ku.used_at").Join("LEFT JOIN key_uses AS ku ON ku.key_hash = tk.token_hash").
		OrderExpr("tk.name").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	return rows, nil
}

// Revoke revokes a token for good. Revoking it again is fine. Errors: ErrNotFound.
func (t *Tokens) Revoke(ctx context.Context, name string) error {
	return t.db.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
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
