// Package console serves the console: its pages and what operators do there.
package console

import (
	"net/http"
	"strconv"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/advance"
	"backstop/internal/alert"
	"backstop/internal/approval"
	"backstop/internal/base/text"
	"backstop/internal/breaker"
	"backstop/internal/bulk"
	"backstop/internal/compensation"
	"backstop/internal/compensation/resend"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/fund/adjust"
	"backstop/internal/fund/dispute"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/pause"
	"backstop/internal/sandbox"
	"backstop/internal/sweep"
	savedview "backstop/internal/view"
	"backstop/views/figures"
	"backstop/views/orders"
	"backstop/views/search"
	"backstop/views/ui"
	"backstop/web"
	"backstop/web/console/live"

	"github.com/gofiber/fiber/v2"
)

// handlers serve the console's routes.
type handlers struct {
	*web.Server
	cursors  cursors
	listTime time.Duration // see listTime; shorter in tests
	throttle *access.Throttle
	live     *live.Stream[*ui.Page]
	figures  live.Cache[string, figures.AnalyticsData] // by range
	counts   viewCounter
}

func newHandlers(s *web.Server) *handlers {
	h := &handlers{Server: s, cursors: cursors{s.Keys.Derive("cursors")}, listTime: listTime, throttle: access.NewThrottle()}
	h.live = h.newLive()
	return h
}

// Routes returns all routes of the console.
func Routes(s *web.Server) []web.Route { return newHandlers(s).routes() }

