package web

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/seal"
	"backstop/internal/supplier"
	"backstop/views"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// contentPolicy lets pages load what we serve and nothing else, and run nothing
// that stands inside of a page.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// keptChoice is how long a browser remembers the language of somebody who is not
// signed in, and who signed in from it, in seconds.
const keptChoice = 365 * 24 * 3600

// dressPage stands before every page: what it may load, and that it is not kept.
func (s *Server) dressPage(c *fiber.Ctx) error {
	c.Locals(localPage, true)
	c.Set(fiber.HeaderContentSecurityPolicy, contentPolicy)
	c.Set(fiber.HeaderReferrerPolicy, "same-origin")
	c.Set(fiber.HeaderCacheControl, "no-store")
	if s.secure() {
		c.Set(fiber.HeaderStrictTransportSecurity, "max-age=31536000")
	}
	if !isSafe(c.Method()) && !s.fromHere(c) {
		return errForeign
	}
	return c.Next()
}

func isSafe(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// errForeign says that another site's page sent the request.
var errForeign = &apiError{status: http.StatusForbidden, code: "foreign_origin", message: "the request came from another site"}

// fromHere says whether one of our own pages sent the request. Browsers say so
// themselves and pages cannot make them lie, so that no token is needed: newer
// ones in Sec-Fetch-Site, all of them in Origin. A request without either is none
// of a browser that we know, and is refused.
func (s *Server) fromHere(c *fiber.Ctx) bool {
	switch c.Get("Sec-Fetch-Site") {
	case "same-origin", "none": // none: the person typed the address
		return true
	case "":
	default:
		return false
	}
	origin, err := url.Parse(c.Get(fiber.HeaderOrigin))
	if err != nil || origin.Host == "" {
		return false
	}
	// Behind a proxy the Host may be another one than the person sees.
	console, err := url.Parse(s.o.Config.AdminURL)
	return origin.Host == string(c.Request().Header.Host()) || err == nil && origin.Scheme == console.Scheme && origin.Host == console.Host
}

// secure says whether people reach the console by https.
func (s *Server) secure() bool { return strings.HasPrefix(s.o.Config.AdminURL, "https://") }

// cookieName has the prefix that makes browsers refuse the cookie from any other
// host and path, where there is TLS to allow it.
func (s *Server) cookieName() string {
	if s.secure() {
		return "__Host-backstop"
	}
	return "backstop"
}

// setCookie keeps a value with the browser; seconds below 0 take it away.
func (s *Server) setCookie(c *fiber.Ctx, name, value string, seconds int) {
	cookie := &fiber.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: seconds, Secure: s.secure(), HTTPOnly: true, SameSite: fiber.CookieSameSiteLaxMode,
	}
	if seconds < 0 {
		cookie.MaxAge, cookie.Expires = 0, fasthttp.CookieExpireDelete
	}
	c.Cookie(cookie)
}

// field is a field of the form in the body; what stands in the address is logged
// and kept by browsers, so it is no field.
func field(c *fiber.Ctx, name string) string { return string(c.Request().PostArgs().Peek(name)) }

// admitOperator lets in who is signed in and may do what the route is for.
func (s *Server) admitOperator(permission access.Permission) fiber.Handler {
	return func(c *fiber.Ctx) error {
		ctx, cancel := work()
		defer cancel()
		find := s.o.Sessions.Find
		// What a page asks for by itself keeps no session alive.
		if c.Get("HX-Request") == "true" || strings.HasPrefix(c.Path(), "/_/") {
			find = s.o.Sessions.Peek
		}
		op, err := find(ctx, c.Cookies(s.cookieName()))
		if errors.Is(err, access.ErrSession) {
			return s.askToSignIn(c)
		}
		if err != nil {
			return err
		}
		c.Locals(localCaller, "operator:"+op.Name)
		c.Locals(localOperator, op)
		if op.MustChange && permission != access.UseAccount {
			return c.Redirect("/me", http.StatusSeeOther)
		}
		if !s.policy.Allows(op.Role, permission) {
			return s.forbidden(permission)
		}
		if !isSafe(c.Method()) && permission != access.UseAccount && s.ready.failed("redis", "database", "writable") {
			return errFrozen
		}
		return c.Next()
	}
}

// errFrozen says that nobody may act while Redis or the database is in trouble.
var errFrozen = &apiError{status: http.StatusServiceUnavailable, code: "actions_off", message: "actions are off: Redis or the database is in trouble"}

// askToSignIn leads to the login, and from there back.
func (s *Server) askToSignIn(c *fiber.Ctx) error {
	if c.Get("HX-Request") == "true" { // a fragment cannot hold the login
		c.Set("HX-Redirect", "/login")
		return c.SendStatus(http.StatusUnauthorized)
	}
	to := "/login"
	if next := c.OriginalURL(); isSafe(c.Method()) && next != "/" {
		to += "?next=" + url.QueryEscape(next)
	}
	return c.Redirect(to, http.StatusSeeOther)
}

// forbidden answers who is signed in and may not; it says which roles may.
func (s *Server) forbidden(permission access.Permission) error {
	e := *errForbidden
	e.roles = s.policy.RolesWith(permission)
	return &e
}

