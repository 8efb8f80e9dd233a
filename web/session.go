package web

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/supplier"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// ContentPolicy lets pages load what we serve and nothing else, and run nothing
// that stands inside of a page.
const ContentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// dressPage stands before every page: what it may load, and that it is not kept.
func (s *Server) dressPage(c *fiber.Ctx) error {
	c.Locals(localPage, true)
	c.Set(fiber.HeaderContentSecurityPolicy, ContentPolicy)
	c.Set(fiber.HeaderReferrerPolicy, "same-origin")
	c.Set(fiber.HeaderCacheControl, "no-store")
	if s.secure() {
		c.Set(fiber.HeaderStrictTransportSecurity, "max-age=31536000")
	}
	if !isSafe(c.Method()) && !s.fromHere(c) {
		return ErrForeign
	}
	return c.Next()
}

func isSafe(method string) bool { return method == http.MethodGet || method == http.MethodHead }

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
	console, err := url.Parse(s.Config.AdminURL)
	return origin.Host == string(c.Request().Header.Host()) || err == nil && origin.Scheme == console.Scheme && origin.Host == console.Host
}

// secure says whether people reach the console by https.
func (s *Server) secure() bool { return strings.HasPrefix(s.Config.AdminURL, "https://") }

// CookieName has the prefix that makes browsers refuse the cookie from any other
// host and path, where there is TLS to allow it.
func (s *Server) CookieName() string {
	if s.secure() {
		return "__Host-backstop"
	}
	return "backstop"
}

// SetCookie keeps a value with the browser; seconds below 0 take it away.
func (s *Server) SetCookie(c *fiber.Ctx, name, value string, seconds int) {
	cookie := &fiber.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: seconds, Secure: s.secure(), HTTPOnly: true, SameSite: fiber.CookieSameSiteLaxMode,
	}
	if seconds < 0 {
		cookie.MaxAge, cookie.Expires = 0, fasthttp.CookieExpireDelete
	}
	c.Cookie(cookie)
}

// Field is a field of the form in the body; what stands in the address is logged
// and kept by browsers, so it is no field.
func Field(c *fiber.Ctx, name string) string { return string(c.Request().PostArgs().Peek(name)) }

// admitOperator lets in who is signed in and may do what the route is for.
func (s *Server) admitOperator(permission access.Permission) fiber.Handler {
	return func(c *fiber.Ctx) error {
		ctx, cancel := Work()
		defer cancel()
		find := s.Sessions.Find
		// What a page asks for by itself keeps no session alive.
		if c.Get("HX-Request") == "true" || strings.HasPrefix(c.Path(), "/_/") {
			find = s.Sessions.Peek
		}
		op, err := find(ctx, c.Cookies(s.CookieName()))
		if errors.Is(err, access.ErrSession) {
			return s.AskToSignIn(c)
		}
		if err != nil {
			return err
		}
		actor := actorOf(op)
		c.Locals(localCaller, actor.Name)
		c.Locals(localActor, actor)
		c.Locals(localOperator, op)
		if op.MustChange && permission != access.UseAccount {
			return c.Redirect("/me", http.StatusSeeOther)
		}
		if !s.Policy.Allows(op.Role, permission) {
			return s.Forbidden(permission)
		}
		if !isSafe(c.Method()) && permission != access.UseAccount && s.Ready.failed("redis", "database", "writable") {
			return errFrozen
		}
		return c.Next()
	}
}

// AskToSignIn leads to the login, and from there back.
func (s *Server) AskToSignIn(c *fiber.Ctx) error {
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

// Forbidden answers who is signed in and may not; it says which roles may.
func (s *Server) Forbidden(permission access.Permission) error {
	e := *ErrForbidden
	e.roles = s.Policy.RolesWith(permission)
	return &e
}

// Operator is who admitOperator let in; nil on pages for everybody.
func Operator(c *fiber.Ctx) *access.Operator {
	op, _ := c.Locals(localOperator).(*access.Operator)
	return op
}

// actorOf is an operator as one who acts.
func actorOf(op *access.Operator) act.Actor {
	return act.Actor{Name: "operator:" + op.Name, Role: op.Role}
}

// Actor is who was let in, as one who acts.
func (s *Server) Actor(c *fiber.Ctx) act.Actor {
	actor, _ := c.Locals(localActor).(act.Actor)
	actor.Remote = s.Client(c).String()
	return actor
}

// Client is where somebody calls from, for the throttle, the audit and the list of
// sessions. What stands left of the address that our proxies saw is a stranger's, and
// neither hides nor changes it.
func (s *Server) Client(c *fiber.Ctx) netip.Addr {
	return supplier.NearestAddr(peer(c), copyHeader(&c.Request().Header).Values(fiber.HeaderXForwardedFor), s.Config.TrustedProxies)
}