func (s *handlers) routes() []web.Route {
	shown := func(icon string, label text.Text) web.Menu { return web.Menu{Icon: icon, Label: label} }
	aside := func(icon string, label text.Text) web.Menu { return web.Menu{Aside: icon, Label: label} }
	page := func(path string, p access.Permission, h fiber.Handler, m web.Menu) web.Route {
		return web.Route{Method: http.MethodGet, Path: path, Audience: web.ForOperator, Permission: p, Handler: h, Menu: m}
	}
	own := func(path string, h fiber.Handler) web.Route {
		return web.Route{Method: http.MethodPost, Path: path, Audience: web.ForOperator, Permission: access.UseAccount, Handler: h}
	}
	post := func(path string, p access.Permission, h fiber.Handler) web.Route {
		return web.Route{Method: http.MethodPost, Path: path, Audience: web.ForOperator, Permission: p, Handler: h}
	}
	act := func(path, kind string, h fiber.Handler) web.Route {
		return web.Route{
			Method: http.MethodPost, Path: path, Audience: web.ForOperator, Permission: s.Acts.Kind(kind).Permission,
			Handler: h,
		}
	}
	list := []web.Route{
		{Method: http.MethodGet, Path: "/login", Audience: web.ForVisitor, Handler: s.loginPage},
		{Method: http.MethodPost, Path: "/login", Audience: web.ForVisitor, Handler: s.login},
		{Method: http.MethodPost, Path: "/logout", Audience: web.ForVisitor, Handler: s.logout},

		page("/", access.ViewOverview, s.overview, shown("layout-dashboard", text.Overview)),
		{Method: http.MethodHead, Path: "/", Audience: web.ForOperator, Permission: access.ViewOverview, Handler: s.overview},
		page("/guide", access.ViewOverview, s.guidePage, aside("circle-check", search.GuideTitle)),
		act("/guide/sandbox", sandbox.MakeAct, s.makeSandbox),
		act("/guide/order", sandbox.OrderAct, s.createSandboxOrder),
		act("/guide/callback", sandbox.CallbackAct, s.sendSandboxCallback),
		act("/guide/dismiss", sandbox.DismissAct, s.dismissGuide),
		page("/analytics", access.ViewOverview, s.analyticsPage, shown("chart-line", text.Analytics)),
		page("/analytics/:figure", access.ViewOverview, s.figure, web.Menu{}),
		page("/analytics/:figure/_table", access.ViewOverview, s.figureTable, web.Menu{}),
		page("/analytics/:figure/_chart", access.ViewOverview, s.figureChart, web.Menu{}),
		page("/reports", access.ViewOverview, serve(s, s.reports()), shown("calendar", text.Reports)),
		page("/reports/:day", access.ViewOverview, s.reportPage, web.Menu{}),
		page("/attention", access.ViewOverview, s.attentionPage, shown("activity", text.Attention)),
		page("/_/attention", access.ViewOverview, s.attentionList, web.Menu{}),
		page("/attention/:incident", access.ViewAlerts, s.incidentPage, web.Menu{}),
		act("/attention/:incident/acknowledge", alert.AcknowledgeAct, s.onIncident(alert.AcknowledgeAct)),
		act("/attention/:incident/assign", alert.AssignAct, s.onIncident(alert.AssignAct)),
		act("/attention/:incident/snooze", alert.SnoozeAct, s.onIncident(alert.SnoozeAct)),
		act("/attention/:incident/resume", alert.ResumeAct, s.onIncident(alert.ResumeAct)),
		act("/attention/:incident/close", alert.CloseAct, s.onIncident(alert.CloseAct)),
		page("/runbook", access.ViewOverview, s.runbookPage, shown("triangle-alert", search.RunbookTitle)),
		page("/orders", access.ViewOrders, serve(s, s.orders()), shown("receipt-text", text.Orders)),
		page("/orders/:order_no", access.ViewOrders, s.storyPage, web.Menu{}),
		page("/orders/:order_no/_head", access.ViewOrders, s.storyPart(orders.StoryHead), web.Menu{}),
		page("/orders/:order_no/_why", access.ViewOrders, s.storyPart(orders.StoryWhy), web.Menu{}),
		page("/orders/:order_no/_story", access.ViewOrders, s.storyPart(orders.StoryList), web.Menu{}),
		page("/orders/:order_no/_money", access.ViewOrders, s.storyPart(orders.StoryMoney), web.Menu{}),
		page("/orders/:order_no/_diff", access.ViewOrders, s.storyDiff, web.Menu{}),
		page("/orders/:order_no/events/:event_id/_raw", access.ViewOrders, s.storyRaw, web.Menu{}),
		page("/orders/:order_no/evidence", access.ExportEvidence, s.evidence, web.Menu{}),
		act("/orders/:order_no/unmask", console.UnmaskOrder, s.unmaskOrder),
		act("/orders/:order_no/resend", notify.ResendAct, s.resend),
		act("/orders/:order_no/note", order.NoteAct, s.note),
		act("/orders/:order_no/query", advance.QueryAct, s.askSupplier),
		post("/orders/:order_no/propose", access.ProposeMoney, s.proposeOrder),
		page("/callbacks", access.ViewCallbacks, serve(s, s.callbacks()), shown("webhook", text.Callbacks)),
		page("/callbacks/:callback", access.ViewCallbacks, s.callbackPage, web.Menu{}),
		act("/callbacks/:callback/unmask", console.UnmaskCallback, s.unmaskCallback),
		page("/notifications", access.ViewNotifications, serve(s, s.notifications()), shown("bell-ring", text.Notifications)),
		page("/notifications/:notification", access.ViewNotifications, s.notificationPage, web.Menu{}),
		act("/notifications/:notification/unmask", console.UnmaskNotification, s.unmaskNotification),
		act("/notifications/:notification/resend", notify.ResendAct, s.resendNotification),
		page("/exceptions", access.ViewExceptions, serve(s, s.exceptions()), shown("wrench", text.Exceptions)),
		act("/exceptions/:exception/query", advance.QueryAct, s.askAboutException),
		post("/exceptions/:exception/propose", access.IgnoreExceptions, s.proposeException),
		page("/approvals", access.ViewExceptions, s.approvalsPage, shown("users", text.Approvals)),
		page("/approvals/:approval", access.ViewExceptions, s.approvalPage, web.Menu{}),
		// The desk checks who may decide what, because that depends on the approval.
		post("/approvals/:approval/approve", access.ViewExceptions, s.onApproval((*approval.Desk).Approve)),
		post("/approvals/:approval/again", access.ViewExceptions, s.onApproval((*approval.Desk).Again)),
		post("/approvals/:approval/query", access.QueryOrders, s.onApproval((*approval.Desk).QueryAgain)),
		post("/approvals/:approval/reject", access.ViewExceptions, s.onApproval((*approval.Desk).Reject)),
		post("/approvals/:approval/withdraw", access.ViewExceptions, s.onApproval((*approval.Desk).Withdraw)),
		page("/refunds", access.ViewOrders, serve(s, s.refunds()), shown("undo-2", text.Refunds)),
		page("/refunds/:refund_no", access.ViewOrders, s.refundPage, web.Menu{}),
		page("/payouts", access.ViewOrders, serve(s, s.payouts()), shown("arrow-up-right", text.Payouts)),
		page("/payouts/:payout_no", access.ViewOrders, s.payoutPage, web.Menu{}),
		post("/payouts/:payout_no/propose", access.ProposeMoney, s.proposePayout),
		page("/disputes", access.ViewOrders, serve(s, s.disputes()), shown("scale", text.Disputes)),
		page("/disputes/:dispute_no", access.ViewOrders, s.disputePage, web.Menu{}),
		act("/disputes/:dispute_no/evidence", dispute.EvidenceAct, s.addEvidence),
		page("/accounts", access.ViewOrders, s.accountsPage, shown("landmark", text.Accounts)),
		post("/accounts/adjust", access.ProposeMoney, s.proposeAdjustment),
		page("/accounts/:account", access.ViewOrders, s.accountCurrencies, web.Menu{}),
		page("/accounts/:account/:currency", access.ViewOrders, s.linesPage, web.Menu{}),
		page("/compensations", access.ViewCompensations, s.compensationsPage, shown("refresh-cw", text.Compensations)),
		act("/compensations/redrive", compensation.RedriveAct, s.redriveCompensations),
		page("/compensations/:compensation", access.ViewCompensations, s.compensationPage, web.Menu{}),
		act("/compensations/:compensation/run", compensation.RunAct, s.onCompensation(compensation.RunAct)),
		act("/compensations/:compensation/cancel", compensation.CancelAct, s.onCompensation(compensation.CancelAct)),
		page("/sweeps", access.ViewSweeps, s.sweepsPage, shown("moon", text.Sweeps)),
		page("/sweeps/_runs", access.ViewSweeps, s.sweepRuns, web.Menu{}),
		act("/sweeps/run", sweep.RunAct, s.runSweep),
		page("/batches", access.ViewCompensations, serve(s, s.batches()), shown("layers", text.Batches)),
		act("/batches/plan/:list/:action", bulk.StartAct, s.planBatch),
		page("/batches/:batch", access.ViewCompensations, s.batchPage, web.Menu{}),
		page("/batches/:batch/_progress", access.ViewCompensations, s.batchProgress, web.Menu{}),
		act("/batches/:batch/start", bulk.StartAct, s.startBatch),
		act("/batches/:batch/pause", bulk.PauseAct, s.onBatch(bulk.PauseAct)),
		act("/batches/:batch/resume", bulk.ResumeAct, s.onBatch(bulk.ResumeAct)),
		act("/batches/:batch/stop", bulk.StopAct, s.onBatch(bulk.StopAct)),
		act("/batches/:batch/rate", bulk.RateAct, s.onBatch(bulk.RateAct)),
		page("/merchants", access.ViewNotifications, serve(s, s.merchants()), shown("store", text.Merchants)),
		page("/merchants/:merchant", access.ViewNotifications, s.merchantPage, web.Menu{}),
		page("/merchants/:merchant/statement", access.ViewOrders, s.statementPage, web.Menu{}),
		post("/merchants/:merchant/freeze", access.ProposeMoney, s.proposeFunds(adjust.Freeze, adjust.OfFunds)),
		post("/merchants/:merchant/unfreeze", access.ProposeMoney, s.proposeFunds(adjust.Unfreeze, adjust.OfFrozen)),
		act("/merchants/:merchant/breaker/open", breaker.MoveAct(breaker.OpenIt), s.moveBreaker(breaker.OpenIt)),
		act("/merchants/:merchant/breaker/close", breaker.MoveAct(breaker.CloseIt), s.moveBreaker(breaker.CloseIt)),
		act("/merchants/:merchant/breaker/probe", breaker.MoveAct(breaker.ProbeIt), s.moveBreaker(breaker.ProbeIt)),
		act("/merchants/:merchant/ping", notify.PingAct("merchant"), s.pingEndpoint),
		act("/merchants/:merchant/enable", notify.EnableAct, s.enableEndpoint),
		page("/suppliers", access.ViewCallbacks, s.suppliersPage, shown("credit-card", text.Suppliers)),
		page("/suppliers/:supplier", access.ViewCallbacks, s.supplierPage, web.Menu{}),
		page("/suppliers/:supplier/playground", access.ViewCallbacks, s.playgroundPage, web.Menu{}),
		post("/suppliers/:supplier/playground", access.ViewCallbacks, s.playground),
		page("/alerts", access.ViewAlerts, s.alertsPage, shown("shield-alert", text.Alerts)),
		act("/alerts/test", alert.TestAct, s.testAlert),
		act("/alerts/messages/:message/resend", resend.AlertAct, s.resendAlert),
		act("/alerts/rules/:rule", alert.RuleAct, s.changeRule),
		page("/exceptions/:exception", access.ViewExceptions, s.exceptionPage, web.Menu{}),
		act("/exceptions/:exception/unmask", console.UnmaskException, s.unmaskException),
		act("/exceptions/:exception/comment", exception.NoteAct, s.commentException),
		act("/exceptions/:exception/assign", exception.AssignAct, s.assignException),
		act("/exceptions/:exception/reopen", exception.ReopenAct, s.reopenException),
		page("/queues", access.InspectQueues, s.queuesPage, shown("layers", text.Queues)),
		page("/queues/:queue", access.InspectQueues, s.queuePage, web.Menu{}),
		act("/queues/:queue/pause", pause.PauseAct, s.onQueue(pause.PauseAct)),
		act("/queues/:queue/resume", pause.ResumeAct, s.onQueue(pause.ResumeAct)),
		page("/asynqmon/", access.InspectQueues, s.monitorPage, web.Menu{}),
		page("/asynqmon/*", access.InspectQueues, s.monitorPage, web.Menu{}),
		page("/audit", access.ViewAudit, s.auditPage, shown("scroll-text", text.Audit)),
		page("/me", access.UseAccount, s.accountPage, aside("settings", text.Account)),
		own("/me", s.saveAccount),
		own("/me/password", s.changePassword),
		own("/me/sessions/end", s.endSessions),
		page("/inbox", access.ViewOverview, s.inboxPage, aside("inbox", text.Inbox)),
		page("/_/bell", access.ViewOverview, s.bell, web.Menu{}),
		post("/inbox/read", access.ViewOverview, s.readInbox),
		page("/views", access.ViewOverview, s.viewsPage, aside("filter", search.ViewsTitle)),
		page("/views/_counts", access.ViewOverview, s.viewCounts, web.Menu{}),
		act("/views", savedview.SaveAct, s.saveView),
		act("/views/:view/change", savedview.ChangeAct, s.changeView),
		act("/views/:view/delete", savedview.DeleteAct, s.onView(savedview.DeleteAct, viewDeleted)),
		act("/views/:view/restore", savedview.RestoreAct, s.onView(savedview.RestoreAct, viewRestored)),
		act("/views/:view/watch", savedview.WatchAct, s.watchView),
		page("/search", access.ViewOrders, s.searchPage, web.Menu{}),
		page("/_/live", access.ViewOverview, s.stream, web.Menu{}),
	}
	for _, t := range s.topics() {
		list = append(list, page("/_/"+t.Name, access.ViewOverview, s.panel(t), web.Menu{}))
	}
	return list
}

// idOf reads an id from the path. Errors: act.ErrNotFound.
func idOf(c *fiber.Ctx, name string) (int64, error) {
	id, err := strconv.ParseInt(c.Params(name), 10, 64)
	if err != nil || id < 1 {
		return 0, act.ErrNotFound
	}
	return id, nil
}
