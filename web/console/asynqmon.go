package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"backstop/internal/base/text"
	"backstop/views/ui"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/valyala/fasthttp"
)

// Asynqmon is a third-party application: its page has inline scripts and styles, and loads
// fonts from two other hosts. Its path therefore has its own policy: the page's scripts are
// allowed by hash, inline styles are allowed, and the links to other hosts are removed.
var (
	inlineScript = regexp.MustCompile(`(?s)<script>(.*?)</script>`)
	foreignLink  = regexp.MustCompile(`<link[^>]*href="https?://[^>]*>`)
)

// hashedFile is the name of a file that contains the hash of its content.
var hashedFile = regexp.MustCompile(`/static/.*\.[0-9a-f]{8}\.[a-z.]+$`)

// mapLink names the source map of a script, which is not served.
var mapLink = regexp.MustCompile(`(?m)^//# sourceMappingURL=.*$`)

// packedScripts keeps the compressed files of Asynqmon, which never change while this process
// runs; there are few, since only names of files that exist are kept.
var packedScripts sync.Map

// monitorPage shows Asynqmon. Only GET has a route, so nothing can be changed, whatever the
// page offers.
func (s *handlers) monitorPage(c *fiber.Ctx) error {
	path := c.Path()
	if s.Monitor == nil || strings.HasSuffix(path, ".map") {
		return fiber.ErrNotFound
	}
	page := s.Page(c)
	web.AsProgram(c)
	if err := adaptor.HTTPHandler(s.Monitor)(c); err != nil {
		return err
	}
	body := bytes.Clone(c.Response().Body())
	isPage := strings.HasPrefix(string(c.Response().Header.ContentType()), "text/html")
	switch {
	case c.Response().StatusCode() != http.StatusOK:
		return nil
	case isPage:
		body = foreignLink.ReplaceAll(body, nil)
		body = bytes.Replace(body, []byte("</body>"), []byte(wayBack(page)+"</body>"), 1)
		c.Set(fiber.HeaderContentSecurityPolicy, monitorPolicy(body))
	case hashedFile.MatchString(path):
		c.Set(fiber.HeaderCacheControl, "private, max-age=31536000, immutable")
		if strings.HasSuffix(path, ".svg") {
			c.Set(fiber.HeaderContentType, "image/svg+xml")
		}
		if strings.HasSuffix(path, ".js") {
			body = mapLink.ReplaceAll(body, nil)
			ready, ok := packedScripts.Load(path)
			if !ok {
				ready, _ = packedScripts.LoadOrStore(path, fasthttp.AppendGzipBytesLevel(nil, body, fasthttp.CompressBestCompression))
			}
			return web.SendPacked(c, body, ready.([]byte))
		}
	}
	return web.SendPacked(c, body, nil)
}

// wayBack is the link to the console on Asynqmon's page, which has none of its own.
func wayBack(p *ui.Page) string {
	return `<a href="/queues" style="position:fixed;left:12px;bottom:12px;z-index:2000;padding:8px 12px;border-radius:6px;background:#1f4fd8;color:#fff;font:600 14px system-ui,sans-serif;text-decoration:none">← ` +
		template.HTMLEscapeString(p.T(tWayBack)) + `</a>`
}

var tWayBack = text.Text{ZH: "返回兜底控制台", EN: "Back to Backstop"}

func monitorPolicy(page []byte) string {
	scripts := "script-src 'self'"
	for _, m := range inlineScript.FindAllSubmatch(page, -1) {
		sum := sha256.Sum256(m[1])
		scripts += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; " + scripts + "; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; " +
		"connect-src 'self'; manifest-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
}
