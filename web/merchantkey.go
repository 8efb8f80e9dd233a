package web

import (
	"strings"
	"time"

	"backstop/internal/base/seal"
	"backstop/internal/merchant"

	"github.com/gofiber/fiber/v2"
)

// missEvery is how often an unknown API key may make us look for newer settings;
// see callback.Receiver, where the same holds for unknown suppliers.
const missEvery = 250 * time.Millisecond

// maxKey bounds an API key in bytes; ours have about 60.
const maxKey = 512

// BearerHash is the hash of the key that a request brings, or "".
func BearerHash(c *fiber.Ctx) string {
	if key := bearerKey(c); key != "" {
		return seal.HashToken(key)
	}
	return ""
}

func bearerKey(c *fiber.Ctx) string {
	var lines []string
	c.Request().Header.VisitAllInOrder(func(key, value []byte) {
		if strings.EqualFold(string(key), fiber.HeaderAuthorization) {
			lines = append(lines, string(value))
		}
	})
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

// admitMerchant lets a merchant's API key in. Keys are found by their hash, so
// that the time of a look-up says nothing of the key itself.
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
		ctx, cancel := Work()
		defer cancel()
		// Where the look fails, the settings that we have stay in force.
		_ = s.Settings.Refresh(ctx)
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
		return ErrUnreadable
	}
	c.Locals(localMerchant, m)
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.Next()
}

// MerchantOf is who admitMerchant let in.
func MerchantOf(c *fiber.Ctx) *merchant.Merchant {
	m, _ := c.Locals(localMerchant).(*merchant.Merchant)
	return m
}
