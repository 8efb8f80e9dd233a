// Package api answers programs: merchants' systems, and those that monitor and control
// the installation. All of it is JSON; docs/merchants.md and docs/monitoring.md describe
// it.
package api

import (
	"net/http"

	"backstop/internal/access"
	"backstop/internal/breaker"
	"backstop/internal/notify"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// monitoringPath begins the paths of the monitoring API.
const monitoringPath = "/api/v1/admin/merchant-callback-monitor/"

// handlers answer the API's routes.
type handlers struct{ *web.Server }

// Routes are all routes of the API.
func Routes(server *web.Server) []web.Route {
	s := &handlers{server}
	act := func(path, kind string, h fiber.Handler) web.Route {
		k := s.Acts.Kind(kind)
		return web.Route{Method: http.MethodPost, Path: path, Audience: web.ForMonitor, Scope: k.Scope, Permission: k.Permission, Handler: h}
	}
	return []web.Route{
		{Method: http.MethodGet, Path: "/evidence-keys", Audience: web.ForInside, Handler: s.evidenceKeys},
		{Method: http.MethodPost, Path: "/api/v1/orders", Audience: web.ForMerchant, Handler: s.createOrder},
		{Method: http.MethodGet, Path: "/api/v1/orders", Audience: web.ForMerchant, Handler: s.findOrder},
		{Method: http.MethodGet, Path: "/api/v1/orders/:order_no", Audience: web.ForMerchant, Handler: s.getOrder},
		{Method: http.MethodPost, Path: "/api/v1/orders/:order_no/pay", Audience: web.ForMerchant, Handler: s.payOrder},
		{Method: http.MethodPost, Path: "/api/v1/orders/:order_no/cancel", Audience: web.ForMerchant, Handler: s.cancelOrder},
		{Method: http.MethodGet, Path: "/api/v1/notify/ws", Audience: web.ForMerchant, Handler: s.notifySocket},
		{Method: http.MethodGet, Path: "/api/v1/admin/exceptions", Audience: web.ForMonitor, Scope: access.Monitor, Permission: access.ViewExceptions, Handler: s.listExceptions},
		{Method: http.MethodGet, Path: "/api/v1/admin/callbacks", Audience: web.ForMonitor, Scope: access.Monitor, Permission: access.ViewCallbacks, Handler: s.listCallbacks},
		{Method: http.MethodGet, Path: monitoringPath + "realtime", Audience: web.ForMonitor, Scope: access.Monitor, Permission: access.ViewNotifications, Handler: s.realtime},
		{Method: http.MethodGet, Path: monitoringPath + "merchants", Audience: web.ForMonitor, Scope: access.Monitor, Permission: access.ViewNotifications, Handler: s.merchantStatuses},
		{Method: http.MethodGet, Path: monitoringPath + "logs", Audience: web.ForMonitor, Scope: access.Monitor, Permission: access.ViewNotifications, Handler: s.attemptLog},
		{Method: http.MethodGet, Path: monitoringPath + "breakers", Audience: web.ForMonitor, Scope: access.Monitor, Permission: access.ViewNotifications, Handler: s.breakers},
		act(monitoringPath+"breakers/:merchant/open", breaker.MoveAct(breaker.OpenIt), s.moveBreaker(breaker.OpenIt)),
		act(monitoringPath+"breakers/:merchant/close", breaker.MoveAct(breaker.CloseIt), s.moveBreaker(breaker.CloseIt)),
		act(monitoringPath+"breakers/:merchant/probe", breaker.MoveAct(breaker.ProbeIt), s.moveBreaker(breaker.ProbeIt)),
		{Method: http.MethodGet, Path: monitoringPath + "health", Audience: web.ForMonitor, Scope: access.Monitor, Permission: access.ViewNotifications, Handler: s.health},
		act("/api/v1/admin/merchants/:code/ping", notify.PingAct("merchant"), s.ping("merchant")),
		act("/api/v1/admin/subscriptions/:code/ping", notify.PingAct("subscription"), s.ping("subscription")),
	}
}
