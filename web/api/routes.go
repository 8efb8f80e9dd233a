// Package api serves programs: merchants' systems, and those that monitor and control the
// installation. Everything is JSON; docs/merchants.md and docs/monitoring.md describe it.
package api

import (
	"net/http"
	"slices"
	"time"

	"backstop/internal/access"
	"backstop/internal/advance"
	"backstop/internal/breaker"
	"backstop/internal/bulk"
	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/internal/payment"
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
	act := func(path, kind string, h fiber.Handler, answer any) web.Route {
		k := s.Acts.Kind(kind)
		return web.Route{
			Method: http.MethodPost, Path: path, Audience: web.ForMonitor, Scope: k.Scope, Permission: k.Permission,
			Person: k.Scope == "", Handler: h, Answer: answer,
		}
	}
	const orders = "/api/v1/orders"
	table := slices.Concat(s.approvalRoutes(), s.exceptionRoutes(), s.fundRoutes(), s.refundRoutes(), s.payoutRoutes(), s.disputeRoutes(),
		[]web.Route{
			{Method: http.MethodGet, Path: "/evidence-keys", Audience: web.ForInside, Handler: s.evidenceKeys, Answer: keysView{}},
			{
				Method: http.MethodPost, Path: orders, Audience: web.ForMerchant, Handler: s.createOrder,
				Request: payment.CreateRequest{}, Answer: orderView{},
			},
			merchants(orders, s.findOrder, orderQuery{}, orderView{}),
			merchants(orders+"/:order_no", s.getOrder, nil, orderView{}),
			{
				Method: http.MethodPost, Path: orders + "/:order_no/pay", Audience: web.ForMerchant, Handler: s.payOrder,
				Request: payment.PayRequest{}, Answer: paidOrder{},
			},
			{
				Method: http.MethodPost, Path: orders + "/:order_no/cancel", Audience: web.ForMerchant, Handler: s.cancelOrder,
				Answer: orderView{},
			},
			merchants("/api/v1/notify/ws", s.notifySocket, nil, nil),
			reads("/api/v1/admin/callbacks", access.ViewCallbacks, s.listCallbacks, callbacksQuery{}, page[callbackView]{}),
			reads(compensationPath, access.ViewCompensations, s.listCompensations, compensationsQuery{}, page[compensationView]{}),
			reads(compensationPath+"/groups", access.ViewCompensations, s.groupCompensations, groupsQuery{}, page[groupView]{}),
			reads(compensationPath+"/:id", access.ViewCompensations, s.getCompensation, nil, oneCompensationView{}),
			act(compensationPath+"/redrive", compensation.RedriveAct, s.redriveCompensations, redrivenView{}),
			act(compensationPath+"/:id/run", compensation.RunAct, s.onCompensation(compensation.RunAct, http.StatusAccepted),
				compensationView{}),
			act(compensationPath+"/:id/cancel", compensation.CancelAct, s.onCompensation(compensation.CancelAct, http.StatusOK),
				compensationView{}),
			reads(sweepPath, access.ViewSweeps, s.listSweeps, paging{}, page[sweepView]{}),
			act(sweepPath, sweep.RunAct, s.runSweep, begunView{}),
			reads(sweepPath+"/:id", access.ViewSweeps, s.getSweep, nil, sweepView{}),
			reads(batchesPath, access.ViewCompensations, s.listBatches, paging{}, page[batchView]{}),
			planned(act(batchesPath, bulk.StartAct, s.planBatch, batchView{})),
			reads(batchesPath+"/:id", access.ViewCompensations, s.getBatch, nil, batchView{}),
			reads(batchesPath+"/:id/rows", access.ViewCompensations, s.batchRows, rowsQuery{}, page[rowView]{}),
			act(batchesPath+"/:id/start", bulk.StartAct, s.startBatch, batchView{}),
			act(batchesPath+"/:id/pause", bulk.PauseAct, s.onBatch(bulk.PauseAct), batchView{}),
			act(batchesPath+"/:id/resume", bulk.ResumeAct, s.onBatch(bulk.ResumeAct), batchView{}),
			act(batchesPath+"/:id/stop", bulk.StopAct, s.onBatch(bulk.StopAct), batchView{}),
			act(batchesPath+"/:id/rate", bulk.RateAct, s.onBatch(bulk.RateAct, "rate"), batchView{}),
			reads(monitoringPath+"realtime", access.ViewNotifications, s.realtime, nil, realtimeView{}),
			reads(monitoringPath+"merchants", access.ViewNotifications, s.merchantStatuses, merchantQuery{}, page[merchantView]{}),
			reads(monitoringPath+"logs", access.ViewNotifications, s.attemptLog, logQuery{}, page[attemptView]{}),
			reads(monitoringPath+"breakers", access.ViewNotifications, s.breakers, merchantQuery{}, page[breakerView]{}),
			act(monitoringPath+"breakers/:merchant/open", breaker.MoveAct(breaker.OpenIt), s.moveBreaker(breaker.OpenIt), breakerView{}),
			act(monitoringPath+"breakers/:merchant/close", breaker.MoveAct(breaker.CloseIt), s.moveBreaker(breaker.CloseIt), breakerView{}),
			act(monitoringPath+"breakers/:merchant/probe", breaker.MoveAct(breaker.ProbeIt), s.moveBreaker(breaker.ProbeIt), breakerView{}),
			reads(monitoringPath+"health", access.ViewNotifications, s.health, nil, healthView{}),
			reads("/api/v1/admin/supplier-calls", access.ViewCallbacks, s.listCalls, callsQuery{}, page[callView]{}),
			act("/api/v1/admin/orders/:order_no/query", advance.QueryAct, s.queryOrder, answerView{}),
			act("/api/v1/admin/merchants/:code/ping", notify.PingAct("merchant"), s.ping("merchant"), pingView{}),
			act("/api/v1/admin/subscriptions/:code/ping", notify.PingAct("subscription"), s.ping("subscription"), pingView{}),
		})
	limits := map[string]int64{"expires_in": int64(s.Config.OrderExpiryMax / time.Second)}
	for i, r := range table {
		if r.Request != nil {
			table[i].Handler = readerOf(r.Request, limits).before(r.Handler)
		}
	}
	return table
}

// reads is a route of what services with the scope monitor, and operators, may read.
func reads(path string, p access.Permission, h fiber.Handler, request, answer any) web.Route {
	return web.Route{
		Method: http.MethodGet, Path: path, Audience: web.ForMonitor, Scope: access.Monitor, Permission: p, Handler: h, Request: request,
		Answer: answer,
	}
}

// merchants is a route of what a merchant may read.
func merchants(path string, h fiber.Handler, request, answer any) web.Route {
	return web.Route{Method: http.MethodGet, Path: path, Audience: web.ForMerchant, Handler: h, Request: request, Answer: answer}
}

// planned is the route that plans a batch: its request is no act's.
func planned(r web.Route) web.Route {
	r.Request = console.BatchWish{}
	return r
}