// operator is who admitOperator let in; nil on pages for everybody.
func operator(c *fiber.Ctx) *access.Operator {
	op, _ := c.Locals(localOperator).(*access.Operator)
	return op
}

// safeNext keeps a login from leading to another site: browsers read "//x" and
// "/\x" as addresses of hosts.
func safeNext(next string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") || strings.HasPrefix(next, "/login") {
		return "/"
	}
	return next
}

func (s *Server) loginPage(c *fiber.Ctx) error {
	s.keepLanguage(c)
	return s.render(c, http.StatusOK, views.SignIn(s.page(c), views.Login{Next: safeNext(c.Query("next"))}))
}

// keepLanguage remembers ?lang of somebody who is not signed in.
func (s *Server) keepLanguage(c *fiber.Ctx) {
	if lang := c.Query("lang"); slices.Contains(access.Languages, lang) {
		s.setCookie(c, "lang", lang, keptChoice)
	}
}

// login signs in. Its answers are the same for names that there are and names
// that there are not.
func (s *Server) login(c *fiber.Ctx) error {
	form := views.Login{Name: field(c, "name"), Next: safeNext(field(c, "next"))}
	if len(form.Name) > maxFilter || !isStorable(form.Name) {
		form.Name = "" // nobody is called that, and no database need be asked
	}
	addr := s.client(c)
	try := access.SignIn{Name: form.Name, Address: senderOf(addr).String(), Device: s.device(c, form.Name)}
	if form.Wait = s.throttle.Try(try); form.Wait > 0 {
		form.Problem = views.TooMany
		c.Set(fiber.HeaderRetryAfter, "60")
		return s.render(c, http.StatusTooManyRequests, views.SignIn(s.page(c), form))
	}
	ctx, cancel := work()
	defer cancel()
	op, err := s.o.Operators.Login(ctx, form.Name, field(c, "password"))
	if errors.Is(err, access.ErrLogin) || errors.Is(err, access.ErrExpired) {
		form.Problem = views.WrongLogin
		if errors.Is(err, access.ErrExpired) {
			form.Problem = views.PasswordExpired
		}
		return s.render(c, http.StatusUnprocessableEntity, views.SignIn(s.page(c), form))
	}
	if err != nil {
		return err
	}
	s.throttle.Forgive(try)
	// Whoever signs in again leaves no session behind that nobody holds any more.
	if err := s.o.Sessions.End(ctx, c.Cookies(s.cookieName())); err != nil {
		return err
	}
	if err := s.startSession(ctx, c, op); err != nil {
		return err
	}
	s.keepDevice(c, op.Name, try.Device)
	if err := s.keepAct(ctx, audit.Act{Actor: "operator:" + op.Name, Action: "session.start", Object: "operator", ObjectID: op.Name, Remote: addr.String()}); err != nil {
		return err
	}
	s.o.Log.Info("signed in", "operator", op.Name, "remote", addr.String(), "request_id", localRequestID.text(c))
	if op.MustChange {
		return c.Redirect("/me", http.StatusSeeOther)
	}
	return c.Redirect(form.Next, http.StatusSeeOther)
}

// client is where somebody calls from, for the throttle, the audit and the list of
// sessions. What stands left of the address that our proxies saw is a stranger's, and
// neither hides nor changes it.
func (s *Server) client(c *fiber.Ctx) netip.Addr {
	return supplier.NearestAddr(peer(c), copyHeader(&c.Request().Header).Values(fiber.HeaderXForwardedFor), s.o.Config.TrustedProxies)
}

// deviceCookie and devices are where a browser keeps that a name signed in from it,
// and what tells that from a forgery. Each name has its own: a browser may be shared.
func (s *Server) deviceCookie(name string) string {
	return s.cookieName() + "-device-" + seal.HashToken(name)[:8]
}

func (s *Server) devices(name string) *seal.MAC { return s.o.Keys.MAC("device of " + name) }

// device is the browser's proof that the name signed in from it; "" = none.
func (s *Server) device(c *fiber.Ctx, name string) string {
	if device := c.Cookies(s.deviceCookie(name)); s.devices(name).IsToken("", device) {
		return device
	}
	return ""
}

// keepDevice gives the browser such a proof, or renews the one that it has. It opens
// nothing: whoever steals it may try passwords as slowly as anybody.
func (s *Server) keepDevice(c *fiber.Ctx, name, device string) {
	if device == "" {
		device = s.devices(name).NewToken("")
	}
	s.setCookie(c, s.deviceCookie(name), device, keptChoice)
}

func (s *Server) startSession(ctx context.Context, c *fiber.Ctx, op *access.Operator) error {
	token, err := s.o.Sessions.Start(ctx, op.ID, s.client(c).String())
	if err != nil {
		return err
	}
	s.setCookie(c, s.cookieName(), token, int(s.o.Config.SessionMax/time.Second))
	return nil
}

func (s *Server) logout(c *fiber.Ctx) error {
	ctx, cancel := work()
	defer cancel()
	if err := s.o.Sessions.End(ctx, c.Cookies(s.cookieName())); err != nil {
		return err
	}
	s.setCookie(c, s.cookieName(), "", -1)
	return c.Redirect("/login", http.StatusSeeOther)
}
