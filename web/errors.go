package web

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"

	"backstop/internal/act"
	"backstop/internal/alert"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/invalid"
	"backstop/internal/base/textlimit"
	"backstop/internal/breaker"
	"backstop/internal/bulk"
	"backstop/internal/call"
	"backstop/internal/compensation"
	"backstop/internal/compensation/resend"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/fund/adjust"
	"backstop/internal/fund/dispute"
	"backstop/internal/fund/payout"
	"backstop/internal/fund/refund"
	"backstop/internal/ledger"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/pause"
	"backstop/internal/payment"
	"backstop/internal/stock"
	"backstop/internal/sweep"
	"backstop/internal/view"

	"github.com/gofiber/fiber/v2"
)

// Error is a response that refuses a request.
type Error struct {
	Status     int
	Code       string   // for programs
	Message    string   // holds nothing internal
	field      string   // of the request, where one is wrong
	roles      []string // that may do what the caller may not
	answer     string   // of the supplier, where it says otherwise
	refundable *int64   // of a payment, where more is asked for
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// BadRequest returns the response to an unreadable request.
func BadRequest(message string) error {
	return &Error{Status: http.StatusBadRequest, Code: "bad_request", Message: message}
}

// InvalidField returns the response to a request with an invalid field.
func InvalidField(field, problem string) *Error {
	return &Error{Status: http.StatusUnprocessableEntity, Code: "invalid_field", Message: problem, field: field}
}

// Errors of the server itself.
var (
	errUnauthorized = &Error{
		Status: http.StatusUnauthorized, Code: "unauthorized",
		Message: "send a valid key: Authorization: Bearer <key>",
	}
	errForbidden       = &Error{Status: http.StatusForbidden, Code: "forbidden", Message: "this key may not do that"}
	errAPIKeyNeeded    = &Error{Status: http.StatusForbidden, Code: "forbidden", Message: "this is the payout_key: use the api_key here"}
	errPayoutKeyNeeded = &Error{
		Status: http.StatusForbidden, Code: "payout_key_needed",
		Message: "payouts need the payout_key of the merchant instead of its api_key",
	}
	errPayoutAddress = &Error{
		Status: http.StatusForbidden, Code: "address",
		Message: "this address is not among the payout_ips of the merchant",
	}
	ErrTooMany = &Error{Status: http.StatusTooManyRequests, Code: "rate_limited", Message: "too many requests: slow down"}
	errEncoded = &Error{
		Status: http.StatusUnsupportedMediaType, Code: "unsupported_encoding",
		Message: "send the body without Content-Encoding",
	}
	errAway = &Error{
		Status: http.StatusServiceUnavailable, Code: "unavailable",
		Message: "the database is unavailable or read-only: try again",
	}
	errUnreadable = &Error{
		Status: http.StatusServiceUnavailable, Code: "settings_unreadable",
		Message: "the settings of this merchant cannot be read, which is a fault on our side: try again later",
	}
	errInternal = &Error{
		Status: http.StatusInternalServerError, Code: "internal",
		Message: "this is our fault; the request id helps us to find it",
	}
	// ErrSlow means that the queries of a list took too long.
	ErrSlow = &Error{Status: http.StatusServiceUnavailable, Code: "too_wide", Message: "this takes too long: narrow the filter or the time"}
	// ErrCursor means that a page's URL was not made by us, or was made for another filter.
	ErrCursor = &Error{
		Status: http.StatusBadRequest, Code: "bad_cursor",
		Message: "this page's address was changed: begin at the newest page", field: "cursor",
	}
	// errFrozen means that actions are off because Redis or the database is in trouble.
	errFrozen = &Error{
		Status: http.StatusServiceUnavailable, Code: "actions_off",
		Message: "actions are off: Redis or the database is in trouble",
	}
	// ErrForeign means that a page of another site sent the request.
	ErrForeign = &Error{Status: http.StatusForbidden, Code: "foreign_origin", Message: "the request came from another site"}
)

// domainErrors maps errors of the domain to responses.
var domainErrors = []struct {
	is     error
	status int
	code   string
	field  string
}{
	{act.ErrNotFound, http.StatusNotFound, "not_found", ""},
	{act.ErrChanged, http.StatusConflict, "changed", ""},
	{order.ErrNotFound, http.StatusNotFound, "not_found", ""},
	{notify.ErrNoDelivery, http.StatusNotFound, "not_found", ""},
	{approval.ErrPerson, http.StatusForbidden, "person_needed", ""},
	{approval.ErrOwn, http.StatusForbidden, "own_proposal", ""},
	{approval.ErrMaker, http.StatusForbidden, "forbidden", ""},
	{approval.ErrOver, http.StatusConflict, "over", ""},
	{approval.ErrExpired, http.StatusConflict, "expired", ""},
	{approval.ErrHash, http.StatusConflict, "hash", ""},
	{approval.ErrProposed, http.StatusConflict, "proposed", ""},
	{approval.ErrNoSecond, http.StatusConflict, "no_second_person", ""},
	{alert.ErrNoTarget, http.StatusConflict, "no_target", ""},
	{alert.ErrOver, http.StatusConflict, "incident_over", ""},
	{alert.ErrEndsItself, http.StatusConflict, "incident_ends_itself", ""},
	{alert.ErrNotSilent, http.StatusConflict, "incident_not_silent", ""},
	{resend.ErrNotFailed, http.StatusConflict, "over", ""},
	{compensation.ErrOver, http.StatusConflict, "over", ""},
	{compensation.ErrOnly, http.StatusConflict, "only_schedule", ""},
	{compensation.ErrRunning, http.StatusConflict, "running", ""},
	{compensation.ErrNothing, http.StatusNotFound, "not_found", ""},
	{compensation.ErrTooMany, http.StatusConflict, "use_a_batch", ""},
	{sweep.ErrRunning, http.StatusConflict, "running", ""},
	{breaker.ErrProbing, http.StatusConflict, "probe_running", ""},
	{pause.ErrAlready, http.StatusConflict, "already", ""},
	{breaker.ErrAlready, http.StatusConflict, "already", ""},
	{notify.ErrUnreadable, http.StatusServiceUnavailable, "settings_unreadable", ""},
	{notify.ErrSending, http.StatusConflict, "sending", ""},
	{exception.ErrEnded, http.StatusConflict, "over", ""},
	{exception.ErrOpen, http.StatusConflict, "open", ""},
	{exception.ErrDecided, http.StatusConflict, "over", ""},
	{bulk.ErrExpired, http.StatusConflict, "expired", ""},
	{bulk.ErrState, http.StatusConflict, "state", ""},
	{bulk.ErrDrifted, http.StatusConflict, "drifted", ""},
	{bulk.ErrMaker, http.StatusForbidden, "not_yours", ""},
	{bulk.ErrNothing, http.StatusNotFound, "nothing", ""},
	{bulk.ErrTooMany, http.StatusRequestEntityTooLarge, "too_many", ""},
	{view.ErrFull, http.StatusConflict, "views_full", ""},
	{view.ErrTaken, http.StatusConflict, "view_taken", ""},
	{dispute.ErrNotFound, http.StatusNotFound, "not_found", ""},
	{refund.ErrNotFound, http.StatusNotFound, "not_found", ""},
	{refund.ErrConflict, http.StatusConflict, "idempotency_conflict", ""},
	{refund.ErrNotRefundable, http.StatusConflict, "not_refundable", ""},
	{refund.ErrStarted, http.StatusConflict, "refund_started", ""},
	{refund.ErrNotOwn, http.StatusForbidden, "not_yours", ""},
	{payout.ErrNotFound, http.StatusNotFound, "not_found", ""},
	{payout.ErrConflict, http.StatusConflict, "idempotency_conflict", ""},
	{payout.ErrStarted, http.StatusConflict, "payout_started", ""},
	{payout.ErrFrozen, http.StatusConflict, "frozen", ""},
	{refund.ErrSupplier, http.StatusServiceUnavailable, "unavailable", ""},
	{payment.ErrConflict, http.StatusConflict, "idempotency_conflict", ""},
	{adjust.ErrFrozen, http.StatusConflict, "nothing_frozen", ""},
	{ledger.ErrInsufficient, http.StatusConflict, "insufficient_balance", ""},
	{payment.ErrSupplier, http.StatusServiceUnavailable, "unavailable", ""},
	{payment.ErrNoMessage, http.StatusConflict, "no_message", ""},
	{payment.ErrState, http.StatusConflict, "wrong_state", ""},
	{payment.ErrAttemptOpen, http.StatusConflict, "attempt_open", ""},
	{call.ErrDown, http.StatusServiceUnavailable, "supplier_unreachable", ""},
	{stock.ErrOutOfStock, http.StatusConflict, "out_of_stock", ""},
	{stock.ErrUnknownSKU, http.StatusUnprocessableEntity, "invalid_field", "items"},
	{db.ErrBusy, http.StatusServiceUnavailable, "busy", ""},
	{db.ErrStale, http.StatusServiceUnavailable, "busy", ""},
	{db.ErrCommitUnknown, http.StatusServiceUnavailable, "unknown_outcome", ""},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "busy", ""},
	{context.Canceled, http.StatusServiceUnavailable, "busy", ""},
}

