package testmode

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/merchant"
	"backstop/internal/settings/apply"

	"github.com/uptrace/bun"
)

// KeyAct is the act that gives a merchant a key of test mode.
const KeyAct = "merchant.test_key"

// ErrAway means that test mode is off, or does not run at the moment.
var ErrAway = errors.New("test mode does not run here")

// Issued is what a merchant is given, once.
type Issued struct {
	APIKey        string
	SigningSecret string // "" = as before
}

// NewAPIKey returns a new API key of test mode.
func NewAPIKey() string { return merchant.TestKeyPrefix + strings.ToLower(rand.Text()+rand.Text()) }

// useTime is how long servers may take to accept a new key.
const useTime = 5 * time.Second

// Issue gives a live merchant a new key in the database of env, that of test mode, and declares its twin there if
// there is none yet. It returns once the servers accept the key, and says to said how many do.
func Issue(ctx context.Context, env apply.Env, code, name string, said io.Writer) (Issued, error) {
	var made int
	if err := env.DB.Read.NewRaw("SELECT count(*) FROM merchants WHERE code = ?", code).Scan(ctx, &made); err != nil {
		return Issued{}, fmt.Errorf("look for the merchant in test mode: %w", err)
	}
	given := Issued{APIKey: NewAPIKey()}
	if made == 0 {
		given.SigningSecret = apply.NewSigningSecret()
	}
	env.Out = io.Discard
	file := apply.File{Name: "testmode key", Text: twin(code, name, given)}
	if err := apply.Apply(ctx, env, file); err != nil {
		return Issued{}, err
	}
	return given, apply.Await(ctx, env.DB, file, useTime, said, said)
}

// twin returns the apply file of a live merchant's twin. Without a signing secret, only its API key is replaced.
func twin(code, name string, given Issued) []byte {
	m := map[string]any{"code": code, "api_key": given.APIKey}
	if given.SigningSecret != "" {
		m["name"], m["signing_secret"] = name, given.SigningSecret
		m["notify"] = map[string]any{"endpoints": []any{map[string]any{"name": "listen", "channel": "websocket", "url": "websocket:"}}}
	}
	return written(map[string]any{"merchants": []any{m}})
}

// Issuer gives live merchants keys.
type Issuer interface {
	Running() bool
	Issue(ctx context.Context, code, name string) (Issued, error)
}

// KeyActs returns the act that gives the merchant in Ref.ID a key of test mode. Outcome.After returns the Issued.
// Errors: ErrAway.
func KeyActs(by Issuer) []act.Kind {
	return []act.Kind{{
		Name: KeyAct, Object: "merchant", Permission: access.MakeTestKeys, Load: act.ByID(loadMerchant),
		Do: act.Each(func(_ context.Context, _ db.Tx, _ act.Input, s act.Subject) (act.Outcome, error) {
			if !by.Running() {
				return act.Outcome{}, ErrAway
			}
			return act.Outcome{After: func(ctx context.Context) (any, error) { return by.Issue(ctx, s.ID, s.Value.(string)) }}, nil
		}),
	}}
}

func loadMerchant(ctx context.Context, q bun.IDB, code string) (act.Subject, error) {
	var rows []struct {
		ID   int64
		Name string
	}
	if err := q.NewRaw("SELECT id, name FROM merchants WHERE code = ?", code).Scan(ctx, &rows); err != nil {
		return act.Subject{}, fmt.Errorf("look for the merchant: %w", err)
	}
	if len(rows) == 0 {
		return act.Subject{}, act.ErrNotFound
	}
	return act.Subject{Row: rows[0].ID, ID: code, MerchantID: rows[0].ID, Value: rows[0].Name}, nil
}
