package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"backstop/internal/act"
	"backstop/internal/alert"
	"backstop/internal/base/db"
	"backstop/internal/base/textlimit"
	"backstop/internal/breaker"
	"backstop/internal/bulk"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/list"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/stock"

	"github.com/gofiber/fiber/v2"
)

// Error is an answer that is not what was asked for.
type Error struct {
	Status  int
	Code    string // for programs
	Message string // for people; holds nothing of ours that is not theirs
	field   string // of the request, where one is to blame
	// roles are those that may do what this one may not.
	roles []string
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// BadRequest says that a request cannot be read.
func BadRequest(message string) error {
	return &Error{Status: http.StatusBadRequest, Code: "bad_request", Message: message}
}

// InvalidField says what is wrong with one field of a request.
func InvalidField(field, problem string) error {
	return &Error{Status: http.StatusUnprocessableEntity, Code: "invalid_field", Message: problem, field: field}
}

// Answers of the door itself.
var (
	errUnauthorized = &Error{Status: http.StatusUnauthorized, Code: "unauthorized", Message: "send a valid key: Authorization: Bearer <key>"}
	ErrForbidden    = &Error{Status: http.StatusForbidden, Code: "forbidden", Message: "this key may not do that"}
	ErrTooMany      = &Error{Status: http.StatusTooManyRequests, Code: "rate_limited", Message: "too many requests: slow down"}
	errEncoded      = &Error{Status: http.StatusUnsupportedMediaType, Code: "unsupported_encoding", Message: "send the body without Content-Encoding"}
	errAway         = &Error{Status: http.StatusServiceUnavailable, Code: "unavailable", Message: "the database is away or takes no writes: try again"}
	ErrUnreadable   = &Error{Status: http.StatusServiceUnavailable, Code: "settings_unreadable", Message: "the settings of this merchant cannot be read: it is our fault, try again later"}
	errInternal     = &Error{Status: http.StatusInternalServerError, Code: "internal", Message: "this is our fault; the request id helps us to find it"}
)

// domainErrors is the one table from errors of the domain to answers.
var domainErrors = []struct {
	is     error
	answer Error
}{
	{act.ErrNotFound, Error{Status: http.StatusNotFound, Code: "not_found"}},
	{act.ErrChanged, Error{Status: http.StatusConflict, Code: "changed"}},
	{order.ErrNotFound, Error{Status: http.StatusNotFound, Code: "not_found"}},
	{console.ErrNotFound, Error{Status: http.StatusNotFound, Code: "not_found"}},
	{notify.ErrNoDelivery, Error{Status: http.StatusNotFound, Code: "not_found"}},
	{alert.ErrNoTarget, Error{Status: http.StatusConflict, Code: "no_target"}},
	{breaker.ErrProbing, Error{Status: http.StatusConflict, Code: "probe_running"}},
	{breaker.ErrAlready, Error{Status: http.StatusConflict, Code: "already"}},
	{notify.ErrUnreadable, Error{Status: http.StatusServiceUnavailable, Code: "settings_unreadable"}},
	{notify.ErrSending, Error{Status: http.StatusConflict, Code: "sending"}},
	{exception.ErrEnded, Error{Status: http.StatusConflict, Code: "over"}},
	{exception.ErrOpen, Error{Status: http.StatusConflict, Code: "open"}},
	{bulk.ErrExpired, Error{Status: http.StatusConflict, Code: "expired"}},
	{bulk.ErrNothing, Error{Status: http.StatusUnprocessableEntity, Code: "nothing_matches"}},
	{bulk.ErrTooMany, Error{Status: http.StatusUnprocessableEntity, Code: "too_many"}},
	{payment.ErrConflict, Error{Status: http.StatusConflict, Code: "idempotency_conflict"}},
	{payment.ErrSupplier, Error{Status: http.StatusServiceUnavailable, Code: "unavailable"}},
	{payment.ErrState, Error{Status: http.StatusConflict, Code: "wrong_state"}},
	{stock.ErrOutOfStock, Error{Status: http.StatusConflict, Code: "out_of_stock"}},
	{stock.ErrUnknownSKU, Error{Status: http.StatusUnprocessableEntity, Code: "invalid_field", field: "items"}},
	{db.ErrBusy, Error{Status: http.StatusServiceUnavailable, Code: "busy"}},
	{db.ErrStale, Error{Status: http.StatusServiceUnavailable, Code: "busy"}},
	{db.ErrCommitUnknown, Error{Status: http.StatusServiceUnavailable, Code: "unknown_outcome"}},
	{context.DeadlineExceeded, Error{Status: http.StatusServiceUnavailable, Code: "busy"}},
	{context.Canceled, Error{Status: http.StatusServiceUnavailable, Code: "busy"}},
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
func answerTo(err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	var field *payment.FieldError
	if errors.As(err, &field) {
		return &Error{Status: http.StatusUnprocessableEntity, Code: "invalid_field", Message: field.Problem, field: field.Field}
	}
	var typed *act.FieldError
	if errors.As(err, &typed) {
		return &Error{Status: http.StatusUnprocessableEntity, Code: "invalid_field", Message: typed.Problem, field: typed.Field}
	}
	var denied *act.Denied
	if errors.As(err, &denied) {
		return deniedBy(denied)
	}
	var term *list.FieldError
	if errors.As(err, &term) {
		return &Error{Status: http.StatusUnprocessableEntity, Code: "invalid_field", Message: term.Problem, field: term.Word}
	}
	for _, e := range domainErrors {
		if errors.Is(err, e.is) {
			answer := e.answer
			answer.Message = e.is.Error()
			return &answer
		}
	}
	if db.IsConflict(err) {
		return &Error{Status: http.StatusServiceUnavailable, Code: "busy", Message: db.ErrBusy.Error()}
	}
	if db.IsUnavailable(err) {
		return errAway
	}
	var library *fiber.Error
	if errors.As(err, &library) && library.Code < http.StatusInternalServerError {
		code, ok := statusCodes[library.Code]
		if !ok {
			code = "bad_request"
		}
		return &Error{Status: library.Code, Code: code, Message: http.StatusText(library.Code)}
	}
	return errInternal
}

// deniedBy answers who may not do that; it says which roles may, or which scope.
func deniedBy(d *act.Denied) *Error {
	if d.Permission == "" {
		return errScope(d.Scope)
	}
	e := *ErrForbidden
	e.roles = d.Roles
	return &e
}

// fail answers errors, of handlers and of reading the request alike, and logs
// them: one line each.
func (s *Server) fail(c *fiber.Ctx, err error) error {
	e := answerTo(err)
	s.logFailure(c, e, err)
	switch e.Status {
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
	status := e.Status
	if e == errInternal {
		// The contract knows no 500. A program that hears 503 tries again, and that is
		// right here too: what it asks for is done once, however often it asks.
		status = http.StatusServiceUnavailable
		c.Set(fiber.HeaderRetryAfter, "1")
	}
	body := ErrorBody{}
	body.Error.Code, body.Error.Message, body.Error.Field = e.Code, e.Message, e.field
	return c.Status(status).JSON(body)
}

// ErrorBody is the form of every error (contract, merchant API).
type ErrorBody struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Field   string `json:"field,omitempty"`
	} `json:"error"`
}

func (s *Server) logFailure(c *fiber.Ctx, e *Error, err error) {
	level := slog.LevelInfo
	switch {
	case e.Status >= http.StatusInternalServerError && e.Status != http.StatusServiceUnavailable:
		level = slog.LevelError
	case !s.refusals.Allow():
		level = slog.LevelDebug
	case e.Status == http.StatusServiceUnavailable:
		level = slog.LevelWarn // busy is no fault, and comes in floods
	}
	attrs := []slog.Attr{
		slog.Int("status", e.Status), slog.String("code", e.Code),
		slog.String("method", textlimit.Clip(c.Method(), 20)), slog.String("path", console.MaskText(textlimit.Clip(c.Path(), 200))),
		slog.String("remote", c.Context().RemoteAddr().String()), slog.String("request_id", localRequestID.text(c)),
	}
	if caller := localCaller.text(c); caller != "" {
		attrs = append(attrs, slog.String("caller", caller))
	}
	if e.field != "" {
		attrs = append(attrs, slog.String("field", e.field))
	}
	if e.Status >= http.StatusInternalServerError {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	s.Log.LogAttrs(context.Background(), level, "request refused", attrs...)
}

// ErrSlow says that a list took too long to find.
var ErrSlow = &Error{Status: http.StatusServiceUnavailable, Code: "too_wide", Message: "this takes too long: narrow the filter or the time"}

// ErrCursor says that a page's address was not made by us, or for another filter.
var ErrCursor = &Error{Status: http.StatusBadRequest, Code: "bad_cursor", Message: "this page's address was changed: begin at the newest page", field: "cursor"}

// errFrozen says that nobody may act while Redis or the database is in trouble.
var errFrozen = &Error{Status: http.StatusServiceUnavailable, Code: "actions_off", Message: "actions are off: Redis or the database is in trouble"}

// ErrForeign says that another site's page sent the request.
var ErrForeign = &Error{Status: http.StatusForbidden, Code: "foreign_origin", Message: "the request came from another site"}
