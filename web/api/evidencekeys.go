package api

import (
	"encoding/base64"

	"github.com/gofiber/fiber/v2"
)

// keysView are the public keys with which evidence is signed.
type keysView struct {
	Keys []keyView `json:"keys"`
}

type keyView struct {
	ID        string `json:"key_id"`
	Algorithm string `json:"algorithm"`
	Public    string `json:"public_key"`
}

func (s *handlers) evidenceKeys(c *fiber.Ctx) error {
	keys := []keyView{}
	for _, k := range s.Keys.SigningKeys() {
		keys = append(keys, keyView{k.ID, "Ed25519", base64.StdEncoding.EncodeToString(k.Public)})
	}
	return c.JSON(keysView{keys})
}
