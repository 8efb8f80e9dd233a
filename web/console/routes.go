// Package console serves the console: its pages and what operators do there.
package console

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/alert"
	"backstop/internal/approval"
	"backstop/internal/base/text"
	"backstop/internal/batch"
	"backstop/internal/breaker"
	"backstop/internal/compensation"
	"backstop/internal/compensation/resend"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/fund/adjust"
	"backstop/internal/fund/dispute"
	"backstop/internal/notify"
	"backstop/internal/operator"
	"backstop/internal/order"
	"backstop/internal/orderquery"
	"backstop/internal/passkey"
	"backstop/internal/pause"
	"backstop/internal/sandbox"
	"backstop/internal/savedview"
	"backstop/internal/settings/apply"
	"backstop/internal/signin"
	"backstop/internal/sweep"
	"backstop/internal/testmode"
	"backstop/views/figures"
	"backstop/views/orders"
	"backstop/views/search"
	"backstop/views/ui"
	"backstop/views/work"
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
	objects  []*object
	passkeys *passkey.Passkeys // nil = browsers have none for our address
}

func newHandlers(s *web.Server) *handlers {
	h := &handlers{
		Server: s, cursors: cursors{s.Keys.Derive("cursors")}, listTime: listTime, throttle: access.NewThrottle(), objects: newObjects(),
	}
	h.live = h.newLive()
	var err error
	if h.passkeys, err = passkey.New(s.DB, s.Keys, s.Config.AdminURL); err != nil {
		s.Log.Warn("there are no passkeys", "error", err)
	}
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
	do := func(path, kind string, ref func(*fiber.Ctx) (act.Ref, error), back func(act.Ref) string) web.Route {
		return s.onAct(web.ActRoute{Path: path, Kind: kind, Ref: ref, Back: back})
	}
	then := func(path, kind string, ref func(*fiber.Ctx) (act.Ref, error), then func(*fiber.Ctx, web.Acted) error) web.Route {
		return s.onAct(web.ActRoute{Path: path, Kind: kind, Ref: ref, Then: then})
	}
	var compared web.Menu // only in shadow mode is there anything to compare
	if s.Config.Shadow {
		compared = shown("git-compare", work.ComparisonsTitle)
	}
	list := []web.Route{
		{Method: http.MethodGet, Path: "/login", Audience: web.ForVisitor, Handler: s.loginPage},
		{Method: http.MethodPost, Path: "/login", Audience: web.ForVisitor, Handler: s.login},
		{Method: http.MethodPost, Path: "/login/passkey", Audience: web.ForVisitor, Handler: s.loginByPasskey},
		{Method: http.MethodGet, Path: "/login/oidc", Audience: web.ForVisitor, Handler: s.goToProvider},
		{Method: http.MethodGet, Path: signin.CallbackPath, Audience: web.ForVisitor, Handler: s.comeBack},
		{Method: http.MethodPost, Path: "/logout", Audience: web.ForVisitor, Handler: s.logout},

		page("/", access.ViewOverview, s.today, shown("layout-dashboard", text.Today)),
		{Method: http.MethodHead, Path: "/", Audience: web.ForOperator, Permission: access.ViewOverview, Handler: s.today},
		page("/guide", access.ViewOverview, s.guidePage, aside("circle-check", search.GuideTitle)),
		then("/guide/sandbox", sandbox.MakeAct, s.sandboxAsked, s.showSandbox),
		post("/guide/keys", access.ProposeSettings, s.exampleKeys),
		then("/guide/order", sandbox.OrderAct, s.sandboxNumber, s.createSandboxOrder),
		post("/guide/callback", s.Acts.Kind(sandbox.CallbackAct).Permission, s.sendSandboxCallback),
		then("/guide/dismiss", sandbox.DismissAct, always("guide"), s.hideGuide),
		page("/analytics", access.ViewOverview, s.analyticsPage, shown("chart-line", text.Analytics)),
		page("/analytics/:figure", access.ViewOverview, s.figure, web.Menu{}),
		page("/analytics/:figure/_table", access.ViewOverview, s.figureTable, web.Menu{}),
		page("/analytics/:figure/_chart", access.ViewOverview, s.figureChart, web.Menu{}),
		page("/reports", access.ViewOverview, serve(s, s.reports()), shown("calendar", text.Reports)),
		page("/reports/:day", access.ViewOverview, s.reportPage, web.Menu{}),
		page("/attention", access.ViewOverview, toToday, web.Menu{}),
		page("/_/attention", access.ViewOverview, s.attentionList, web.Menu{}),
		page("/attention/:incident", access.ViewAlerts, s.incidentPage, web.Menu{}),
		do("/attention/:incident/acknowledge", alert.AcknowledgeAct, byRow("incident"), ofIncident),
		do("/attention/:incident/assign", alert.AssignAct, byRow("incident"), ofIncident),
		do("/attention/:incident/snooze", alert.SnoozeAct, byRow("incident"), ofIncident),
		do("/attention/:incident/resume", alert.ResumeAct, byRow("incident"), ofIncident),
		do("/attention/:incident/close", alert.CloseAct, byRow("incident"), ofIncident),
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
		then("/orders/:order_no/unmask", console.UnmaskOrder, byID(web.OrderNo), s.unmaskOrder),
		then("/orders/:order_no/resend", notify.ResendAct, resendable, showOrder),
		do("/orders/:order_no/note", order.NoteAct, byID(web.OrderNo), ofOrder),
		do("/orders/:order_no/query", orderquery.QueryAct, byID(web.OrderNo), ofOrder),
		page("/callbacks", access.ViewCallbacks, serve(s, s.callbacks()), shown("webhook", text.Callbacks)),
		page("/callbacks/:callback", access.ViewCallbacks, s.callbackPage, web.Menu{}),
		then("/callbacks/:callback/unmask", console.UnmaskCallback, byRow("callback"), s.unmaskCallback),
		page("/notifications", access.ViewNotifications, serve(s, s.notifications()), shown("bell-ring", text.Notifications)),
		page("/notifications/:notification", access.ViewNotifications, s.notificationPage, web.Menu{}),
		then("/notifications/:notification/unmask", console.UnmaskNotification, s.notificationRef, s.unmaskNotification),
		do("/notifications/:notification/resend", notify.ResendAct, s.deliveryRef, ofNotification),
		page("/exceptions", access.ViewExceptions, serve(s, s.exceptions()), shown("wrench", text.Exceptions)),
		then("/exceptions/:exception/query", orderquery.QueryAct, s.orderOfException, showException),
		page("/approvals", access.ViewExceptions, s.approvalsPage, shown("users", text.Approvals)),
		page("/approvals/many", access.ViewExceptions, s.approveManyPage, web.Menu{}),
		post("/approvals/many", access.ViewExceptions, s.afterCode(s.approveMany)),
		page("/approvals/:approval", access.ViewExceptions, s.approvalPage, web.Menu{}),
		// The desk checks who may decide what, because that depends on the approval.
		post("/approvals/:approval/approve", access.ViewExceptions, s.afterCode(s.onApproval((*approval.Desk).Approve))),
		post("/approvals/:approval/again", access.ViewExceptions, s.onApproval((*approval.Desk).Retry)),
		post("/approvals/:approval/query", access.QueryOrders, s.onApproval((*approval.Desk).QueryAgain)),
		post("/approvals/:approval/reject", access.ViewExceptions, s.onApproval((*approval.Desk).Reject)),
		post("/approvals/:approval/withdraw", access.ViewExceptions, s.onApproval((*approval.Desk).Withdraw)),
		page("/refunds", access.ViewOrders, serve(s, s.refunds()), shown("undo-2", text.Refunds)),
		page("/refunds/:refund_no", access.ViewOrders, s.refundPage, web.Menu{}),
		page("/payouts", access.ViewOrders, serve(s, s.payouts()), shown("arrow-up-right", text.Payouts)),
		page("/payouts/:payout_no", access.ViewOrders, s.payoutPage, web.Menu{}),
		page("/disputes", access.ViewOrders, serve(s, s.disputes()), shown("scale", text.Disputes)),
		page("/disputes/:dispute_no", access.ViewOrders, s.disputePage, web.Menu{}),
		do("/disputes/:dispute_no/evidence", dispute.EvidenceAct, byID(web.DisputeNo), ofDispute),
		page("/accounts", access.ViewOrders, s.accountsPage, shown("landmark", text.Accounts)),
		post("/accounts/adjust", access.ProposeMoney, s.proposeAdjustment),
		page("/accounts/:account", access.ViewOrders, s.accountCurrencies, web.Menu{}),
		page("/accounts/:account/:currency", access.ViewOrders, s.linesPage, web.Menu{}),
		page("/statements", access.ViewOrders, s.statementsPage, shown("scroll-text", text.Statements)),
		page("/compensations", access.ViewCompensations, s.compensationsPage, shown("refresh-cw", text.Compensations)),
		s.onAct(web.ActRoute{
			Path: "/compensations/redrive", Kind: compensation.RedriveAct, Read: s.readRedrive, Then: s.showRedriven,
		}),
		page("/compensations/:compensation", access.ViewCompensations, s.compensationPage, web.Menu{}),
		do("/compensations/:compensation/run", compensation.RunAct, byRow("compensation"), ofCompensation),
		do("/compensations/:compensation/cancel", compensation.CancelAct, byRow("compensation"), ofCompensation),
		page("/sweeps", access.ViewSweeps, s.sweepsPage, shown("moon", text.Sweeps)),
		page("/sweeps/_runs", access.ViewSweeps, s.sweepRuns, web.Menu{}),
		do("/sweeps/run", sweep.RunAct, nil, onPage("/sweeps")),
		page("/comparisons", access.ViewCallbacks, serve(s, s.comparisons()), compared),
		page("/comparisons/:comparison", access.ViewCallbacks, s.comparisonPage, web.Menu{}),
		page("/batches", access.ViewCompensations, serve(s, s.batches()), shown("layers", text.Batches)),
		post("/batches/plan/:list/:action", s.Acts.Kind(batch.StartAct).Permission, s.planBatch),
		page("/batches/:batch", access.ViewCompensations, s.batchPage, web.Menu{}),
		s.onBatch("/batches/:batch/start", batch.StartAct, readTyped),
		s.onBatch("/batches/:batch/pause", batch.PauseAct, nil),
		s.onBatch("/batches/:batch/resume", batch.ResumeAct, nil),
		s.onBatch("/batches/:batch/stop", batch.StopAct, nil),
		s.onBatch("/batches/:batch/rate", batch.RateAct, nil),
		page("/merchants", access.ViewNotifications, serve(s, s.merchants()), shown("store", text.Merchants)),
		page("/merchants/:merchant", access.ViewNotifications, s.merchantPage, web.Menu{}),
		page("/merchants/:merchant/statement", access.ViewOrders, s.statementPage, web.Menu{}),
		post("/merchants/:merchant/freeze", access.ProposeMoney, s.proposeFunds(adjust.Freeze, adjust.OfFunds)),
		post("/merchants/:merchant/unfreeze", access.ProposeMoney, s.proposeFunds(adjust.Unfreeze, adjust.OfFrozen)),
		do("/merchants/:merchant/breaker/open", breaker.MoveAct(breaker.OpenIt), byID(web.MerchantCode), ofMerchant),
		do("/merchants/:merchant/breaker/close", breaker.MoveAct(breaker.CloseIt), byID(web.MerchantCode), ofMerchant),
		do("/merchants/:merchant/breaker/probe", breaker.MoveAct(breaker.ProbeIt), byID(web.MerchantCode), ofMerchant),
		then("/merchants/:merchant/ping", notify.PingAct("merchant"), endpointRef, showPing),
		then("/merchants/:merchant/rotate", apply.RotateAct, byID(web.MerchantCode), s.showRotated),
		then("/merchants/:merchant/test_key", testmode.KeyAct, byID(web.MerchantCode), s.showTestKey),
		do("/merchants/:merchant/enable", notify.EnableAct, endpointRef, ofMerchant),
		page("/suppliers", access.ViewCallbacks, s.suppliersPage, shown("credit-card", text.Suppliers)),
		page("/suppliers/:supplier", access.ViewCallbacks, s.supplierPage, web.Menu{}),
		page("/suppliers/:supplier/playground", access.ViewCallbacks, s.playgroundPage, web.Menu{}),
		post("/suppliers/:supplier/playground", access.ViewCallbacks, s.playground),
		page("/alerts", access.ViewAlerts, s.alertsPage, shown("shield-alert", text.Alerts)),
		do("/alerts/test", alert.TestAct, always("test"), onPage("/alerts")),
		do("/alerts/messages/:message/resend", resend.AlertAct, byRow("message"), onPage("/alerts")),
		do("/alerts/rules/:rule", alert.RuleAct, byID(ruleName), onPage("/alerts")),
		page("/exceptions/:exception", access.ViewExceptions, s.exceptionPage, web.Menu{}),
		then("/exceptions/:exception/unmask", console.UnmaskException, byRow("exception"), s.unmaskException),
		do("/exceptions/:exception/comment", exception.NoteAct, byRow("exception"), ofException),
		do("/exceptions/:exception/assign", exception.AssignAct, byRow("exception"), ofException),
		do("/exceptions/:exception/reopen", exception.ReopenAct, byRow("exception"), ofException),
		page("/queues", access.InspectQueues, s.queuesPage, shown("layers", text.Queues)),
		page("/queues/:queue", access.InspectQueues, s.queuePage, web.Menu{}),
		do("/queues/:queue/pause", pause.PauseAct, byID(queueName), ofQueue),
		do("/queues/:queue/resume", pause.ResumeAct, byID(queueName), ofQueue),
		page("/asynqmon/", access.InspectQueues, s.monitorPage, web.Menu{}),
		page("/asynqmon/*", access.InspectQueues, s.monitorPage, web.Menu{}),
		page("/operators", access.ManageOperators, s.operatorsPage, shown("users", text.Operators)),
		then("/operators", operator.InviteAct, s.invitee, s.showInvitation(s.sendOperators)),
		page("/operators/:operator", access.ManageOperators, s.operatorPage, web.Menu{}),
		do("/operators/:operator/role", operator.RoleAct, byID(operatorName), ofOperator),
		do("/operators/:operator/merchants", operator.MerchantsAct, byID(operatorName), ofOperator),
		do("/operators/:operator/disable", operator.DisableAct, byID(operatorName), ofOperator),
		do("/operators/:operator/enable", operator.EnableAct, byID(operatorName), ofOperator),
		do("/operators/:operator/end_sessions", operator.EndSessionsAct, byID(operatorName), ofOperator),
		do("/operators/:operator/revoke_tokens", operator.RevokeTokensAct, byID(operatorName), ofOperator),
		do("/operators/:operator/reset_second", operator.ResetSecondAct, byID(operatorName), ofOperator),
		then("/operators/:operator/reset", operator.ResetAct, byID(operatorName), s.showInvitation(s.sendOperator)),
		page("/roles", access.UseAccount, s.rolesPage, web.Menu{}),
		{Method: http.MethodGet, Path: "/invite/:token", Audience: web.ForVisitor, Handler: s.invitationPage},
		{Method: http.MethodPost, Path: "/invite/:token", Audience: web.ForVisitor, Handler: s.acceptInvitation},
		page("/audit", access.ViewRoleAudit, s.auditPage, shown("scroll-text", text.Audit)),
		page("/me", access.UseAccount, s.accountPage, aside("settings", text.Account)),
		own("/me", s.saveAccount),
		own("/me/password", s.changePassword),
		own("/me/sessions/end", s.endSessions),
		page("/second", access.UseAccount, s.secondPage, web.Menu{}),
		own("/second", s.giveSecond),
		page("/me/second", access.UseAccount, s.setUpPage, web.Menu{}),
		own("/me/second", s.setUpSecond),
		own("/me/second/codes", s.renewRecovery),
		own("/me/second/remove", s.removeSecond),
		own("/me/second/passkeys", s.addPasskey),
		own("/me/second/passkeys/remove", s.removePasskey),
		page("/_/passkey", access.UseAccount, s.askPasskey, web.Menu{}),
		page("/inbox", access.ViewOverview, s.inboxPage, aside("inbox", text.Inbox)),
		page("/_/bell", access.ViewOverview, s.bell, web.Menu{}),
		post("/inbox/read", access.ViewOverview, s.readInbox),
		page("/views", access.ViewOverview, s.viewsPage, aside("filter", search.ViewsTitle)),
		page("/views/_counts", access.ViewOverview, s.viewCounts, web.Menu{}),
		s.onAct(web.ActRoute{
			Path: "/views", Kind: savedview.SaveAct, Ref: byID(listName), Read: s.readView, Then: showSaved,
		}),
		then("/views/:view/change", savedview.ChangeAct, byRow("view"), showChanged),
		do("/views/:view/delete", savedview.DeleteAct, byRow("view"), showView(viewDeleted)),
		do("/views/:view/restore", savedview.RestoreAct, byRow("view"), showView(viewRestored)),
		do("/views/:view/watch", savedview.WatchAct, byRow("view"), showView("")),
		page("/search", access.ViewOrders, s.searchPage, web.Menu{}),
		page("/_/live", access.UseAccount, s.stream, web.Menu{}), // of what the page may show
	}
	for _, t := range s.topics() {
		if t.Name == attentionTopic {
			continue // it has a filter
		}
		list = append(list, page("/_/"+t.Name, access.ViewOverview, s.panel(t), web.Menu{}))
	}
	all, limits := s.follow(s.decisions(slices.Concat(s.settingRoutes(), list, s.testRoutes()))), s.limits()
	for i, r := range all {
		all[i].Limit = limits[r.Path]
	}
	return all
}

// idOf reads an id from the path. Errors: act.ErrNotFound.
func idOf(c *fiber.Ctx, name string) (int64, error) {
	id, err := strconv.ParseInt(c.Params(name), 10, 64)
	if err != nil || id < 1 {
		return 0, act.ErrNotFound
	}
	return id, nil
}
