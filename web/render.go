package web

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/text"
	"backstop/internal/inbox"
	"backstop/internal/pause"
	"backstop/internal/settings/apply"
	"backstop/internal/supplier"
	"backstop/views/operators"
	"backstop/views/ui"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

const (
	packedFrom = 1500 // the size in bytes above which compressing a page pays
	packLevel  = 5    // of gzip: lists are 7 % smaller than at 3, at 0.2 ms more
)

// Render sends a page. It is rendered completely first: half a page with status 200 would look
// complete.
func (s *Server) Render(c *fiber.Ctx, status int, page templ.Component) error {
	var b bytes.Buffer
	if err := page.Render(context.Background(), &b); err != nil { // an error page may be rendered after the request's time
		return err
	}
	body := b.Bytes()
	if r, ok := c.Locals(localRefused).(*refused); ok {
		var err error
		if body, err = r.fill(c, body); err != nil {
			return err
		}
		status = r.Status
	}
	if s.Actor(c).Merchants != nil {
		var err error
		if body, err = s.prune(body); err != nil {
			return err
		}
	}
	c.Set(fiber.HeaderContentType, "text/html; charset=utf-8")
	return SendPacked(c.Status(status), body, nil)
}

// SendPacked sends a body, compressed if the browser accepts that; ready is the compressed
// body, if available.
func SendPacked(c *fiber.Ctx, body, ready []byte) error {
	c.Append(fiber.HeaderVary, fiber.HeaderAcceptEncoding)
	if !strings.Contains(c.Get(fiber.HeaderAcceptEncoding), "gzip") || ready == nil && len(body) < packedFrom {
		return c.Send(body)
	}
	if ready == nil {
		ready = fasthttp.AppendGzipBytesLevel(nil, body, packLevel)
	}
	c.Set(fiber.HeaderContentEncoding, "gzip")
	return c.Send(ready)
}

// staticFile serves an embedded file by its exact path.
func (s *Server) staticFile(c *fiber.Ctx) error {
	f, ok := s.Files.Find(string(c.Request().URI().PathOriginal()))
	if !ok {
		return fiber.ErrNotFound
	}
	c.Set(fiber.HeaderContentType, f.Type)
	c.Set(fiber.HeaderCacheControl, "public, max-age=31536000, immutable")
	if len(f.Gzip) == 0 {
		return c.Send(f.Body)
	}
	return SendPacked(c, f.Body, f.Gzip)
}

// DensityCookie keeps how high rows are, in the browser: it suits the screen.
const DensityCookie = "density"

// databaseState is what a failed check says about the database.
func databaseState(err error) ui.DatabaseState {
	switch {
	case err == nil:
		return ui.DatabaseWell
	case db.IsReadOnly(err):
		return ui.DatabaseReadOnly
	case db.IsFull(err):
		return ui.DatabaseFull
	}
	return ui.DatabaseAway
}

// Page returns what every page depends on: the operator, their settings and the menu.
func (s *Server) Page(c *fiber.Ctx) *ui.Page {
	p := &ui.Page{
		Language: browserLanguage(c), Theme: "auto", Zone: s.Config.Timezone, Now: s.DB.NowTime(),
		Path: c.OriginalURL(), Texts: s.Texts, Names: s.Settings.Current(), File: s.Files.URL, Version: s.Version, Environment: s.Config.Environment,
		Shadow: s.Config.Shadow, FieldLabel: s.fieldLabel,
	}
	op := Operator(c)
	if op == nil {
		return p
	}
	p.Compact = c.Cookies(DensityCookie) == ui.Compact
	p.User, p.UserID, p.Roles, p.AskCode = op.Name, op.ID, op.Roles, !op.Fresh(s.DB.Now())
	if op.Issuer != "" && s.Provider != nil {
		p.Provider = s.Provider.Host()
	}
	if p.AskCode && op.TOTPSince != nil {
		var err error
		if p.Passkey, err = access.HasPasskey(c.UserContext(), s.DB.Read, op.ID); err != nil {
			s.Log.Debug("look for a passkey", "error", db.ErrorText(err)) // a code does as well
		}
	}
	p.RedisDown, p.Database = s.Ready.failed("redis") != nil, databaseState(s.Ready.failed("database", "writable"))
	p.Frozen = p.RedisDown || p.Database != ui.DatabaseWell
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
		p.Path = "/me" // a form's response has no URL of its own
	}
	var err error
	if p.Unread.N, p.Unread.More, err = inbox.Unread(c.UserContext(), s.DB.Read, op.ID); err != nil {
		s.Log.Debug("count the messages in an inbox", "error", db.ErrorText(err)) // the page is more important
	}
	by := s.Actor(c)
	if p.Limited = by.Merchants != nil; p.Limited {
		p.Names = limitedNames{p.Names, func(code string) bool { return s.Sees(by, code) }}
	}
	waiting := s.waiting.of(c, op)
	for _, r := range s.table {
		if r.Menu.Icon == "" || op.Gate != "" || !s.Policy.Allows(op.Roles, r.Permission) || p.Limited && r.Limit == nil {
			continue
		}
		p.Menu = append(p.Menu, ui.MenuItem{
			Path: r.Path, Icon: r.Menu.Icon, Label: r.Menu.Label, Count: waiting[r.Path].N, More: waiting[r.Path].More,
			Rows:    waitingRows[r.Path],
			Current: r.Path == c.Path() || strings.HasPrefix(c.Path(), cmp.Or(below[r.Path], r.Path+"/")),
		})
	}
	if !p.Limited { // the reason may name others
		p.Paused = s.paused(c.Path(), op)
	}
	return p
}

