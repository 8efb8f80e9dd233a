package web

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"backstop/internal/access"
	"backstop/internal/db"

	"github.com/gofiber/fiber/v2"
)

// Limits of the tokens' cache. All tokens are held: there are a handful, and a
// stranger who tries some then costs no query each.
const (
	tokenAge  = 2 * time.Second        // a revoked token works for this long at most
	tokenMiss = 250 * time.Millisecond // how often an unknown token may ask for newer ones
	maxTokens = 10_000
)

// token is a service's key to the admin API.
type token struct {
	Name  string `bun:"name"`
	Scope string `bun:"scope"`
	Hash  string `bun:"token_hash"`
}

// tokenBook finds tokens by their hash.
type tokenBook struct {
	db     *db.DB
	mu     sync.Mutex
	readAt time.Time
	byHash map[string]token
}

func newTokenBook(d *db.DB) *tokenBook { return &tokenBook{db: d} }

// find returns the token, or false. An error says that nobody can be judged now.
func (b *tokenBook) find(ctx context.Context, hash string) (token, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, ok := b.byHash[hash]
	if age := time.Since(b.readAt); age > tokenAge || !ok && age > tokenMiss {
		if err := b.read(ctx); err != nil {
			return token{}, false, err
		}
		found, ok = b.byHash[hash]
	}
	return found, ok, nil
}

func (b *tokenBook) read(ctx context.Context) error {
	var rows []token
	err := b.db.Read.NewRaw("SELECT name, scope, token_hash FROM api_tokens WHERE revoked_at IS NULL LIMIT ?", maxTokens).Scan(ctx, &rows)
	if err != nil {
		return fmt.Errorf("read the tokens: %w", err)
	}
	b.byHash = make(map[string]token, len(rows))
	for _, t := range rows {
		b.byHash[t.Hash] = t
	}
	b.readAt = time.Now()
	return nil
}

// admitMonitor lets tokens with the scope "monitor" in, and operators by the
// token of their session. A session is sent by hand here, never by a browser of
// itself, so that no other site can use it.
func (s *Server) admitMonitor(permission access.Permission) fiber.Handler {
	return func(c *fiber.Ctx) error {
		hash := bearer(c)
		if hash == "" {
			return errUnauthorized
		}
		ctx, cancel := work()
		defer cancel()
		caller, allowed, err := s.monitorCaller(ctx, hash, bearerKey(c), permission)
		if err != nil {
			return err
		}
		c.Locals(localCaller, caller)
		switch {
		case !allowed:
			return errForbidden
		case !s.keys.allow(hash):
			return errTooMany
		}
		c.Set(fiber.HeaderCacheControl, "no-store")
		return c.Next()
	}
}

// monitorCaller says whose key it is and whether it may do this. Asking keeps no
// session alive: a script that was left running must not.
func (s *Server) monitorCaller(ctx context.Context, hash, key string, permission access.Permission) (caller string, allowed bool, err error) {
	t, ok, err := s.tokens.find(ctx, hash)
	if err != nil {
		return "", false, err
	}
	if ok {
		return "token:" + t.Name, t.Scope == access.Monitor, nil
	}
	op, err := s.o.Sessions.Peek(ctx, key)
	if errors.Is(err, access.ErrSession) {
		return "", false, errUnauthorized
	}
	if err != nil {
		return "", false, err
	}
	return "operator:" + op.Name, !op.MustChange && s.policy.Allows(op.Role, permission), nil
}
