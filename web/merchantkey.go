package web

import (
	"strings"
	"time"

	"backstop/internal/base/seal"
	"backstop/internal/merchant"

	"github.com/gofiber/fiber/v2"
)

// missEvery is how often an unknown API key may cause a read of the settings; see
// callback.Receiver, which does the same for unknown suppliers.
const missEvery = 250 * time.Millisecond

// maxKey bounds an API key in bytes; ours have about 60.
const maxKey = 512

// BearerHash returns the hash of the request's key, or "".
func BearerHash(c *fiber.Ctx) string {
	if key := bearerKey(c); key != "" {
		return seal.HashToken(key)
	}
	return ""
}

func bearerKey(c *fiber.Ctx) string {
	lines := copyHeader(&c.Request().Header).Values(fiber.HeaderAuthorization)
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

// admitMerchant admits a merchant by its API key. Keys are looked up by hash, so that the time
// of a look-up reveals nothing about the key.
func (s *Server) admitMerchant(c *fiber.Ctx) error {
	if isEncoded(copyHeader(&c.Request().Header)) {
		return errEncoded
	}
	hash := BearerHash(c)
	if hash == "" {
		return errUnauthorized
	}
	m := s.Settings.Merchants().ByKeyHash(hash)
	if m == nil && s.misses.Allow() {
		_ = s.Settings.Refresh(c.UserContext()) // on an error the settings stay as they are
		m = s.Settings.Merchants().ByKeyHash(hash)
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
	c.Locals(localMerchant, m)
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.Next()
}

// MerchantOf returns the merchant admitted by admitMerchant.
func MerchantOf(c *fiber.Ctx) *merchant.Merchant {
	m, _ := c.Locals(localMerchant).(*merchant.Merchant)
	return m
}
