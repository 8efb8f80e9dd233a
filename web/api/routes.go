package api

import (
	"net/http"

	"backstop/internal/access"
	"backstop/internal/breaker"
	"backstop/web"
)

// monitoringPath leads the paths of the monitoring API.
const monitoringPath = "/api/v1/admin/merchant-callback-monitor/"

func (s *handlers) routes() []web.Route {
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
		{Method: http.MethodPost, Path: monitoringPath + "breakers/:merchant/open", Audience: web.ForMonitor, Scope: access.Control, Permission: access.ControlBreakers, Handler: s.breakerAct(breaker.OpenIt)},
		{Method: http.MethodPost, Path: monitoringPath + "breakers/:merchant/close", Audience: web.ForMonitor, Scope: access.Control, Permission: access.ControlBreakers, Handler: s.breakerAct(breaker.CloseIt)},
		{Method: http.MethodPost, Path: monitoringPath + "breakers/:merchant/probe", Audience: web.ForMonitor, Scope: access.Control, Permission: access.ControlBreakers, Handler: s.breakerAct(breaker.ProbeIt)},
		{Method: http.MethodGet, Path: monitoringPath + "health", Audience: web.ForMonitor, Scope: access.Monitor, Permission: access.ViewNotifications, Handler: s.health},
		{Method: http.MethodPost, Path: "/api/v1/admin/merchants/:code/ping", Audience: web.ForMonitor, Scope: access.Control, Permission: access.ControlAddresses, Handler: s.pingMerchant},
		{Method: http.MethodPost, Path: "/api/v1/admin/subscriptions/:code/ping", Audience: web.ForMonitor, Scope: access.Control, Permission: access.ControlAddresses, Handler: s.pingSubscription},
	}
}
