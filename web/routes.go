package web

import (
	"net/http"
	"strings"

	"backstop/internal/access"
	"backstop/internal/base/text"

	"github.com/gofiber/fiber/v2"
)

// Audience is who may call a route. The zero value is nobody: New panics on a route without one.
type Audience int

const (
	ForAnyone   Audience = iota + 1 // any client
	ForInside                       // any client at the console's address
	ForSupplier                     // any client; the receiver checks signature and address
	ForMerchant                     // a merchant's API key
	ForMonitor                      // a token with the route's scope, or an operator whose role has its permission
	ForVisitor                      // any browser: pages for signing in and out
	ForOperator                     // an operator whose role has the route's permission
)

// public reports whether the audience's routes are served at the public address, if the console
// has its own address.
func (d Audience) public() bool { return d == ForAnyone || d == ForSupplier || d == ForMerchant }

// admin reports whether they are served at the console's address.
func (d Audience) admin() bool { return d == ForAnyone || !d.public() }

// Route is one line of the table of routes.
type Route struct {
	Method     string
	Path       string
	Audience   Audience
	Handler    fiber.Handler
	Permission access.Permission // of an operator; merchants' keys and services' tokens need none
	Scope      string            // of a service's token; "" admits none
	Person     bool              // services are refused: a person is needed
	Key        MerchantKey       // which key of a merchant
	Limit      Limit             // of callers who are limited to merchants; nil = it does not exist for them
	Menu       Menu              // the route's entry in the navigation
	Request    any               // the struct that it is read into, or an act's fields; nil = it has none
	Answer     any               // the struct that answers it, or OneOf; nil = not JSON
}

// OneOf are the structs of which one answers a route.
type OneOf []any

// fragment reports whether only the console's own script reads the route: a part of a page, or
// the stream of live figures. By convention such a path has a part that begins with "_".
func (r Route) fragment() bool { return isSafe(r.Method) && strings.Contains(r.Path, "/_") }

// MerchantKey is the key of a merchant that a route wants.
type MerchantKey int

const (
	APIKey    MerchantKey = iota
	PayoutKey             // payout_key, from one of payout_ips
	EitherKey
)

// Menu is an entry in the navigation; without an icon there is none.
type Menu struct {
	Icon  string
	Label text.Text
	// Aside is the icon of a page that is not in the navigation, but is found by its name.
	Aside string
}

// CallbackPath is the prefix of every callback's path.
const CallbackPath = "/callback/"

// routes returns the server's own routes.
func (s *Server) routes() []Route {
	return []Route{
		{Method: http.MethodGet, Path: "/healthz", Audience: ForAnyone, Handler: s.alive},
		{Method: http.MethodHead, Path: "/healthz", Audience: ForAnyone, Handler: s.alive},
		{Method: http.MethodGet, Path: "/readyz", Audience: ForAnyone, Handler: s.isReady},
		{Method: http.MethodHead, Path: "/readyz", Audience: ForAnyone, Handler: s.isReady},
		{Method: http.MethodGet, Path: "/metrics", Audience: ForInside, Handler: metrics()},
		{Method: http.MethodGet, Path: "/static/*", Audience: ForInside, Handler: s.staticFile},
		{Method: http.MethodGet, Path: CallbackPath + ":supplier", Audience: ForSupplier, Handler: s.callback},
		{Method: http.MethodPost, Path: CallbackPath + ":supplier", Audience: ForSupplier, Handler: s.callback},
		{Method: http.MethodOptions, Path: CallbackPath + ":supplier", Audience: ForSupplier, Handler: s.callbackOptions},
	}
}

// admit returns what runs before a route's handler.
func (s *Server) admit(r Route) []fiber.Handler {
	switch r.Audience {
	case ForMerchant:
		return []fiber.Handler{s.admitMerchant(r.Key)}
	case ForMonitor:
		return []fiber.Handler{s.admitMonitor(r)}
	case ForVisitor:
		return []fiber.Handler{s.dressPage}
	case ForOperator:
		if r.fragment() {
			return []fiber.Handler{s.dressPage, refuseForeign, s.admitOperator(r)}
		}
		if !isSafe(r.Method) {
			return []fiber.Handler{s.dressPage, s.admitOperator(r), s.showAgain}
		}
		return []fiber.Handler{s.dressPage, s.admitOperator(r)}
	default:
		return nil
	}
}