// statusCodes maps the library's own refusals to codes.
var statusCodes = map[int]string{
	http.StatusNotFound:                    "not_found",
	http.StatusMethodNotAllowed:            "method_not_allowed",
	http.StatusRequestTimeout:              "timeout",
	http.StatusRequestEntityTooLarge:       "too_large",
	http.StatusRequestHeaderFieldsTooLarge: "header_too_large",
}

// answerTo returns the response to an error. An unknown error is our fault.
func answerTo(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*refund.ExceedsError](err); ok {
		return &Error{Status: http.StatusConflict, Code: "refund_exceeds", Message: e.Error(), refundable: &e.Refundable}
	}
	if e, ok := errors.AsType[*payout.LimitError](err); ok {
		return &Error{Status: http.StatusConflict, Code: "limit_exceeded", Message: e.Error(), field: e.Field}
	}
	if e, ok := errors.AsType[*invalid.FieldError](err); ok {
		return InvalidField(e.Field, e.Problem)
	}
	if e, ok := errors.AsType[*act.Denied](err); ok && e.Permission == "" && e.Scope == "" {
		return answerTo(approval.ErrPerson)
	} else if ok && e.Permission == "" {
		return errScope(e.Scope)
	} else if ok {
		answer := forbidden(e.Roles)
		answer.Message = e.Error()
		return answer
	}
	if e, ok := errors.AsType[*approval.RoleError](err); ok {
		return &Error{Status: http.StatusForbidden, Code: "role", Message: e.Error(), roles: e.Roles}
	}
	if e, ok := errors.AsType[*approval.LiveError](err); ok {
		return &Error{Status: http.StatusConflict, Code: "live_says", Message: e.Error(), answer: e.Answer}
	}
	for _, e := range domainErrors {
		if errors.Is(err, e.is) {
			return &Error{Status: e.status, Code: e.code, Message: e.is.Error(), field: e.field}
		}
	}
	if errors.Is(err, db.ErrTooLong) {
		return ErrSlow
	}
	if db.IsConflict(err) {
		return &Error{Status: http.StatusServiceUnavailable, Code: "busy", Message: db.ErrBusy.Error()}
	}
	if db.IsUnavailable(err) {
		return errAway
	}
	if library, ok := errors.AsType[*fiber.Error](err); ok && library.Code < http.StatusInternalServerError {
		return &Error{Status: library.Code, Code: cmp.Or(statusCodes[library.Code], "bad_request"), Message: http.StatusText(library.Code)}
	}
	return errInternal
}

