package web

import (
	"net/http"

	"github.com/gofiber/fiber/v2"
)

// door says who may come in by a route.
type door int

const (
	openDoor     door = iota // anybody
	supplierDoor             // anybody; the receiver judges by signature and address
	merchantDoor             // a merchant's API key
	monitorDoor              // a token with the scope "monitor"
)

// route is one line of the table of routes.
type route struct {
	method  string
	path    string
	door    door
	handler fiber.Handler
}

// callbackPath leads every callback's path.
const callbackPath = "/callback/"

// routes is every route there is; nothing else is reachable.
func (s *Server) routes() []route {
	return []route{
		{http.MethodGet, "/", openDoor, s.front},
		{http.MethodHead, "/", openDoor, s.front},
		{http.MethodGet, "/healthz", openDoor, s.alive},
		{http.MethodHead, "/healthz", openDoor, s.alive},
		{http.MethodGet, "/readyz", openDoor, s.isReady},
		{http.MethodHead, "/readyz", openDoor, s.isReady},
		{http.MethodGet, "/metrics", openDoor, metrics()},

		{http.MethodGet, callbackPath + ":supplier", supplierDoor, s.callback},
		{http.MethodPost, callbackPath + ":supplier", supplierDoor, s.callback},
		{http.MethodOptions, callbackPath + ":supplier", supplierDoor, callbackOptions},

		{http.MethodPost, "/api/v1/orders", merchantDoor, s.createOrder},
		{http.MethodGet, "/api/v1/orders", merchantDoor, s.findOrder},
		{http.MethodGet, "/api/v1/orders/:order_no", merchantDoor, s.getOrder},
		{http.MethodPost, "/api/v1/orders/:order_no/pay", merchantDoor, s.payOrder},
		{http.MethodPost, "/api/v1/orders/:order_no/cancel", merchantDoor, s.cancelOrder},

		{http.MethodGet, "/api/v1/admin/exceptions", monitorDoor, s.listExceptions},
		{http.MethodGet, "/api/v1/admin/callbacks", monitorDoor, s.listCallbacks},
	}
}

// admit is what stands before a route's handler.
func (s *Server) admit(d door) []fiber.Handler {
	switch d {
	case merchantDoor:
		return []fiber.Handler{s.admitMerchant}
	case monitorDoor:
		return []fiber.Handler{s.admitMonitor}
	default:
		return nil
	}
}
