// Package web is the core of the HTTP server: listeners, framing, limits, access (routes,
// sessions, tokens), errors, rendering, health and suppliers' callbacks. The API for merchants
// and programs is in web/api, the console in web/console; none of them makes domain decisions.
package web

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/alert"
	"backstop/internal/approval"
	"backstop/internal/audit"
	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/base/seal"
	"backstop/internal/base/text"
	"backstop/internal/base/textlimit"
	"backstop/internal/batch"
	"backstop/internal/breaker"
	"backstop/internal/callback"
	"backstop/internal/console"
	"backstop/internal/fund/dispute"
	"backstop/internal/fund/payout"
	"backstop/internal/fund/refund"
	"backstop/internal/merchant"
	"backstop/internal/notify/websocket"
	"backstop/internal/order"
	"backstop/internal/pause"
	"backstop/internal/payment"
	"backstop/internal/savedview"
	"backstop/internal/settings"
	"backstop/internal/settings/apply"
	"backstop/internal/signin"
	"backstop/internal/supplier"
	"backstop/internal/testmode"
	"backstop/static"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
	"golang.org/x/time/rate"
)

// Callbacks receives suppliers' callbacks; callback.Receiver implements it.
type Callbacks interface {
	Receive(ctx context.Context, code string, req *supplier.Request, addrErr error) callback.Receipt
	// Check returns what Receive would do, and does nothing.
	Check(ctx context.Context, code string, req *supplier.Request) (callback.Finding, error)
}

// Payments is what merchants may request; payment.Processor implements it.
type Payments interface {
	Create(ctx context.Context, m *merchant.Merchant, r payment.CreateRequest) (o *order.Order, created bool, err error)
	Pay(ctx context.Context, m *merchant.Merchant, orderNo string, r payment.PayRequest) (payment.Payment, error)
	Cancel(ctx context.Context, m *merchant.Merchant, orderNo string) (*order.Order, error)
}

// Options of a Server.
type Options struct {
	Config    config.Config
	DB        *db.DB
	Settings  *settings.Store
	Keys      *seal.Keyring // signs the URLs of pages, and evidence
	Audit     *audit.Log
	Callbacks Callbacks
	Payments  Payments
	Refunds   *refund.Machine
	Payouts   *payout.Machine
	Disputes  *dispute.Machine
	Operators *access.Operators
	Sessions  *access.Sessions
	// Mail sends a text to an address; nil = there is no mail server.
	Mail     func(ctx context.Context, to, title, body string) error
	Provider *signin.Provider // nil = operators sign in by password only
	Checks   []Check          // of /readyz
	// QueueEngine is the queue's engine, for the overview; see redisd.Engine.
	QueueEngine string
	// Queues reads the sizes of the queues in Redis; nil = not available.
	Queues func(context.Context) (map[string]queue.Size, error)
	// RedisSkew is how far this node's clock is ahead of Redis's.
	RedisSkew func(context.Context) (time.Duration, error)
	// Monitor is Asynqmon, read-only; nil = this process has none.
	Monitor http.Handler
	// Alerts returns the names of the alerts' targets, and the style of the texts.
	Alerts func() (targets []string, style alert.Style)
	// Breakers is this node's copy of the merchants' breakers.
	Breakers *breaker.Cache
	// Pauses is this node's copy of what operators have paused.
	Pauses *pause.Pauses
	// Acts are what operators and services can do, Batches what they do to many rows.
	Acts    *act.Registry
	Batches *batch.Batches
	// Views are the filters of lists that operators saved.
	Views *savedview.Views
	// Applies reads and edits the objects of the apply file.
	Applies apply.Env
	// Approvals is where people make decisions that need two of them.
	Approvals *approval.Desk
	// Sockets holds the WebSockets over which merchants are notified.
	Sockets *websocket.Hub
	// Texts finds the texts of codes in rows.
	Texts text.Catalog
	// TestMode returns what serves the API with keys of test mode, which has a server of its own: nil while it does
	// not run. A nil TestMode: it is off.
	TestMode func() fasthttp.RequestHandler
	// Sandbox makes the payments of test mode; nil = this is not test mode.
	Sandbox *testmode.Supplier
	Version string
	Log     *slog.Logger
}

// Limits that are not configurable.
const (
	// headerBytes bounds the request line and the header together. Suppliers send less than 4
	// KiB, but a GET callback has all its fields in the request line.
	headerBytes = 16 << 10
	// workTime bounds the context of a request (fiber.Ctx.UserContext): longer than the wait
	// for a commit, shorter than the time to write the response.
	workTime = 10 * time.Second
	// refusalLogs bounds the log lines about refused requests per second.
	refusalLogs = 50
	// adminShare is the fraction of connections (one in this many) reserved for the console's
	// own address, so that a client that takes all public ones cannot lock operators out.
	adminShare = 8
)

