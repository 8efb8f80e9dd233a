// Package web is the core of the HTTP server: listeners, framing, limits, who may do
// what (routes, sessions, tokens), errors, rendering, health and the callbacks of
// suppliers. What merchants and programs call is in web/api, the console in
// web/console; both decide nothing themselves.
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
	"backstop/internal/audit"
	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/base/seal"
	"backstop/internal/base/text"
	"backstop/internal/base/textlimit"
	"backstop/internal/breaker"
	"backstop/internal/bulk"
	"backstop/internal/callback"
	"backstop/internal/console"
	"backstop/internal/merchant"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/settings"
	"backstop/internal/supplier"
	"backstop/static"

	ws "github.com/fasthttp/websocket"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
	"golang.org/x/time/rate"
)

// Callbacks takes callbacks of suppliers; it is callback.Receiver.
type Callbacks interface {
	Receive(ctx context.Context, code string, req *supplier.Request, addrErr error) callback.Receipt
}

// Payments is what merchants may ask for; it is payment.Processor.
type Payments interface {
	Create(ctx context.Context, m *merchant.Merchant, r payment.CreateRequest) (o *order.Order, created bool, err error)
	Pay(ctx context.Context, m *merchant.Merchant, orderNo string) (*order.Order, error)
	Cancel(ctx context.Context, m *merchant.Merchant, orderNo string) (*order.Order, error)
}

// Sockets keeps merchants' connections; it is websocket.Hub.
type Sockets interface {
	Serve(merchantID int64, conn *ws.Conn, allowed func() bool)
}

// Options of a Server.
type Options struct {
	Config    config.Config
	DB        *db.DB
	Settings  *settings.Store
	Keys      *seal.Keyring // signs the addresses of pages, and evidence
	Audit     *audit.Log
	Callbacks Callbacks
	Payments  Payments
	Operators *access.Operators
	Sessions  *access.Sessions
	Checks    []Check // what /readyz asks
	// QueueEngine names the queue's engine on the overview; see redisd.Engine.
	QueueEngine string
	// Queues asks Redis what its queues hold; nil = it cannot be asked.
	Queues func(context.Context) (map[string]queue.Size, error)
	// RedisSkew is how far this node's clock is ahead of Redis's; nil = unknown.
	RedisSkew func(context.Context) (time.Duration, error)
	// Monitor is Asynqmon, read-only; nil = this process has none.
	Monitor http.Handler
	// Alerts is whom alerts are sent to, by name, and how they read; nil = nobody.
	Alerts func() (targets []string, style alert.Style)
	// Breakers is this node's copy of the merchants' breakers.
	Breakers *breaker.Cache
	// Acts is what people and services can do, Plans what they do to many.
	Acts  *act.Registry
	Plans *bulk.Plans
	// Sockets keeps the connections of merchants who are told over them.
	Sockets Sockets
	// Texts finds what rows keep by a code.
	Texts   text.Catalog
	Version string
	Log     *slog.Logger
}

// Limits of the door that nobody needs to set.
const (
	// headerBytes bounds the request line and the header together. Suppliers send
	// less than 4 KiB, but a GET callback carries all of its fields in the line.
	headerBytes = 16 << 10
	// workTime bounds what one request of the API may take in all: longer than the
	// wait for a commit, shorter than the time to write the answer.
	workTime = 10 * time.Second
	// refusalLogs is how many refused requests are logged per second; a flood of
	// them must not fill the log.
	refusalLogs = 50
)

// Server answers HTTP. The handlers of web/api and web/console embed it.
type Server struct {
	Options
	app       *fiber.App // of the public address
	admin     *fiber.App // of the console's own address; nil = it has none
	mu        sync.Mutex
	listeners []*lingerListener // that it serves
	down      bool
	draining  atomic.Bool
	tokens    *tokenCache
	Ready     *readiness
	Policy    *access.Policy
	Console   *console.Reader
	misses    *rate.Limiter       // looks for newer settings because of an unknown API key
	refusals  *rate.Limiter       // log lines about refused requests
	senders   *limiter[senderKey] // callbacks by address
	keys      *limiter[string]    // API requests by hash of the key

	table      []Route
	Files      *static.Set
	onShutdown []func()
}

// New returns a Server that listens nowhere yet. It answers by its own routes and by
// those of table.
func New(o Options, table func(*Server) []Route) *Server {
	s := &Server{
		Options: o, Files: static.Load(), Console: console.New(o.DB, o.Settings, o.Breakers), Policy: o.Acts.Policy(), tokens: newTokenCache(access.NewTokens(o.DB, o.Keys)), Ready: NewReadiness(o.Checks),
		misses: rate.NewLimiter(rate.Every(missEvery), 1), refusals: rate.NewLimiter(refusalLogs, refusalLogs),
		senders: newLimiter[senderKey](int(o.Config.CallbackRate)), keys: newLimiter[string](int(o.Config.APIRate)),
	}
	s.table = append(s.routes(), table(s)...)
	most := connections(o.Config.HTTPConnections, o.Log)
	if o.Config.AdminListen == "" {
		s.app = s.newApp(most, func(Audience) bool { return true })
		return s
	}
	few := max(1, most/adminShare)
	s.app, s.admin = s.newApp(max(1, most-few), Audience.public), s.newApp(few, Audience.admin)
	return s
}

