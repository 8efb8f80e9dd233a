package web

import (
	"net/http"

	"backstop/internal/access"
	"backstop/internal/breaker"
	"backstop/views"

	"github.com/gofiber/fiber/v2"
)

// door says who may come in by a route.
type door int

const (
	openDoor     door = iota // anybody
	insideDoor               // anybody who reaches the console's address
	supplierDoor             // anybody; the receiver judges by signature and address
	merchantDoor             // a merchant's API key
	monitorDoor              // a token with the route's scope, or an operator whose role has its permission
	loginDoor                // anybody with a browser: pages for signing in and out
	consoleDoor              // an operator whose role has the route's permission
)

// public says whether routes of this door are served at the public address, where the
// console has one of its own.
func (d door) public() bool { return d == openDoor || d == supplierDoor || d == merchantDoor }

// admin says whether they are served at the console's address.
func (d door) admin() bool { return d == openDoor || !d.public() }

// route is one line of the table of routes.
type route struct {
	method     string
	path       string
	door       door
	handler    fiber.Handler
	permission access.Permission // of an operator; a merchant's key and a service's token need none
	scope      string            // of a service's token; "" lets none in
	menu       menu              // where the route stands in the navigation
}

// menu is a line of the navigation; one without an icon is none.
type menu struct {
	icon  string
	label views.Label
}

// callbackPath leads every callback's path.
const callbackPath = "/callback/"

// monitoringPath leads the paths of the monitoring API.
const monitoringPath = "/api/v1/admin/merchant-callback-monitor/"

// routes is every route there is; nothing else is reachable. A page more is a
// line here, its file beside this one and its views.
func (s *Server) routes() []route {
	return append(s.machineRoutes(), s.consoleRoutes()...)
}

func (s *Server) machineRoutes() []route {
	return []route{
		{method: http.MethodGet, path: "/healthz", door: openDoor, handler: s.alive},
		{method: http.MethodHead, path: "/healthz", door: openDoor, handler: s.alive},
		{method: http.MethodGet, path: "/readyz", door: openDoor, handler: s.isReady},
		{method: http.MethodHead, path: "/readyz", door: openDoor, handler: s.isReady},
		{method: http.MethodGet, path: "/metrics", door: insideDoor, handler: metrics()},
		{method: http.MethodGet, path: "/evidence-keys", door: insideDoor, handler: s.evidenceKeys},
		{method: http.MethodGet, path: "/static/*", door: insideDoor, handler: s.staticFile},

		{method: http.MethodGet, path: callbackPath + ":supplier", door: supplierDoor, handler: s.callback},
		{method: http.MethodPost, path: callbackPath + ":supplier", door: supplierDoor, handler: s.callback},
		{method: http.MethodOptions, path: callbackPath + ":supplier", door: supplierDoor, handler: s.callbackOptions},

		{method: http.MethodPost, path: "/api/v1/orders", door: merchantDoor, handler: s.createOrder},
		{method: http.MethodGet, path: "/api/v1/orders", door: merchantDoor, handler: s.findOrder},
		{method: http.MethodGet, path: "/api/v1/orders/:order_no", door: merchantDoor, handler: s.getOrder},
		{method: http.MethodPost, path: "/api/v1/orders/:order_no/pay", door: merchantDoor, handler: s.payOrder},
		{method: http.MethodPost, path: "/api/v1/orders/:order_no/cancel", door: merchantDoor, handler: s.cancelOrder},
		{method: http.MethodGet, path: "/api/v1/notify/ws", door: merchantDoor, handler: s.notifySocket},

		{method: http.MethodGet, path: "/api/v1/admin/exceptions", door: monitorDoor, scope: access.Monitor, permission: access.ViewExceptions, handler: s.listExceptions},
		{method: http.MethodGet, path: "/api/v1/admin/callbacks", door: monitorDoor, scope: access.Monitor, permission: access.ViewCallbacks, handler: s.listCallbacks},
		{method: http.MethodGet, path: monitoringPath + "realtime", door: monitorDoor, scope: access.Monitor, permission: access.ViewNotifications, handler: s.realtime},
		{method: http.MethodGet, path: monitoringPath + "merchants", door: monitorDoor, scope: access.Monitor, permission: access.ViewNotifications, handler: s.merchantStatuses},
		{method: http.MethodGet, path: monitoringPath + "logs", door: monitorDoor, scope: access.Monitor, permission: access.ViewNotifications, handler: s.attemptLog},
		{method: http.MethodGet, path: monitoringPath + "breakers", door: monitorDoor, scope: access.Monitor, permission: access.ViewNotifications, handler: s.breakers},
		{method: http.MethodPost, path: monitoringPath + "breakers/:merchant/open", door: monitorDoor, scope: access.Control, permission: access.ControlBreakers, handler: s.breakerAct(breaker.OpenIt)},
		{method: http.MethodPost, path: monitoringPath + "breakers/:merchant/close", door: monitorDoor, scope: access.Control, permission: access.ControlBreakers, handler: s.breakerAct(breaker.CloseIt)},
		{method: http.MethodPost, path: monitoringPath + "breakers/:merchant/probe", door: monitorDoor, scope: access.Control, permission: access.ControlBreakers, handler: s.breakerAct(breaker.ProbeIt)},
		{method: http.MethodGet, path: monitoringPath + "health", door: monitorDoor, scope: access.Monitor, permission: access.ViewNotifications, handler: s.health},
		{method: http.MethodPost, path: "/api/v1/admin/merchants/:code/ping", door: monitorDoor, scope: access.Control, permission: access.ControlAddresses, handler: s.pingMerchant},
		{method: http.MethodPost, path: "/api/v1/admin/subscriptions/:code/ping", door: monitorDoor, scope: access.Control, permission: access.ControlAddresses, handler: s.pingSubscription},
	}
}

