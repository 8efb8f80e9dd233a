package web

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/metric"
	"backstop/internal/base/textlimit"
	"backstop/internal/callback"
	"backstop/internal/console"
	"backstop/internal/supplier"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// callback passes a supplier's request on unparsed.
func (s *Server) callback(c *fiber.Ctx) error {
	start := time.Now()
	req := copyRequest(c)
	var addrErr error
	req.RemoteAddr, addrErr = supplier.ClientAddr(peer(c), req.Header.Values(fiber.HeaderXForwardedFor), s.Config.TrustedProxies)
	if !s.senders.allow(SenderOf(req.RemoteAddr)) {
		metric.Callbacks.WithLabelValues(callback.RateLimited).Inc()
		return ErrTooMany
	}
	if isEncoded(req.Header) {
		return errEncoded
	}
	// Receive bounds its own wait.
	receipt := s.Callbacks.Receive(context.Background(), c.Params("supplier"), req, addrErr)
	s.logCallback(c, req, receipt, time.Since(start))
	return reply(c, receipt.Reply)
}

// callbackOptions answers probes without a query: a supplier that was just enabled may get 404
// until this node has read the settings (2 s).
func (s *Server) callbackOptions(c *fiber.Ctx) error {
	suppliers, code := s.Settings.Current().Suppliers, c.Params("supplier")
	entry, known := suppliers.Lookup(code)
	if _, broken := suppliers.Broken(code); !broken && (!known || !entry.Enabled) {
		return reply(c, callback.NotFound)
	}
	c.Set(fiber.HeaderAllow, "GET, POST, OPTIONS")
	return c.SendStatus(http.StatusNoContent)
}

// copyRequest copies everything that outlives the handler: the server reuses its buffers as
// soon as the request is answered.
func copyRequest(c *fiber.Ctx) *supplier.Request {
	return &supplier.Request{
		Method: strings.Clone(c.Method()), Path: string(c.Request().URI().PathOriginal()),
		RawQuery: string(c.Request().URI().QueryString()), Header: copyHeader(&c.Request().Header),
		Body: bytes.Clone(c.Request().Body()),
	}
}

// copyHeader keeps every line, with the lines of one name in order; the library's own accessors
// return only one of two Content-Type lines.
func copyHeader(h *fasthttp.RequestHeader) http.Header {
	lines := make(http.Header)
	h.VisitAllInOrder(func(key, value []byte) { lines.Add(string(key), string(value)) })
	return lines
}

// peer returns the other end of the connection. What the library returns as the client's
// address is only the client's claim.
func peer(c *fiber.Ctx) netip.Addr {
	if tcp, ok := c.Context().RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr()
	}
	return netip.Addr{}
}

func isEncoded(h http.Header) bool {
	for _, coding := range h.Values(fiber.HeaderContentEncoding) {
		if coding != "" && !strings.EqualFold(coding, "identity") {
			return true
		}
	}
	return false
}

// reply sends the supplier's response, byte for byte.
func reply(c *fiber.Ctx, r supplier.Reply) error {
	if r.Status == http.StatusServiceUnavailable {
		c.Set(fiber.HeaderRetryAfter, "1")
	}
	c.Response().Header.SetNoDefaultContentType(true)
	if r.ContentType != "" {
		c.Set(fiber.HeaderContentType, r.ContentType)
	}
	return c.Status(r.Status).Send(r.Body)
}

func (s *Server) logCallback(c *fiber.Ctx, req *supplier.Request, r callback.Receipt, took time.Duration) {
	level := slog.LevelInfo
	// While the database is down all callbacks fail: one line for each would fill the log.
	busy := errors.Is(r.Err, db.ErrBusy) || errors.Is(r.Err, context.DeadlineExceeded)
	switch {
	case r.Flood, busy && !s.refusals.Allow():
		level = slog.LevelDebug
	case busy:
		level = slog.LevelWarn
	case r.Err != nil:
		level = slog.LevelError
	}
	if !s.Log.Enabled(context.Background(), level) {
		return
	}
	code := textlimit.Clip(c.Params("supplier"), 64)
	if r.Outcome == callback.UnknownSupplier {
		code = console.MaskText(code) // may be any text
	}
	attrs := []slog.Attr{
		slog.String("supplier", code), slog.String("outcome", r.Outcome),
		slog.Int("status", r.Reply.Status), slog.String("remote", req.RemoteAddr.String()),
		slog.Float64("took_ms", float64(took.Microseconds())/1000), slog.String("request_id", localRequestID.text(c)),
	}
	if r.OrderNo != "" {
		attrs = append(attrs, slog.String("order_no", textlimit.Clip(r.OrderNo, 100)))
	}
	if r.CallbackID != 0 {
		attrs = append(attrs, slog.Int64("callback_id", r.CallbackID))
	}
	if r.Err != nil {
		attrs = append(attrs, slog.String("error", r.Err.Error()))
	}
	s.Log.LogAttrs(context.Background(), level, "callback", attrs...)
}
