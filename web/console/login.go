package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/seal"
	"backstop/internal/inbox"
	"backstop/views/operators"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// keptChoice is how long a browser keeps the language chosen before a login, and the proof of a
// login, in seconds.
const keptChoice = 365 * 24 * 3600

// safeNext keeps a login from redirecting to another site: browsers treat "//x" and "/\\x" as
// host addresses.
func safeNext(next string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") ||
		strings.HasPrefix(next, "/login") {
		return "/"
	}
	return next
}

func (s *handlers) loginPage(c *fiber.Ctx) error {
	s.keepLanguage(c)
	return s.sendLogin(c, http.StatusOK, operators.Login{Next: safeNext(c.Query("next"))})
}

// sendLogin shows the page for signing in; by passkey only where whoever has one may sign in by it.
func (s *handlers) sendLogin(c *fiber.Ctx, status int, form operators.Login) (err error) {
	if s.passkeys != nil && s.Config.Passwords != "off" {
		if form.Passkey, err = s.passkeys.AskAnybody(c.UserContext()); err != nil {
			s.Log.Debug("ask for a passkey", "error", db.ErrorText(err)) // the page is there without the database too
		}
	}
	return s.Render(c, status, operators.SignIn(s.Page(c), s.WaysIn(form)))
}

// keepLanguage stores ?lang in a cookie, for pages before the login.
func (s *handlers) keepLanguage(c *fiber.Ctx) {
	if lang := c.Query("lang"); slices.Contains(access.Languages, lang) {
		s.SetCookie(c, "lang", lang, keptChoice)
	}
}

// login starts a session. Its responses are the same for existing and unknown names.
func (s *handlers) login(c *fiber.Ctx) error {
	form := operators.Login{Name: web.Field(c, "name"), Next: safeNext(web.Field(c, "next"))}
	if len(form.Name) > web.MaxFilter || !web.IsStorable(form.Name) {
		form.Name = "" // no operator can have such a name
	}
	addr := s.Client(c)
	try := access.SignIn{Name: form.Name, Address: web.SenderOf(addr), Device: s.device(c, form.Name)}
	if form.Wait = s.throttle.Try(try); form.Wait > 0 {
		return s.sendTooMany(c, form)
	}
	op, err := s.Operators.Login(c.UserContext(), form.Name, web.Field(c, "password"))
	switch {
	case errors.Is(err, access.ErrLogin):
		form.Problem = operators.WrongLogin
	case errors.Is(err, access.ErrExpired):
		form.Problem = operators.PasswordExpired
	case err != nil:
		return err
	case !s.Config.ByPassword(op.Name): // only now: it must not show who the other one is
		form.Problem = operators.PasswordsOff
	}
	if form.Problem != "" {
		return s.sendLogin(c, http.StatusUnprocessableEntity, form)
	}
	s.throttle.Forgive(try)
	if err := s.breakGlass(c, op); err != nil {
		return err
	}
	return s.enter(c, op, form.Next, nil)
}

// sendTooMany says that somebody has to wait before the next attempt.
func (s *handlers) sendTooMany(c *fiber.Ctx, form operators.Login) error {
	form.Problem = operators.TooMany
	c.Set(fiber.HeaderRetryAfter, "60")
	return s.sendLogin(c, http.StatusTooManyRequests, form)
}

// enter starts the session of who has signed in, and goes where the person wanted to. params are
// for the audit.
func (s *handlers) enter(c *fiber.Ctx, op *access.Operator, next string, params map[string]any) error {
	// The session of the replaced cookie must not stay open.
	if err := s.Sessions.End(c.UserContext(), c.Cookies(s.CookieName())); err != nil {
		return err
	}
	if err := s.startSession(c, op); err != nil {
		return err
	}
	if err := s.keepAct(c, audit.Act{
		Actor: "operator:" + op.Name, Action: "session.start", Object: "operator", ObjectID: op.Name, Params: params,
	}); err != nil {
		return err
	}
	s.Log.Info("signed in", "operator", op.Name, "remote", s.Client(c).String(), "request_id", web.RequestID(c))
	switch {
	case op.TOTPSince != nil && op.SecondAt == nil:
		return c.Redirect("/second?next="+url.QueryEscape(next), http.StatusSeeOther)
	case op.MustChange:
		return c.Redirect("/me", http.StatusSeeOther)
	case next == "/":
		next = s.landing(op)
	}
	return c.Redirect(next, http.StatusSeeOther)
}

