package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"regexp"
	"strings"

	"backstop/web"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
)

// Asynqmon is a third-party application: its page has inline scripts and styles, and loads
// fonts from two other hosts. Its path therefore has its own policy: the page's scripts are
// allowed by hash, inline styles are allowed, and the links to other hosts are removed.
var (
	inlineScript = regexp.MustCompile(`(?s)<script>(.*?)</script>`)
	foreignLink  = regexp.MustCompile(`<link[^>]*href="https?://[^>]*>`)
)

// monitorPage shows Asynqmon. Only GET has a route, so nothing can be changed, whatever the
// page offers.
func (s *handlers) monitorPage(c *fiber.Ctx) error {
	if s.Monitor == nil {
		return fiber.ErrNotFound
	}
	web.AsProgram(c)
	if err := adaptor.HTTPHandler(s.Monitor)(c); err != nil {
		return err
	}
	body := c.Response().Body()
	if !strings.HasPrefix(string(c.Response().Header.ContentType()), "text/html") {
		return nil
	}
	body = foreignLink.ReplaceAll(body, nil)
	c.Set(fiber.HeaderContentSecurityPolicy, monitorPolicy(body))
	return c.Status(http.StatusOK).Send(bytes.Clone(body))
}

func monitorPolicy(page []byte) string {
	scripts := "script-src 'self'"
	for _, m := range inlineScript.FindAllSubmatch(page, -1) {
		sum := sha256.Sum256(m[1])
		scripts += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; " + scripts + "; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; " +
		"connect-src 'self'; manifest-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
}
