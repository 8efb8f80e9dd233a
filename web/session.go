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

// ContentPolicy lets pages load only what we serve, and run no inline scripts.
const ContentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// dressPage sets the headers of every page: what it may load, and that it is not cached.
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

// fromHere reports whether one of our own pages sent the request. Browsers set Sec-Fetch-Site
// (newer ones) and Origin (all), which a page cannot change, so no token is needed. A request
// with neither comes from no supported browser and is refused.
func (s *Server) fromHere(c *fiber.Ctx) bool {
	switch c.Get("Sec-Fetch-Site") {
	case "same-origin", "none": // none: the URL was typed
		return true
	case "":
	default:
		return false
	}
	origin, err := url.Parse(c.Get(fiber.HeaderOrigin))
	if err != nil || origin.Host == "" {
		return false
	}
	// Behind a proxy the Host may differ from the one in the browser.
	console, err := url.Parse(s.Config.AdminURL)
	return origin.Host == string(c.Request().Header.Host()) || err == nil && origin.Scheme == console.Scheme && origin.Host == console.Host
}

// refuseForeign refuses what a page of another site requests with the operator's cookie. Unlike
// fromHere it admits a client that sends neither header, because the route changes nothing.
func refuseForeign(c *fiber.Ctx) error {
	switch c.Get("Sec-Fetch-Site") {
	case "same-origin", "none", "":
		return c.Next()
	}
	return ErrForeign
}

// secure reports whether the console is reached by https.
func (s *Server) secure() bool { return strings.HasPrefix(s.Config.AdminURL, "https://") }

// CookieName returns the session cookie's name. With TLS it has the prefix that makes browsers
// refuse the cookie from any other host and path. Browsers send a cookie to every port of a host, so that
// of test mode has another name.
func (s *Server) CookieName() string {
	name := "backstop"
	if s.Sandbox != nil {
		name = "backstop-test"
	}
	if s.secure() {
		return "__Host-" + name
	}
	return name
}

// SetCookie sets a cookie; negative seconds delete it.
func (s *Server) SetCookie(c *fiber.Ctx, name, value string, seconds int) {
	cookie := &fiber.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: seconds, Secure: s.secure(), HTTPOnly: true, SameSite: fiber.CookieSameSiteLaxMode,
	}
	if seconds < 0 {
		cookie.MaxAge, cookie.Expires = 0, fasthttp.CookieExpireDelete
	}
	c.Cookie(cookie)
}

// Field returns a field of the form in the body. URL parameters do not count, because URLs are
// logged and stored by browsers.
func Field(c *fiber.Ctx, name string) string { return string(c.Request().PostArgs().Peek(name)) }

// gatePages are where a session goes first.
var gatePages = map[access.Gate]string{access.GiveCode: "/second", access.SetPassword: "/me", access.SetSecond: "/me/second"}

// admitOperator admits an operator who is signed in and has the route's permission, if it exists for
// the operator.
func (s *Server) admitOperator(r Route) fiber.Handler {
	permission := r.Permission
	return func(c *fiber.Ctx) error {
		find := s.Sessions.Find
		// Requests that a page makes by itself do not extend the session.
		if IsFragment(c) || strings.HasPrefix(c.Path(), "/_/") {
			find = s.Sessions.Peek
		}
		op, err := find(c.UserContext(), c.Cookies(s.CookieName()))
		if errors.Is(err, access.ErrSession) {
			return s.AskToSignIn(c)
		}
		if err != nil {
			return err
		}
		actor := s.actorOf(op)
		c.Locals(localCaller, actor.Name)
		c.Locals(localActor, actor)
		c.Locals(localOperator, op)
		if page := gatePages[op.Gate]; page != "" && c.Path() != page && (permission != access.UseAccount || op.Gate == access.GiveCode) {
			return c.Redirect(page, http.StatusSeeOther)
		}
		if err := r.limit(c, actor); err != nil {
			return err
		}
		if may := s.Policy.Allows(op.Roles, permission); !may && r.Path == "/" && actor.Merchants != nil {
			return c.Redirect(limitedHome, http.StatusSeeOther)
		} else if !may {
			return forbidden(s.Policy.RolesWith(permission))
		}
		if !isSafe(c.Method()) && permission != access.UseAccount && s.Ready.failed("redis", "database", "writable") != nil {
			return errFrozen
		}
		return c.Next()
	}
}

// IsFragment reports whether a page's script requests a part of it.
func IsFragment(c *fiber.Ctx) bool { return c.Get("HX-Request") == "true" }

// AskToSignIn redirects to the login, and from there back.
func (s *Server) AskToSignIn(c *fiber.Ctx) error {
	if IsFragment(c) { // a fragment cannot show the login
		c.Set("HX-Redirect", "/login")
		return c.SendStatus(http.StatusUnauthorized)
	}
	to := "/login"
	if next := c.OriginalURL(); isSafe(c.Method()) && next != "/" {
		to += "?next=" + url.QueryEscape(next)
	}
	return c.Redirect(to, http.StatusSeeOther)
}

// Operator returns the operator admitted by admitOperator; nil on pages without a login.
func Operator(c *fiber.Ctx) *access.Operator {
	op, _ := c.Locals(localOperator).(*access.Operator)
	return op
}

// actorOf returns an operator as an actor.
func (s *Server) actorOf(op *access.Operator) act.Actor {
	return act.Actor{Name: "operator:" + op.Name, ID: op.ID, Roles: op.Roles, Merchants: s.merchantIDs(op.Merchants)}
}

// Actor returns the admitted operator, service or merchant's system.
func (s *Server) Actor(c *fiber.Ctx) act.Actor {
	actor, _ := c.Locals(localActor).(act.Actor)
	actor.Remote = s.Client(c).String()
	return actor
}

// Client returns the client's address, for the throttle, the audit and the list of sessions.
// Anything left of the address that our proxies saw is only the client's claim and is ignored.
func (s *Server) Client(c *fiber.Ctx) netip.Addr {
	return supplier.NearestAddr(peer(c), copyHeader(&c.Request().Header).Values(fiber.HeaderXForwardedFor), s.Config.TrustedProxies)
}
