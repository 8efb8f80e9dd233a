package web

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/seal"

	"github.com/gofiber/fiber/v2"
)

// Limits of the token cache. It holds all tokens, because there are only a handful, so that
// using one costs no query.
const (
	tokenAge  = 2 * time.Second        // how long a revoked token keeps working at most
	tokenMiss = 250 * time.Millisecond // minimum interval between reads because of unknown tokens
	maxTokens = 10_000
)

// tokenCache finds tokens by hash.
type tokenCache struct {
	tokens *access.Tokens
	mu     sync.Mutex
	readAt time.Time
	byHash map[string]access.Token
	// missed are the hashes of tokens with a valid tag that have not been found since missedAt:
	// revoked ones.
	missed   map[string]bool
	missedAt time.Time
}

// find returns the token, or false. After an error no token can be judged. A token with a valid
// tag that is not in the cache is either new or revoked: the former must work at once, the
// latter must not turn each request into a query.
func (b *tokenCache) find(ctx context.Context, hash string) (access.Token, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, ok := b.byHash[hash]
	age := time.Since(b.readAt)
	fresh := !ok && b.isNew(hash)
	if age > tokenAge || !ok && age > tokenMiss || fresh {
		if err := b.read(ctx); err != nil {
			return access.Token{}, false, err
		}
		found, ok = b.byHash[hash]
	}
	return found, ok, nil
}

// isNew records a token that is not in the cache, and reports whether it had not been recorded
// within tokenMiss.
func (b *tokenCache) isNew(hash string) bool {
	if time.Since(b.missedAt) > tokenMiss || len(b.missed) >= maxTokens {
		b.missed, b.missedAt = map[string]bool{}, time.Now()
	}
	seen := b.missed[hash]
	b.missed[hash] = true
	return !seen
}

func (b *tokenCache) read(ctx context.Context) error {
	rows, err := b.tokens.Running(ctx, maxTokens)
	if err != nil {
		return err
	}
	b.byHash = make(map[string]access.Token, len(rows))
	for _, t := range rows {
		b.byHash[t.Hash] = t
	}
	b.readAt = time.Now()
	return nil
}

// admitMonitor admits tokens with the route's scope, and operators by their personal token or
// their session's. Programs send it in a header here, and browsers never as a cookie, so that
// no other site can use it.
func (s *Server) admitMonitor(r Route) fiber.Handler {
	return func(c *fiber.Ctx) error {
		key := bearerKey(&c.Request().Header)
		if key == "" {
			return errUnauthorized
		}
		actor, refused, err := s.monitorActor(c.UserContext(), key, r)
		if err != nil {
			return err
		}
		c.Locals(localCaller, actor.Name)
		c.Locals(localActor, actor)
		switch {
		case r.limit(c, actor) != nil:
			return r.limit(c, actor)
		case refused != nil:
			return refused
		case !s.keys.allow(seal.HashToken(key)):
			return ErrTooMany
		}
		if s.tokens.tokens.MayBe(key) || s.personal.MayBe(key) {
			s.noteUse(c, seal.HashToken(key))
		}
		c.Set(fiber.HeaderCacheControl, "no-store")
		return c.Next()
	}
}

// monitorActor returns the actor with the key, and why it may not do this; nil = it may. A
// forged key costs no query. It does not extend a session, because a script that is left
// running must not.
func (s *Server) monitorActor(ctx context.Context, key string, r Route) (actor act.Actor, refused, err error) {
	if s.tokens.tokens.MayBe(key) {
		t, ok, err := s.tokens.find(ctx, seal.HashToken(key))
		switch {
		case err != nil:
			return actor, nil, err
		case !ok:
			return actor, nil, errUnauthorized
		case r.Person:
			refused = approval.ErrPerson
		case !t.Has(r.Scope):
			refused = errScope(r.Scope)
		}
		return act.Actor{Name: "token:" + t.Name, Token: &t, Merchants: s.merchantIDs(t.Merchants)}, refused, nil
	}
	find := s.Sessions.Peek
	personal := s.personal.MayBe(key)
	if personal {
		find = s.personal.Find
	}
	op, err := find(ctx, key)
	if errors.Is(err, access.ErrSession) {
		return actor, nil, errUnauthorized
	}
	if err != nil {
		return actor, nil, err
	}
	switch {
	case op.Gate != "": // a personal token has none
		refused = errForbidden
	case r.Person && !personal && !op.Fresh(s.DB.Now()):
		refused = errStaleSecond
	case !s.Policy.Allows(op.Roles, r.Permission):
		refused = &act.Denied{Permission: r.Permission, Roles: s.Policy.RolesWith(r.Permission)}
	}
	return s.actorOf(op), refused, nil
}

// errScope returns the response to a service's token without the scope.
func errScope(scope string) *Error {
	return &Error{Status: http.StatusForbidden, Code: "forbidden", Message: "this token does not have the scope " + scope, field: "scope"}
}
