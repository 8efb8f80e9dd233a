// Package api serves programs: merchants' systems, and those that monitor and control the
// installation. Everything is JSON; docs/merchants.md and docs/monitoring.md describe it.
package api

import (
	"net/http"
	"slices"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/batch"
	"backstop/internal/breaker"
	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/internal/orderquery"
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
	do := func(path, kind string, ref func(*fiber.Ctx) (act.Ref, error), then func(*fiber.Ctx, web.Acted) error, answer any) web.Route {
		return s.onAct(web.ActRoute{Path: path, Kind: kind, Ref: ref, Then: then, Answer: answer})
	}
	ofBatches := s.Acts.Kind(batch.StartAct)
	const orders = "/api/v1/orders"
	table := slices.Concat(s.approvalRoutes(), s.proposalRoutes(), s.exceptionRoutes(), s.fundRoutes(), s.refundRoutes(), s.payoutRoutes(), s.disputeRoutes(),
		s.notificationRoutes(), s.secretRoutes(),
		s.settingRoutes(),
		[]web.Route{
			{
				Method: http.MethodGet, Path: eventTypesPath, Audience: web.ForAnyone, Answer: eventTypesAnswer{},
				Handler: func(c *fiber.Ctx) error { return c.JSON(eventTypesAnswer{EventTypes()}) },
			},
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
			{
				Method: http.MethodPost, Path: "/api/v1/test/orders/:order_no/:scenario", Audience: web.ForMerchant, Handler: s.playPayment,
				Answer: playedView{},
			},
			merchants("/api/v1/notify/ws", s.notifySocket, nil, nil),
			reads("/api/v1/admin/callbacks", access.ViewCallbacks, s.listCallbacks, callbacksQuery{}, page[callbackView]{}),
			reads(compensationPath, access.ViewCompensations, s.listCompensations, compensationsQuery{}, page[compensationView]{}),
			reads(compensationPath+"/groups", access.ViewCompensations, s.groupCompensations, groupsQuery{}, page[groupView]{}),
			reads(compensationPath+"/:id", access.ViewCompensations, s.getCompensation, nil, oneCompensationView{}),
			do(compensationPath+"/redrive", compensation.RedriveAct, nil, s.showRedriven, redrivenView{}),
			do(compensationPath+"/:id/run", compensation.RunAct, rowRef, s.showCompensation(http.StatusAccepted), compensationView{}),
			do(compensationPath+"/:id/cancel", compensation.CancelAct, rowRef, s.showCompensation(http.StatusOK), compensationView{}),
			reads(sweepPath, access.ViewSweeps, s.listSweeps, paging{}, page[sweepView]{}),
			do(sweepPath, sweep.RunAct, nil, s.showBegun, begunView{}),
			reads(sweepPath+"/:id", access.ViewSweeps, s.getSweep, nil, sweepView{}),
			reads(batchesPath, access.ViewCompensations, s.listBatches, paging{}, page[batchView]{}),
			{
				Method: http.MethodPost, Path: batchesPath, Audience: web.ForMonitor, Scope: ofBatches.Scope, Permission: ofBatches.Permission,
				Handler: s.planBatch, Request: console.BatchWish{}, Answer: batchView{},
			},
			reads(batchesPath+"/:id", access.ViewCompensations, s.showBatch(http.StatusOK), nil, batchView{}),
			reads(batchesPath+"/:id/rows", access.ViewCompensations, s.batchRows, rowsQuery{}, page[rowView]{}),
			s.startBatch(),
			s.onBatch("pause", batch.PauseAct),
			s.onBatch("resume", batch.ResumeAct),
			s.onBatch("stop", batch.StopAct),
			s.onBatch("rate", batch.RateAct),
			reads(monitoringPath+"realtime", access.ViewNotifications, s.realtime, nil, realtimeView{}),
			reads(monitoringPath+"merchants", access.ViewNotifications, s.merchantStatuses, merchantQuery{}, page[merchantView]{}),
			reads(monitoringPath+"logs", access.ViewNotifications, s.attemptLog, logQuery{}, page[attemptView]{}),
			reads(monitoringPath+"breakers", access.ViewNotifications, s.breakers, merchantQuery{}, page[breakerView]{}),
			s.moveBreaker("open", breaker.OpenIt),
			s.moveBreaker("close", breaker.CloseIt),
			s.moveBreaker("probe", breaker.ProbeIt),
			reads(monitoringPath+"health", access.ViewNotifications, s.health, nil, healthView{}),
			reads("/api/v1/admin/supplier-calls", access.ViewCallbacks, s.listCalls, callsQuery{}, page[callView]{}),
			s.onAct(web.ActRoute{
				Path: "/api/v1/admin/orders/:order_no/query", Kind: orderquery.QueryAct, Ref: byID(web.OrderNo),
				Request: queryRequest{}, Read: readQuery, Then: s.showAnswer, Answer: answerView{},
			}),
			s.ping("/api/v1/admin/merchants/:code/ping", "merchant"),
			s.ping("/api/v1/admin/subscriptions/:code/ping", "subscription"),
		})
	for i, r := range table {
		table[i].Limit = s.limits()[r.Path]
	}
	limits := map[string]int64{"expires_in": int64(s.Config.OrderExpiryMax / time.Second)}
	readers := map[int]*reader{}
	for i, r := range table {
		if r.Request != nil {
			readers[i] = readerOf(r.Request, limits)
			table[i].Handler = readers[i].before(r.Handler)
		}
	}
	return append(table, s.described(table, readers)...)
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