// forbidden returns the response to an operator who lacks the permission, with the roles that
// have it.
func forbidden(roles []string) *Error {
	e := *errForbidden
	e.roles = roles
	return &e
}

// fail responds to errors, of handlers as well as of reading the request, and logs one line
// each.
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
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff") // guard did not run if the request could not be read
	if c.Locals(localPage) != nil {
		return s.failPage(c, e)
	}
	status := e.Status
	if e == errInternal {
		// The contract has no 500. Programs retry after 503, which is also right here: what
		// they request is done once, however often they request it.
		status = http.StatusServiceUnavailable
		c.Set(fiber.HeaderRetryAfter, "1")
	}
	body := ErrorBody{}
	body.Error.Code, body.Error.Message, body.Error.Field, body.Error.Answer = e.Code, e.Message, e.field, e.answer
	body.Error.Refundable = e.refundable
	return c.Status(status).JSON(body)
}

// ErrorBody is the form of every error (contract, merchant API).
type ErrorBody struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Field   string `json:"field,omitempty"`
		Answer  string `json:"answer,omitempty"` // of the supplier, with the code live_says
		// Refundable is what is left of a payment (minor units), with the code refund_exceeds.
		Refundable *int64 `json:"refundable,omitempty"`
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
		level = slog.LevelWarn // being busy is not a fault, and comes in floods
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
