package web

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"time"

	"backstop/internal/access"
	"backstop/views"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// packedFrom is the size in bytes from which packing a page pays.
const packedFrom = 1500

// render sends a page. It is drawn as a whole first: half a page with status 200
// would look like the truth.
func (s *Server) render(c *fiber.Ctx, status int, page templ.Component) error {
	ctx, cancel := work()
	defer cancel()
	var b bytes.Buffer
	if err := page.Render(ctx, &b); err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, "text/html; charset=utf-8")
	return s.sendPacked(c.Status(status), b.Bytes(), nil)
}

// sendPacked sends a body, packed where the browser takes that; ready is the
// packed body where it was made before.
func (s *Server) sendPacked(c *fiber.Ctx, body, ready []byte) error {
	c.Append(fiber.HeaderVary, fiber.HeaderAcceptEncoding)
	takes := strings.Contains(c.Get(fiber.HeaderAcceptEncoding), "gzip")
	if takes && ready == nil && len(body) >= packedFrom {
		ready = fasthttp.AppendGzipBytesLevel(nil, body, fasthttp.CompressBestSpeed)
	}
	if takes && ready != nil {
		c.Set(fiber.HeaderContentEncoding, "gzip")
		return c.Send(ready)
	}
	return c.Send(body)
}

// staticFile serves one of the binary's files, by its exact path.
func (s *Server) staticFile(c *fiber.Ctx) error {
	f, ok := s.files.Find(string(c.Request().URI().PathOriginal()))
	if !ok {
		return fiber.ErrNotFound
	}
	c.Set(fiber.HeaderContentType, f.Type)
	c.Set(fiber.HeaderCacheControl, "public, max-age=31536000, immutable")
	if len(f.Gzip) == 0 {
		return c.Send(f.Body)
	}
	return s.sendPacked(c, f.Body, f.Gzip)
}

// page is what every page needs to know of who asks.
func (s *Server) page(c *fiber.Ctx) *views.Page {
	p := &views.Page{
		Language: browserLanguage(c), Theme: "auto", Zone: s.o.Config.Timezone, Now: s.o.DB.NowTime(),
		Path: c.OriginalURL(), File: s.files.URL, Version: s.o.Version,
	}
	op := operator(c)
	if op == nil {
		return p
	}
	p.User, p.Role = op.Name, op.Role
	p.RedisDown, p.ReadOnly = s.ready.failed("redis"), s.ready.failed("database", "writable")
	p.Frozen = p.RedisDown || p.ReadOnly
	if op.Language != "" {
		p.Language = op.Language
	}
	if op.Theme != "" {
		p.Theme = op.Theme
	}
	if zone, err := time.LoadLocation(op.Zone); err == nil && op.Zone != "" {
		p.Zone = zone
	}
	if lang := c.Query("lang"); slices.Contains(access.Languages, lang) {
		p.Language = lang
	}
	if !isSafe(c.Method()) {
		p.Path = "/me" // a form's answer has no address to come back to
	}
	for _, r := range s.table {
		if r.menu.icon == "" || op.MustChange || !s.policy.Allows(op.Role, r.permission) {
			continue
		}
		p.Menu = append(p.Menu, views.MenuItem{
			Path: r.path, Icon: r.menu.icon, Label: r.menu.label,
			Current: r.path == c.Path() || r.path != "/" && strings.HasPrefix(c.Path(), r.path+"/"),
		})
	}
	return p
}

// browserLanguage is ?lang, then what the browser remembers, then what it wants,
// then Chinese.
func browserLanguage(c *fiber.Ctx) string {
	for _, lang := range []string{c.Query("lang"), c.Cookies("lang")} {
		if slices.Contains(access.Languages, lang) {
			return lang
		}
	}
	if c.Get(fiber.HeaderAcceptLanguage) == "" {
		return "zh"
	}
	if strings.HasPrefix(c.AcceptsLanguages("zh-CN", "zh", "en-US", "en-GB", "en"), "en") {
		return "en"
	}
	return "zh"
}

// failPage answers an error on a page, in the person's language.
func (s *Server) failPage(c *fiber.Ctx, e *apiError) error {
	kind := views.Ours
	switch {
	case e == errForeign:
		return s.render(c, e.status, views.SignIn(s.page(c), views.Login{Next: "/", Problem: views.Foreign}))
	case e == errSlow:
		kind = views.TooWide
	case e == errFrozen:
		kind = views.Off
	case e.code == "too_many":
		kind = views.TooMuch
	case e.code == "nothing_matches":
		kind = views.NoneFound
	case e.code == string(views.Probing), e.code == string(views.Already), e.code == string(views.Sending):
		kind = views.ErrorKind(e.code)
	case e.status == http.StatusConflict:
		kind = views.Changed
	case e == errCursor:
		kind = views.BadPage
	case e.status == http.StatusNotFound:
		kind = views.NotFound
	case e.status == http.StatusForbidden:
		kind = views.Forbidden
	case e.status == http.StatusServiceUnavailable, e.status == http.StatusTooManyRequests:
		kind = views.Busy
	case e.status < http.StatusInternalServerError && !isSafe(c.Method()):
		kind = views.BadForm
	case e.status < http.StatusInternalServerError:
		kind = views.BadInput
	}
	return s.render(c, e.status, views.Error(s.page(c), views.Failure{Kind: kind, Field: e.field, Roles: e.roles, RequestID: localRequestID.text(c)}))
}