// Server serves HTTP. The handlers of web/api and web/console embed it.
type Server struct {
	Options
	app       *fiber.App                     // of the public address
	admin     *fiber.App                     // of the console's own address; nil = none
	merchants func() fasthttp.RequestHandler // of requests that another server passes on
	mu        sync.Mutex
	listeners []*lingerListener
	down      bool
	draining  atomic.Bool
	tokens    *tokenCache
	personal  *access.PersonalTokens
	Ready     *readiness
	Policy    *access.Policy
	Console   *console.Reader
	misses    *rate.Limiter // limits reads of the settings because of an unknown API key
	refusals  *rate.Limiter // limits log lines about refused requests
	senders   *limiter      // limits callbacks by address
	keys      *limiter      // limits API requests by hash of the key
	uses      *access.KeyUses
	// payoutRefused counts refused requests for payouts, and raises their alert.
	payoutRefused *payoutRefusals

	table      []Route
	waiting    waiting
	Files      *static.Set
	Second     *access.SecondFactors
	exports    chan struct{} // running exports; see MaxExports
	onShutdown []func()
}

// New returns a Server that does not listen yet. It serves its own routes and those of table.
func New(o Options, table func(*Server) []Route) *Server {
	s := &Server{
		Options: o, Files: static.Load(), Console: console.New(o.DB, o.Settings, o.Breakers), Policy: o.Acts.Policy(),
		tokens: &tokenCache{tokens: access.NewTokens(o.DB, o.Keys)}, personal: access.NewPersonalTokens(o.DB, o.Keys),
		uses: access.NewKeyUses(o.DB), Ready: NewReadiness(o.Checks), Second: access.NewSecondFactors(o.DB, o.Keys),
		misses: rate.NewLimiter(rate.Every(missEvery), 1), refusals: rate.NewLimiter(refusalLogs, refusalLogs),
		exports: make(chan struct{}, MaxExports),
		senders: newLimiter(int(o.Config.CallbackRate)), keys: newLimiter(int(o.Config.APIRate)),
	}
	s.waiting.s = s
	s.Sessions.Second = o.Config.RequireTOTP
	s.payoutRefused = newPayoutRefusals(o.DB, o.Log)
	s.onShutdown = append(s.onShutdown, s.payoutRefused.flush)
	s.table = append(s.routes(), table(s)...)
	for _, r := range s.table {
		if r.Audience == 0 {
			panic(fmt.Sprintf("%s %s has no audience", r.Method, r.Path))
		}
	}
	s.merchants = sync.OnceValue(func() fasthttp.RequestHandler {
		return s.newApp(0, func(a Audience) bool { return a == ForMerchant || a == ForAnyone }).Handler()
	})
	limit := connections(o.Config.HTTPConnections, o.Log)
	if o.Config.AdminListen == "" {
		s.app = s.newApp(limit, func(Audience) bool { return true })
		return s
	}
	admin := max(1, limit/adminShare)
	s.app, s.admin = s.newApp(max(1, limit-admin), Audience.public), s.newApp(admin, Audience.admin)
	return s
}

// Routes returns all routes; nothing else is reachable.
func (s *Server) Routes() []Route { return s.table }

// newApp returns the app that serves the routes of some audiences at one address.
func (s *Server) newApp(connections int, serves func(Audience) bool) *fiber.App {
	app := fiber.New(fiber.Config{
		// Otherwise the next request would overwrite a request's strings.
		Immutable:     true,
		CaseSensitive: true,
		StrictRouting: true,
		// A parsed multipart form is re-encoded when its body is read: not the bytes that were
		// signed.
		DisablePreParseMultipartForm: true,
		DisableStartupMessage:        true,
		ReadTimeout:                  s.Config.HTTPReadTimeout,
		WriteTimeout:                 s.Config.HTTPWriteTimeout,
		IdleTimeout:                  s.Config.HTTPIdleTimeout,
		Concurrency:                  connections,
		ReadBufferSize:               headerBytes,
		BodyLimit:                    int(s.Config.APIBodyLimit),
		StreamRequestBody:            true, // see readBody
		ErrorHandler:                 s.fail,
	})
	server := app.Server()
	server.Handler = s.closeInDrain(closeUnknown(s.passToTest(server.Handler)))
	server.HeaderReceived = s.bodyLimit
	server.CloseOnShutdown = true
	server.SecureErrorLogMessage = true // errors must not repeat headers, which contain keys
	server.Logger = quietLogger{s.Log}
	app.Use(s.guard)
	for _, r := range s.table {
		if serves(r.Audience) {
			app.Add(r.Method, r.Path, append(s.admit(r), r.Handler)...)
		}
	}
	return app
}

// Serve serves l until Shutdown; not at all after it.
func (s *Server) Serve(l net.Listener) error { return s.serve(s.app, l) }

// ServeAdmin does the same at the console's own address, if there is one.
func (s *Server) ServeAdmin(l net.Listener) error { return s.serve(s.admin, l) }