// Routes are all that there are; nothing else is reachable.
func (s *Server) Routes() []Route { return s.table }

// adminShare is the part of the connections that is kept for the console's own address:
// whoever takes all of the public ones does not keep people from looking.
const adminShare = 8

// newApp answers at one address by the routes of some doors.
func (s *Server) newApp(connections int, serves func(Audience) bool) *fiber.App {
	app := fiber.New(fiber.Config{
		// Without it, strings of a request are overwritten by the next one.
		Immutable:     true,
		CaseSensitive: true,
		StrictRouting: true,
		// A parsed multipart form is written anew when it is read: other bytes than
		// those that were signed.
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
	server.Handler = s.closeInDrain(closeUnknown(server.Handler))
	server.HeaderReceived = s.bodyLimit
	server.CloseOnShutdown = true
	server.SecureErrorLogMessage = true // errors must not repeat headers: they hold keys
	server.Logger = quietLogger{s.Log}
	app.Use(s.guard)
	for _, r := range s.table {
		if serves(r.Audience) {
			app.Add(r.Method, r.Path, append(s.admit(r), r.Handler)...)
		}
	}
	return app
}

// Serve answers on l until Shutdown; after it, not at all.
func (s *Server) Serve(l net.Listener) error { return s.serve(s.app, l) }

// ServeAdmin does the same at the console's own address, where there is one.
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

// Drain makes /readyz fail, and each answer the last one of its connection.
func (s *Server) Drain() { s.draining.Store(true) }

// closeInDrain sees that nobody keeps a connection to a node that is about to leave: a
// request may get lost on one just as it is closed. One that becomes a WebSocket goes on.
func (s *Server) closeInDrain(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(c *fasthttp.RequestCtx) {
		next(c)
		if s.draining.Load() && c.Response.StatusCode() != http.StatusSwitchingProtocols {
			c.SetConnectionClose()
		}
	}
}

// AtShutdown has f called before a shutdown waits for the running requests.
func (s *Server) AtShutdown(f func()) { s.onShutdown = append(s.onShutdown, f) }

// Shutdown takes no new connections, ends live streams and waits for the other
// running requests.
func (s *Server) Shutdown(ctx context.Context) error {
	for _, end := range s.onShutdown {
		end()
	}
	s.mu.Lock()
	s.down = true
	for _, l := range s.listeners {
		_ = l.Close() // the server does not know of one that it has not begun to accept from
	}
	s.mu.Unlock()
	if s.admin == nil {
		return s.app.ShutdownWithContext(ctx)
	}
	admin := make(chan error, 1)
	go func() { admin <- s.admin.ShutdownWithContext(ctx) }()
	return errors.Join(s.app.ShutdownWithContext(ctx), <-admin)
}

// bodyLimit is asked as soon as the header is read: it says how much body may
// follow. Of a body that is refused anyway a byte is enough.
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

// closeUnknown ends connections behind methods that nobody knows. The library
// answers them before guard has looked at their framing and read their body, and
// would read a second request where a proxy saw none.
func closeUnknown(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(c *fasthttp.RequestCtx) {
		if !slices.Contains(fiber.DefaultMethods, string(c.Method())) {
			c.SetConnectionClose()
		}
		next(c)
	}
}

// local names what a request carries from one handler to the next.
type local int

const (
	localRequestID local = iota
	localCaller          // who was let in, for the log
	localMerchant
	localOperator
	localActor
	localPage // set where errors are for people
)

// guard stands before every handler.
func (s *Server) guard(c *fiber.Ctx) (err error) {
	id := rand.Text()
	c.Locals(localRequestID, id)
	c.Set(fiber.HeaderXRequestID, id)
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	chunked, err := checkFraming(&c.Request().Header)
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
	return c.Next()
}

// Work is the context of one request's work. The connection's own context never
// ends before the server does.
func Work() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), workTime)
}

// RequestID names a request, as its answer and the log do.
func RequestID(c *fiber.Ctx) string { return localRequestID.text(c) }

// Caller is who was let in, as the log and the audit name it.
func Caller(c *fiber.Ctx) string { return localCaller.text(c) }

// AsProgram answers errors as programs read them, on a page that is none of ours.
func AsProgram(c *fiber.Ctx) { c.Locals(localPage, nil) }

// text reads one of the values above.
func (l local) text(c *fiber.Ctx) string {
	s, _ := c.Locals(l).(string)
	return s
}

// quietLogger takes what the library says of broken connections: of interest to
// nobody but a developer.
type quietLogger struct{ log *slog.Logger }

func (q quietLogger) Printf(format string, args ...any) {
	q.log.Debug("http connection", "message", textlimit.Clip(fmt.Sprintf(format, args...), 300))
}
