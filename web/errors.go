package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"backstop/internal/alert"
	"backstop/internal/base/db"
	"backstop/internal/base/textlimit"
	"backstop/internal/breaker"
	"backstop/internal/compensation"
	"backstop/internal/compensation/batch"
	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/stock"

	"github.com/gofiber/fiber/v2"
)

// apiError is an answer that is not what was asked for.
type apiError struct {
	status  int
	code    string // for programs
	message string // for people; holds nothing of ours that is not theirs
	field   string // of the request, where one is to blame
	// roles are those that may do what this one may not.
	roles []string
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

func badRequest(message string) error {
	return &apiError{status: http.StatusBadRequest, code: "bad_request", message: message}
}

func invalidField(field, problem string) error {
	return &apiError{status: http.StatusUnprocessableEntity, code: "invalid_field", message: problem, field: field}
}

// Answers of the door itself.
var (
	errUnauthorized = &apiError{status: http.StatusUnauthorized, code: "unauthorized", message: "send a valid key: Authorization: Bearer <key>"}
	errForbidden    = &apiError{status: http.StatusForbidden, code: "forbidden", message: "this key may not do that"}
	errTooMany      = &apiError{status: http.StatusTooManyRequests, code: "rate_limited", message: "too many requests: slow down"}
	errEncoded      = &apiError{status: http.StatusUnsupportedMediaType, code: "unsupported_encoding", message: "send the body without Content-Encoding"}
	errAway         = &apiError{status: http.StatusServiceUnavailable, code: "unavailable", message: "the database is away or takes no writes: try again"}
	errUnreadable   = &apiError{status: http.StatusServiceUnavailable, code: "settings_unreadable", message: "the settings of this merchant cannot be read: it is our fault, try again later"}
	errInternal     = &apiError{status: http.StatusInternalServerError, code: "internal", message: "this is our fault; the request id helps us to find it"}
)

// domainErrors is the one table from errors of the domain to answers.
var domainErrors = []struct {
	is     error
	answer apiError
}{
	{order.ErrNotFound, apiError{status: http.StatusNotFound, code: "not_found"}},
	{console.ErrNotFound, apiError{status: http.StatusNotFound, code: "not_found"}},
	{notify.ErrNoDelivery, apiError{status: http.StatusNotFound, code: "not_found"}},
	{alert.ErrNoTarget, apiError{status: http.StatusConflict, code: "no_target"}},
	{breaker.ErrProbing, apiError{status: http.StatusConflict, code: "probe_running"}},
	{breaker.ErrAlready, apiError{status: http.StatusConflict, code: "already"}},
	{notify.ErrSending, apiError{status: http.StatusConflict, code: "sending"}},
	{compensation.ErrNoException, apiError{status: http.StatusNotFound, code: "not_found"}},
	{compensation.ErrOver, apiError{status: http.StatusConflict, code: "over"}},
	{compensation.ErrOpen, apiError{status: http.StatusConflict, code: "open"}},
	{batch.ErrNotFound, apiError{status: http.StatusNotFound, code: "not_found"}},
	{batch.ErrExpired, apiError{status: http.StatusConflict, code: "expired"}},
	{batch.ErrNothing, apiError{status: http.StatusUnprocessableEntity, code: "nothing_matches"}},
	{console.ErrTooMany, apiError{status: http.StatusUnprocessableEntity, code: "too_many"}},
	{payment.ErrConflict, apiError{status: http.StatusConflict, code: "idempotency_conflict"}},
	{payment.ErrSupplier, apiError{status: http.StatusServiceUnavailable, code: "unavailable"}},
	{payment.ErrState, apiError{status: http.StatusConflict, code: "wrong_state"}},
	{stock.ErrOutOfStock, apiError{status: http.StatusConflict, code: "out_of_stock"}},
	{stock.ErrUnknownSKU, apiError{status: http.StatusUnprocessableEntity, code: "invalid_field", field: "items"}},
	{db.ErrBusy, apiError{status: http.StatusServiceUnavailable, code: "busy"}},
	{db.ErrStale, apiError{status: http.StatusServiceUnavailable, code: "busy"}},
	{db.ErrCommitUnknown, apiError{status: http.StatusServiceUnavailable, code: "unknown_outcome"}},
	{context.DeadlineExceeded, apiError{status: http.StatusServiceUnavailable, code: "busy"}},
	{context.Canceled, apiError{status: http.StatusServiceUnavailable, code: "busy"}},
}

// statusCodes name the library's own refusals.
var statusCodes = map[int]string{
	http.StatusNotFound:                    "not_found",
	http.StatusMethodNotAllowed:            "method_not_allowed",
	http.StatusRequestTimeout:              "timeout",
	http.StatusRequestEntityTooLarge:       "too_large",
	http.StatusRequestHeaderFieldsTooLarge: "header_too_large",
}

// answerTo finds the answer to an error. What is not in a table is our fault.
func answerTo(err error) *apiError {
	var known *apiError
	if errors.As(err, &known) {
		return known
	}
	var field *payment.FieldError
	if errors.As(err, &field) {
		return &apiError{status: http.StatusUnprocessableEntity, code: "invalid_field", message: field.Problem, field: field.Field}
	}
	var settled *compensation.FieldError
	if errors.As(err, &settled) {
		return &apiError{status: http.StatusUnprocessableEntity, code: "invalid_field", message: settled.Problem, field: settled.Field}
	}
	for _, e := range domainErrors {
		if errors.Is(err, e.is) {
			answer := e.answer
			answer.message = e.is.Error()
			return &answer
		}
	}
	if db.IsConflict(err) {
		return &apiError{status: http.StatusServiceUnavailable, code: "busy", message: db.ErrBusy.Error()}
	}
	if db.IsAway(err) {
		return errAway
	}
	var library *fiber.Error
	if errors.As(err, &library) && library.Code < http.StatusInternalServerError {
		code, ok := statusCodes[library.Code]
		if !ok {
			code = "bad_request"
		}
		return &apiError{status: library.Code, code: code, message: http.StatusText(library.Code)}
	}
	return errInternal
}

// fail answers errors, of handlers and of reading the request alike, and logs
// them: one line each.
func (s *Server) fail(c *fiber.Ctx, err error) error {
	e := answerTo(err)
	s.logFailure(c, e, err)
	switch e.status {
	case http.StatusRequestEntityTooLarge, http.StatusRequestHeaderFieldsTooLarge:
		linger(c)
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		c.Set(fiber.HeaderRetryAfter, "1")
	case http.StatusUnauthorized:
		c.Set(fiber.HeaderWWWAuthenticate, "Bearer")
	}
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff") // guard did not run where the request could not be read
	if c.Locals(localPage) != nil {
		return s.failPage(c, e)
	}
	status := e.status
	if e == errInternal {
		// The contract knows no 500. A program that hears 503 tries again, and that is
		// right here too: what it asks for is done once, however often it asks.
		status = http.StatusServiceUnavailable
		c.Set(fiber.HeaderRetryAfter, "1")
	}
	body := errorBody{}
	body.Error.Code, body.Error.Message, body.Error.Field = e.code, e.message, e.field
	return c.Status(status).JSON(body)
}

// errorBody is the form of every error (contract, merchant API).
type errorBody struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Field   string `json:"field,omitempty"`
	} `json:"error"`
}

func (s *Server) logFailure(c *fiber.Ctx, e *apiError, err error) {
	level := slog.LevelInfo
	switch {
	case e.status >= http.StatusInternalServerError && e.status != http.StatusServiceUnavailable:
		level = slog.LevelError
	case !s.refusals.Allow():
		level = slog.LevelDebug
	case e.status == http.StatusServiceUnavailable:
		level = slog.LevelWarn // busy is no fault, and comes in floods
	}
	attrs := []slog.Attr{
		slog.Int("status", e.status), slog.String("code", e.code),
		slog.String("method", textlimit.Clip(c.Method(), 20)), slog.String("path", console.MaskText(textlimit.Clip(c.Path(), 200))),
		slog.String("remote", c.Context().RemoteAddr().String()), slog.String("request_id", localRequestID.text(c)),
	}
	if caller := localCaller.text(c); caller != "" {
		attrs = append(attrs, slog.String("caller", caller))
	}
	if e.field != "" {
		attrs = append(attrs, slog.String("field", e.field))
	}
	if e.status >= http.StatusInternalServerError {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	s.o.Log.LogAttrs(context.Background(), level, "request refused", attrs...)
}