func (s *Server) consoleRoutes() []route {
	page := func(path string, p access.Permission, h fiber.Handler, m menu) route {
		return route{method: http.MethodGet, path: path, door: consoleDoor, permission: p, handler: h, menu: m}
	}
	act := func(path string, p access.Permission, h fiber.Handler) route {
		return route{method: http.MethodPost, path: path, door: consoleDoor, permission: p, handler: h}
	}
	list := []route{
		{method: http.MethodGet, path: "/login", door: loginDoor, handler: s.loginPage},
		{method: http.MethodPost, path: "/login", door: loginDoor, handler: s.login},
		{method: http.MethodPost, path: "/logout", door: loginDoor, handler: s.logout},

		page("/", access.ViewOverview, s.overview, menu{"layout-dashboard", views.LabelOverview}),
		{method: http.MethodHead, path: "/", door: consoleDoor, permission: access.ViewOverview, handler: s.overview},
		page("/orders", access.ViewOrders, s.ordersPage, menu{"receipt-text", views.LabelOrders}),
		page("/orders/_new", access.ViewOrders, s.news(s.ordersPage), menu{}),
		page("/orders/:order_no", access.ViewOrders, s.storyPage, menu{}),
		page("/orders/:order_no/_head", access.ViewOrders, s.storyPart(views.StoryHead), menu{}),
		page("/orders/:order_no/_why", access.ViewOrders, s.storyPart(views.StoryWhy), menu{}),
		page("/orders/:order_no/_story", access.ViewOrders, s.storyPart(views.StoryList), menu{}),
		page("/orders/:order_no/_money", access.ViewOrders, s.storyPart(views.StoryMoney), menu{}),
		page("/orders/:order_no/_diff", access.ViewOrders, s.storyDiff, menu{}),
		page("/orders/:order_no/events/:event_id/_raw", access.ViewOrders, s.storyRaw, menu{}),
		page("/orders/:order_no/evidence", access.ExportEvidence, s.evidence, menu{}),
		act("/orders/:order_no/unmask", access.ViewPersonal, s.unmask),
		act("/orders/:order_no/resend", access.Resend, s.resend),
		act("/orders/:order_no/note", access.Comment, s.note),
		page("/callbacks", access.ViewCallbacks, s.callbacksPage, menu{"webhook", views.LabelCallbacks}),
		page("/callbacks/_new", access.ViewCallbacks, s.news(s.callbacksPage), menu{}),
		page("/callbacks/:callback", access.ViewCallbacks, s.callbackPage, menu{}),
		page("/notifications", access.ViewNotifications, s.notificationsPage, menu{"bell-ring", views.LabelNotifications}),
		page("/notifications/_new", access.ViewNotifications, s.news(s.notificationsPage), menu{}),
		act("/notifications/plans", access.ResendMany, s.proposePlan),
		page("/notifications/plans/:plan", access.ResendMany, s.planPage, menu{}),
		act("/notifications/plans/:plan/run", access.ResendMany, s.runPlan),
		page("/notifications/:notification", access.ViewNotifications, s.notificationPage, menu{}),
		page("/exceptions", access.ViewExceptions, s.exceptionsPage, menu{"wrench", views.LabelExceptions}),
		page("/exceptions/_new", access.ViewExceptions, s.news(s.exceptionsPage), menu{}),
		page("/merchants", access.ViewNotifications, s.merchantsPage, menu{"store", views.LabelMerchants}),
		page("/merchants/:merchant", access.ViewNotifications, s.merchantPage, menu{}),
		act("/merchants/:merchant/breaker/open", access.ControlBreakers, s.moveBreaker(breaker.OpenIt)),
		act("/merchants/:merchant/breaker/close", access.ControlBreakers, s.moveBreaker(breaker.CloseIt)),
		act("/merchants/:merchant/breaker/probe", access.ControlBreakers, s.moveBreaker(breaker.ProbeIt)),
		act("/merchants/:merchant/ping", access.ControlAddresses, s.tryAddress),
		act("/merchants/:merchant/enable", access.ControlAddresses, s.enableAddress),
		page("/alerts", access.ViewAlerts, s.alertsPage, menu{"shield-alert", views.LabelAlerts}),
		act("/alerts/test", access.TestAlerts, s.testAlert),
		act("/alerts/rules/:rule", access.ConfigureAlerts, s.changeRule),
		page("/exceptions/:exception", access.ViewExceptions, s.exceptionPage, menu{}),
		act("/exceptions/:exception/comment", access.Comment, s.commentException),
		act("/exceptions/:exception/assign", access.AssignExceptions, s.assignException),
		act("/exceptions/:exception/settle", access.SettleExceptions, s.settleException),
		act("/exceptions/:exception/reopen", access.SettleExceptions, s.reopenException),
		page("/asynqmon/", access.InspectQueues, s.monitorPage, menu{"layers", views.LabelQueues}),
		page("/asynqmon/*", access.InspectQueues, s.monitorPage, menu{}),
		page("/audit", access.ViewAudit, s.auditPage, menu{"scroll-text", views.LabelAudit}),
		page("/me", access.UseAccount, s.accountPage, menu{"settings", views.LabelAccount}),
		act("/me", access.UseAccount, s.saveAccount),
		act("/me/password", access.UseAccount, s.changePassword),
		act("/me/sessions/end", access.UseAccount, s.endSessions),
		page("/search", access.ViewOrders, s.searchPage, menu{}),
		page("/_/live", access.ViewOverview, s.liveStream, menu{}),
	}
	for _, t := range s.board.topics {
		list = append(list, page("/_/"+t.name, access.ViewOverview, s.panel(t), menu{}))
	}
	return list
}

// admit is what stands before a route's handler.
func (s *Server) admit(r route) []fiber.Handler {
	switch r.door {
	case merchantDoor:
		return []fiber.Handler{s.admitMerchant}
	case monitorDoor:
		return []fiber.Handler{s.admitMonitor(r.permission, r.scope)}
	case loginDoor:
		return []fiber.Handler{s.dressPage}
	case consoleDoor:
		return []fiber.Handler{s.dressPage, s.admitOperator(r.permission)}
	default:
		return nil
	}
}