// fieldLabel is Page.FieldLabel.
func (s *Server) fieldLabel(object, path string) text.Text {
	section, o, ok := apply.ObjectOf(object)
	if !ok {
		return text.Text{}
	}
	kind := ""
	if e, ok := s.Settings.Current().Suppliers.Lookup(o.ID); ok && section.Kind == "supplier" {
		kind = e.Kind
	}
	return section.FieldLabel(path, kind, s.Applies.Kinds)
}

// below is where pages are that belong to a page of the navigation and are not under its path.
var below = map[string]string{"/": "/attention/"}

// pausedOn are the pages, with those below them, whose rows do not move while a queue is paused.
var pausedOn = map[string][]string{
	pause.Notifications: {"/orders", "/notifications", "/merchants", "/queues", "/batches", "/attention"},
	pause.Compensations: {"/orders", "/compensations", "/refunds", "/payouts", "/exceptions", "/queues", "/batches", "/attention"},
}

// paused returns the pauses that affect a page.
func (s *Server) paused(path string, op *access.Operator) (all []ui.PausedQueue) {
	for _, x := range s.Pauses.All() {
		affected := path == "/" || slices.ContainsFunc(pausedOn[x.Name], func(p string) bool {
			return path == p ||
				strings.HasPrefix(path, p+"/")
		})
		if !affected {
			continue
		}
		q := ui.PausedQueue{Name: x.Name, By: x.Person(), Reason: x.Reason, Since: x.At}
		if own := "/queues/" + x.Name; path != own && s.Policy.Allows(op.Roles, access.InspectQueues) {
			q.Path = own
		}
		all = append(all, q)
	}
	return all
}

// browserLanguage returns the language of ?lang, else of the cookie, else of Accept-Language,
// else Chinese.
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

// WaysIn adds to the page for signing in how one can.
func (s *Server) WaysIn(l operators.Login) operators.Login {
	l.NoPasswords = s.Config.Passwords == "off"
	if s.Provider != nil {
		l.Provider = s.Provider.Host()
	}
	return l
}

// failPage renders an error as a page.
func (s *Server) failPage(c *fiber.Ctx, e *Error) error {
	if e == ErrForeign {
		return s.Render(c, e.Status, operators.SignIn(s.Page(c), s.WaysIn(operators.Login{Next: "/", Problem: operators.Foreign})))
	}
	return s.Render(c, e.Status, ui.Error(s.Page(c), failure(c, e)))
}

func failure(c *fiber.Ctx, e *Error) ui.Failure {
	return ui.Failure{Kind: kindOf(c, e), Field: cmp.Or(e.field, e.at), Says: e.says, Roles: e.roles, Answer: e.answer, RequestID: localRequestID.text(c)}
}

// kindOf is what a page says about an error.
func kindOf(c *fiber.Ctx, e *Error) ui.ErrorKind {
	switch {
	case e == ErrSlow:
		return ui.TooWide
	case e == errFrozen:
		return ui.Off
	case e.Code == "too_many":
		return ui.TooMuch
	case e.Code == "nothing_matches":
		return ui.NoneFound
	case e.Code == "live_says" && e.answer == string(supplier.AnswerUnknown):
		return ui.LiveUnclear
	case ui.Explains(e.Code):
		return ui.ErrorKind(e.Code)
	case e.says != text.Text{}:
		return ui.Said
	case e.Status == http.StatusConflict:
		return ui.Changed
	case e == ErrCursor:
		return ui.BadPage
	case e.Status == http.StatusNotFound:
		return ui.NotFound
	case e.Status == http.StatusForbidden:
		return ui.Forbidden
	case e.Status == http.StatusServiceUnavailable, e.Status == http.StatusTooManyRequests:
		return ui.Busy
	case e.Status < http.StatusInternalServerError && !isSafe(c.Method()):
		return ui.BadForm
	case e.Status < http.StatusInternalServerError:
		return ui.BadInput
	}
	return ui.Ours
}
