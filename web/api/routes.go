// Package api serves programs: merchants' systems, and those that monitor and control the
// installation. Everything is JSON; docs/merchants.md and docs/monitoring.md describe it.
package api

import (
	"net/http"
	"slices"

	"backstop/internal/access"
	"backstop/internal/advance"
	"backstop/internal/breaker"
	"backstop/internal/bulk"
	"backstop/internal/compensation"
	"backstop/internal/notify"
	"backstop/internal/sweep"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// monitoringPath is the prefix of the paths of the monitoring API.
const monitoringPath = "/api/v1/admin/merchant-callback-monitor/"

// compensationPath is the prefix of the paths of compensations.
const compensationPath = "/api/v1/admin/compensations"

// sweepPath is the prefix of the paths of sweeps.
const sweepPath = "/api/v1/admin/sweeps"

// handlers serve the API's routes.
type handlers struct{ *web.Server }

// Routes returns all routes of the API.
func Routes(server *web.Server) []web.Route {
	s := &handlers{server}
	act := func(path, kind string, h fiber.Handler) web.Route {
		k := s.Acts.Kind(kind)
		return web.Route{
			Method: http.MethodPost, Path: path, Audience: web.ForMonitor, Scope: k.Scope, Permission: k.Permission,
			Person: k.Scope == "", Handler: h,
		}
	}
	return slices.Concat(s.approvalRoutes(), s.exceptionRoutes(), s.fundRoutes(), s.refundRoutes(), s.payoutRoutes(), s.disputeRoutes(),
		[]web.Route{
			{Method: http.MethodGet, Path: "/evidence-keys", Audience: web.ForInside, Handler: s.evidenceKeys},
			{Method: http.MethodPost, Path: "/api/v1/orders", Audience: web.ForMerchant, Handler: s.createOrder},
			{Method: http.MethodGet, Path: "/api/v1/orders", Audience: web.ForMerchant, Handler: s.findOrder},
			{Method: http.MethodGet, Path: "/api/v1/orders/:order_no", Audience: web.ForMerchant, Handler: s.getOrder},
			{Method: http.MethodPost, Path: "/api/v1/orders/:order_no/pay", Audience: web.ForMerchant, Handler: s.payOrder},
			{Method: http.MethodPost, Path: "/api/v1/orders/:order_no/cancel", Audience: web.ForMerchant, Handler: s.cancelOrder},
			{Method: http.MethodGet, Path: "/api/v1/notify/ws", Audience: web.ForMerchant, Handler: s.notifySocket},
			{
				Method: http.MethodGet, Path: "/api/v1/admin/callbacks", Audience: web.ForMonitor, Scope: access.Monitor,
				Permission: access.ViewCallbacks, Handler: s.listCallbacks,
			},
			{
				Method: http.MethodGet, Path: compensationPath, Audience: web.ForMonitor, Scope: access.Monitor,
				Permission: access.ViewCompensations, Handler: s.listCompensations,
			},
			{
				Method: http.MethodGet, Path: compensationPath + "/groups", Audience: web.ForMonitor, Scope: access.Monitor,
				Permission: access.ViewCompensations, Handler: s.groupCompensations,
			},
			{
				Method: http.MethodGet, Path: compensationPath + "/:id", Audience: web.ForMonitor, Scope: access.Monitor,
				Permission: access.ViewCompensations, Handler: s.getCompensation,
			},
			act(compensationPath+"/redrive", compensation.RedriveAct, s.redriveCompensations),
			act(compensationPath+"/:id/run", compensation.RunAct, s.onCompensation(compensation.RunAct, http.StatusAccepted)),
			act(compensationPath+"/:id/cancel", compensation.CancelAct, s.onCompensation(compensation.CancelAct, http.StatusOK)),
			{
				Method: http.MethodGet, Path: sweepPath, Audience: web.ForMonitor, Scope: access.Monitor, Permission: access.ViewSweeps,
				Handler: s.listSweeps,
			},
			act(sweepPath, sweep.RunAct, s.runSweep),
			{
				Method: http.MethodGet, Path: sweepPath + "/:id", Audience: web.ForMonitor, Scope: access.Monitor,
				Permission: access.ViewSweeps,
				Handler:    s.getSweep,
			},
			{
				Method: http.MethodGet, Path: batchesPath, Audience: web.ForMonitor, Scope: access.Monitor,
				Permission: access.ViewCompensations,
				Handler:    s.listBatches,
			},
			act(batchesPath, bulk.StartAct, s.planBatch),
			{
				Method: http.MethodGet, Path: batchesPath + "/:id", Audience: web.ForMonitor, Scope: access.Monitor,
				Permission: access.ViewCompensations, Handler: s.getBatch,
			},
			{
				Method: http.MethodGet, Path: batchesPath + "/:id/rows", Audience: web.ForMonitor, Scope: access.Monitor,
				Permission: access.ViewCompensations, Handler: s.batchRows,
			},
			act(batchesPath+"/:id/start", bulk.StartAct, s.startBatch),
			act(batchesPath+"/:id/pause", bulk.PauseAct, s.onBatch(bulk.PauseAct)),
			act(batchesPath+"/:id/resume", bulk.ResumeAct, s.onBatch(bulk.ResumeAct)),
			act(batchesPath+"/:id/stop", bulk.StopAct, s.onBatch(bulk.StopAct)),
			act(batchesPath+"/:id/rate", bulk.RateAct, s.onBatch(bulk.RateAct, "rate")),
			{
				Method: http.MethodGet, Path: monitoringPath + "realtime", Audience: web.ForMonitor, Scope: access.Monitor,
				Permission: access.ViewNotifications, Handler: s.realtime,
			},
			{
				Method: http.MethodGet, Path: monitoringPath + "merchants", Audience: web.ForMonitor, Scope: access.Monitor,
				Permission: access.ViewNotifications, Handler: s.merchantStatuses,
			},
			{
				Method: http.MethodGet, Path: monitoringPath + "logs", Audience: web.ForMonitor, Scope: access.Monitor,
				Permission: access.ViewNotifications, Handler: s.attemptLog,
			},
			{
				Method: http.MethodGet, Path: monitoringPath + "breakers", Audience: web.ForMonitor, Scope: access.Monitor,
				Permission: access.ViewNotifications, Handler: s.breakers,
			},
			act(monitoringPath+"breakers/:merchant/open", breaker.MoveAct(breaker.OpenIt), s.moveBreaker(breaker.OpenIt)),
			act(monitoringPath+"breakers/:merchant/close", breaker.MoveAct(breaker.CloseIt), s.moveBreaker(breaker.CloseIt)),
			act(monitoringPath+"breakers/:merchant/probe", breaker.MoveAct(breaker.ProbeIt), s.moveBreaker(breaker.ProbeIt)),
			{
				Method: http.MethodGet, Path: monitoringPath + "health", Audience: web.ForMonitor, Scope: access.Monitor,
				Permission: access.ViewNotifications, Handler: s.health,
			},
			{
				Method: http.MethodGet, Path: "/api/v1/admin/supplier-calls", Audience: web.ForMonitor, Scope: access.Monitor,
				Permission: access.ViewCallbacks, Handler: s.listCalls,
			},
			act("/api/v1/admin/orders/:order_no/query", advance.QueryAct, s.queryOrder),
			act("/api/v1/admin/merchants/:code/ping", notify.PingAct("merchant"), s.ping("merchant")),
			act("/api/v1/admin/subscriptions/:code/ping", notify.PingAct("subscription"), s.ping("subscription")),
		})
}
