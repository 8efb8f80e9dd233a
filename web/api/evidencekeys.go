package api

import (
	"encoding/base64"

	"github.com/gofiber/fiber/v2"
)

// evidenceKeys lists the public keys with which evidence is signed.
func (s *handlers) evidenceKeys(c *fiber.Ctx) error {
	type key struct {
		ID        string `json:"key_id"`
		Algorithm string `json:"algorithm"`
		Public    string `json:"public_key"`
	}
	keys := []key{}
	for _, k := range s.Keys.SigningKeys() {
		keys = append(keys, key{k.ID, "Ed25519", base64.StdEncoding.EncodeToString(k.Public)})
	}
	return c.JSON(map[string]any{"keys": keys})
}