func (s *Server) serve(app *fiber.App, l net.Listener) error {
	linger := &lingerListener{Listener: l, log: s.Log}
	s.mu.Lock()
	s.listeners = append(s.listeners, linger)
	if s.down {
		_ = linger.Close()
	}
	s.mu.Unlock()
	return app.Listener(linger)
}

// Drain makes /readyz fail, and each response the last of its connection.
func (s *Server) Drain() { s.draining.Store(true) }

// closeInDrain closes connections to a stopping node after their next response, because a
// request may get lost on a connection that is closed while idle. WebSockets stay open.
func (s *Server) closeInDrain(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(c *fasthttp.RequestCtx) {
		next(c)
		if s.draining.Load() && c.Response.StatusCode() != http.StatusSwitchingProtocols {
			c.SetConnectionClose()
		}
	}
}

// AtShutdown registers f to be called before a shutdown waits for the running requests.
func (s *Server) AtShutdown(f func()) { s.onShutdown = append(s.onShutdown, f) }

// Shutdown accepts no new connections, ends live streams and waits for the other running
// requests.
func (s *Server) Shutdown(ctx context.Context) error {
	for _, end := range s.onShutdown {
		end()
	}
	s.mu.Lock()
	s.down = true
	for _, l := range s.listeners {
		_ = l.Close() // the library does not close a listener that it does not accept from yet
	}
	s.mu.Unlock()
	if s.admin == nil {
		return s.app.ShutdownWithContext(ctx)
	}
	admin := make(chan error, 1)
	go func() { admin <- s.admin.ShutdownWithContext(ctx) }()
	return errors.Join(s.app.ShutdownWithContext(ctx), <-admin)
}

// bodyLimit is called once the header is read; it bounds the body that may follow. For a body
// that is refused anyway one byte is enough.
func (s *Server) bodyLimit(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	limit := s.limitOf(h)
	if h.ContentLength() > limit {
		limit = 1
	}
	return fasthttp.RequestConfig{MaxRequestBodySize: limit}
}

func isCallback(h *fasthttp.RequestHeader) bool {
	return strings.HasPrefix(string(h.RequestURI()), CallbackPath)
}

// closeUnknown closes connections after unknown methods. The library answers them before guard
// has checked their framing and read their body, and would then read a second request where a
// proxy saw none.
func closeUnknown(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(c *fasthttp.RequestCtx) {
		if !slices.Contains(fiber.DefaultMethods, string(c.Method())) {
			c.SetConnectionClose()
		}
		next(c)
	}
}

// local identifies a value that one handler passes to the next.
type local int

const (
	localRequestID local = iota
	localCaller          // who was admitted, for the log
	localMerchant
	localOperator
	localActor
	localPage    // set if errors are rendered as pages
	localRefused // the form that was refused, while its page is shown again
)

// guard runs before every handler.
func (s *Server) guard(c *fiber.Ctx) (err error) {
	id := rand.Text()
	c.Locals(localRequestID, id)
	c.Set(fiber.HeaderXRequestID, id)
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	if s.Sandbox != nil {
		c.Set(testHeader, "true")
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	chunked, err := checkFraming(&c.Request().Header)
	if err == nil && isIrregular(c) {
		err = BadRequest("a line ends in a bare line feed, or the request line has no version")
	}
	if err == nil {
		err = s.readBody(c)
	} else {
		linger(c) // its body is not read
	}
	if chunked || err != nil {
		c.Context().SetConnectionClose()
	}
	if err != nil {
		return err
	}
	// The connection's own context does not end before the server does.
	ctx, cancel := context.WithTimeout(context.Background(), workTime)
	defer cancel()
	c.SetUserContext(ctx)
	trimCallback(c)
	return c.Next()
}

// trimCallback takes the slash from the end of a callback's path: suppliers' consoles add one.
func trimCallback(c *fiber.Ctx) {
	if code, ok := strings.CutPrefix(c.Path(), CallbackPath); ok && strings.Index(code, "/") == len(code)-1 && len(code) > 1 {
		c.Path(strings.TrimSuffix(c.Path(), "/"))
	}
}

// RequestID returns the id of a request, as in the response and the log.
func RequestID(c *fiber.Ctx) string { return localRequestID.text(c) }

// AsProgram makes errors JSON on a page that is not ours.
func AsProgram(c *fiber.Ctx) { c.Locals(localPage, nil) }

// text reads one of the values above.
func (l local) text(c *fiber.Ctx) string {
	s, _ := c.Locals(l).(string)
	return s
}

// quietLogger logs the library's lines about broken connections at debug level.
type quietLogger struct{ log *slog.Logger }

func (q quietLogger) Printf(format string, args ...any) {
	q.log.Debug("http connection", "message", textlimit.Clip(fmt.Sprintf(format, args...), 300))
}