// landing is where somebody's day begins who did not ask for a page.
func (s *handlers) landing(op *access.Operator) string {
	switch {
	case !s.Policy.Allows(op.Roles, access.ViewOrders): // of an own role
		return "/me"
	case op.Merchants != "":
		return "/orders"
	case op.Roles.HasAny(access.Finance, access.Lead):
		return "/approvals"
	case op.Roles.HasAny(access.Ops, access.Admin, access.Auditor):
		return "/"
	}
	return "/orders"
}

// deviceCookie returns the cookie in which a browser keeps the proof that a name has signed in
// from it; devices returns the MAC of the proof. Each name has its own, because a browser may
// be shared.
func (s *handlers) deviceCookie(name string) string {
	return s.CookieName() + "-device-" + seal.HashToken(name)[:8]
}

func (s *handlers) devices(name string) *seal.MAC { return s.Keys.MAC("device of " + name) }

// device returns the browser's proof that the name has signed in from it; "" = none.
func (s *handlers) device(c *fiber.Ctx, name string) string {
	if device := c.Cookies(s.deviceCookie(name)); s.devices(name).IsToken("", device) {
		return device
	}
	return ""
}

// keepDevice gives the browser such a proof, or renews it. A stolen proof opens nothing: it
// allows as few attempts as any other client has.
func (s *handlers) keepDevice(c *fiber.Ctx, name, device string) {
	if device == "" {
		device = s.devices(name).NewToken("")
	}
	s.SetCookie(c, s.deviceCookie(name), device, keptChoice)
}

// startSession opens a session in this browser. A device that the operator has not used before is
// reported to the operator.
func (s *handlers) startSession(c *fiber.Ctx, op *access.Operator) error {
	token, err := s.Sessions.StartAt(c.UserContext(), op.ID, s.Client(c).String(), c.Get(fiber.HeaderUserAgent), op.Issuer, op.SecondAt)
	if err != nil {
		return err
	}
	s.SetCookie(c, s.CookieName(), token, int(s.Config.SessionMax/time.Second))
	proof := s.device(c, op.Name)
	s.keepDevice(c, op.Name, proof)
	return s.DB.Tx(c.UserContext(), func(ctx context.Context, tx db.Tx) error {
		addr := s.Client(c)
		device, isNew, err := s.Sessions.NoteDevice(ctx, tx, op.ID, addr, c.Get(fiber.HeaderUserAgent), proof != "")
		if err != nil || !isNew {
			return err
		}
		return inbox.Put(ctx, tx, s.DB, inbox.Message{
			OperatorID: op.ID, Kind: inbox.Device, Object: "session", ObjectID: addr.String(), Text: device,
		})
	})
}

func (s *handlers) logout(c *fiber.Ctx) error {
	token := c.Cookies(s.CookieName())
	op, err := s.Sessions.Peek(c.UserContext(), token)
	if err != nil && !errors.Is(err, access.ErrSession) {
		return err
	}
	if err := s.Sessions.End(c.UserContext(), token); err != nil {
		return err
	}
	s.SetCookie(c, s.CookieName(), "", -1)
	if to := s.leave(c, op); to != "" {
		// Browsers let no form lead to another site (form-action of the content policy).
		c.Set("Refresh", "0; url="+to)
		return s.Render(c, http.StatusOK, operators.SignedOut(s.Page(c), s.Provider.Host(), to))
	}
	return c.Redirect("/login", http.StatusSeeOther)
}
