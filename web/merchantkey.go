package web

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"backstop/internal/act"

	"backstop/internal/alert"
	"backstop/internal/base/db"
	"backstop/internal/base/seal"
	"backstop/internal/merchant"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// missEvery is how often an unknown API key may cause a read of the settings; see
// callback.Receiver, which does the same for unknown suppliers.
const missEvery = 250 * time.Millisecond

// maxKey bounds an API key in bytes; ours have about 60.
const maxKey = 512

// BearerHash returns the hash of the request's key, or "".
func BearerHash(c *fiber.Ctx) string {
	if key := bearerKey(&c.Request().Header); key != "" {
		return seal.HashToken(key)
	}
	return ""
}

func bearerKey(h *fasthttp.RequestHeader) string {
	lines := copyHeader(h).Values(fiber.HeaderAuthorization)
	if len(lines) != 1 {
		return ""
	}
	scheme, key, _ := strings.Cut(lines[0], " ")
	key = strings.Trim(key, " ")
	if !strings.EqualFold(scheme, "Bearer") || key == "" || len(key) > maxKey {
		return ""
	}
	return key
}

// admitMerchant admits a merchant by the key that the route wants. Keys are looked up by hash,
// so that the time of a look-up reveals nothing about the key.
func (s *Server) admitMerchant(want MerchantKey) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if isEncoded(copyHeader(&c.Request().Header)) {
			return errEncoded
		}
		hash := BearerHash(c)
		if hash == "" {
			return errUnauthorized
		}
		m, key := s.merchantOf(hash)
		if m == nil && s.misses.Allow() {
			_ = s.Settings.Refresh(c.UserContext()) // on an error the settings stay as they are
			m, key = s.merchantOf(hash)
		}
		if m == nil && s.TestMode != nil && merchant.IsTestKey(bearerKey(&c.Request().Header)) {
			return errNoTestMode
		}
		if m == nil {
			return errUnauthorized
		}
		c.Locals(localCaller, "merchant:"+m.Code)
		if !s.keys.allow(hash) {
			return ErrTooMany
		}
		if m.Broken {
			return errUnreadable
		}
		if err := s.mayUse(c, m, key, want); err != nil {
			return err
		}
		s.noteUse(c, hash)
		c.Locals(localMerchant, m)
		c.Locals(localActor, act.Actor{Name: "merchant:" + m.Code, Merchants: []int64{m.ID}, OfMerchant: true})
		c.Set(fiber.HeaderCacheControl, "no-store")
		return c.Next()
	}
}

// noteUse notes that a key is used. Requests do not depend on it.
func (s *Server) noteUse(c *fiber.Ctx, hash string) {
	if err := s.uses.Note(c.UserContext(), hash); err != nil {
		s.Log.Debug("note the use of a key", "error", db.ErrorText(err))
	}
}

// merchantOf returns the merchant with a key, and which of its keys it is.
func (s *Server) merchantOf(hash string) (*merchant.Merchant, MerchantKey) {
	all := s.Settings.Merchants()
	if m := all.ByKeyHash(hash); m != nil {
		return m, APIKey
	}
	return all.ByPayoutKeyHash(hash), PayoutKey
}

// mayUse returns why a merchant's key must not be used for a route. A refused request for a
// payout raises an alert: a stolen key must be noticed, but it must not lock the merchant out.
func (s *Server) mayUse(c *fiber.Ctx, m *merchant.Merchant, key, want MerchantKey) error {
	switch {
	case want == EitherKey:
		return nil
	case want == APIKey && key == PayoutKey:
		return errAPIKeyNeeded
	case want == APIKey:
		return nil
	case key == APIKey:
		s.payoutRefused.note(m.Code, alert.ByKey, s.Client(c))
		return errPayoutKeyNeeded
	}
	from := s.Client(c)
	if len(m.PayoutIPs) > 0 && !slices.ContainsFunc(m.PayoutIPs, func(p netip.Prefix) bool { return p.Contains(from) }) {
		s.payoutRefused.note(m.Code, alert.ByAddress, from)
		return errPayoutAddress
	}
	return nil
}

// MerchantOf returns the merchant admitted by admitMerchant.
func MerchantOf(c *fiber.Ctx) *merchant.Merchant {
	m, _ := c.Locals(localMerchant).(*merchant.Merchant)
	return m
}
