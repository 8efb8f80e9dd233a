package api

import (
	"fmt"

	"backstop/internal/act"
	"backstop/internal/base/invalid"
	"backstop/internal/base/text"
	"backstop/internal/settings/apply"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// secretRoutes are those by which a merchant's system replaces its own secrets.
func (s *handlers) secretRoutes() []web.Route {
	rotate := s.onAct(web.ActRoute{
		Path: "/api/v1/secrets/rotate", Kind: apply.RotateAct, Ref: ownMerchant, Request: ownReason{}, Read: readRotation, Then: s.showRotated,
		Answer: rotatedView{},
	})
	rotate.Audience, rotate.Person, rotate.Permission = web.ForMerchant, false, ""
	return []web.Route{rotate}
}

func ownMerchant(c *fiber.Ctx) (act.Ref, error) { return act.Ref{ID: web.MerchantOf(c).Code}, nil }

// maxIdempotencyKey bounds the key of a request, in bytes: a UUID has 36.
const maxIdempotencyKey = 64

// readRotation takes over the reason, and the key by which the same request rotates once.
func readRotation(c *fiber.Ctx, call *act.Call) error {
	key := c.Get("Idempotency-Key")
	if len(key) > maxIdempotencyKey {
		return invalid.Field("Idempotency-Key", text.Text{ZH: "最多 %d 个字符", EN: "at most %d characters are allowed"}, maxIdempotencyKey)
	}
	if key != "" {
		call.Key = fmt.Sprint("rotate ", web.MerchantOf(c).ID, " ", key)
	}
	return readOwnReason(c, call)
}

// rotatedView has the new signing secret; null = the request is a repeat, and the secret was answered before.
type rotatedView struct {
	SigningSecret *string `json:"signing_secret"`
}

func (s *handlers) showRotated(c *fiber.Ctx, done web.Acted) error {
	var v rotatedView
	if secret, first := done.Result.(string); first {
		v.SigningSecret = &secret
	}
	if err := s.Settings.Refresh(c.UserContext()); err != nil {
		return err
	}
	return c.JSON(v)
}
