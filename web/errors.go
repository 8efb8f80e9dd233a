package web

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/alert"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/invalid"
	"backstop/internal/base/text"
	"backstop/internal/base/textlimit"
	"backstop/internal/batch"
	"backstop/internal/breaker"
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
	"backstop/internal/orderquery"
	"backstop/internal/pause"
	"backstop/internal/payment"
	"backstop/internal/savedview"
	"backstop/internal/settings/apply"
	"backstop/internal/stock"
	"backstop/internal/suppliercall"
	"backstop/internal/sweep"
	"backstop/internal/testmode"
	"backstop/views/reference"
	"backstop/views/ui"

	"github.com/gofiber/fiber/v2"
)

// Error is a response that refuses a request.
type Error struct {
	Status     int
	Code       string    // for programs
	Message    string    // holds nothing internal
	field      string    // of the request, where one is wrong
	at         string    // the field of the form, where programs are told of none
	roles      []string  // that may do what the caller may not
	answer     string    // of the supplier, where it says otherwise
	refundable *int64    // of a payment, where more is asked for
	says       text.Text // to a person at a form; zero = what its kind of error says
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

// OpenAgain is said of a form that does not come from its page.
var OpenAgain = text.Text{ZH: "请重新打开页面，从那里提交", EN: "open the page again and send the form from there"}

// Invalid is InvalidField with a problem that people read in their language.
func Invalid(field string, problem text.Text, args ...any) *Error {
	says := invalid.Field(field, problem, args...).Says
	e := InvalidField(field, says.EN)
	e.says = says
	return e
}

// Errors of the server itself.
var (
	errUnauthorized = &Error{
		Status: http.StatusUnauthorized, Code: "unauthorized",
		Message: "send a valid key: Authorization: Bearer <key>",
	}
	errForbidden   = &Error{Status: http.StatusForbidden, Code: "forbidden", Message: "this key may not do that"}
	errStaleSecond = &Error{
		Status: http.StatusForbidden, Code: "forbidden", Message: "give the second factor again in the console, or use a personal token",
	}
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
	errNoTestMode = &Error{
		Status: http.StatusServiceUnavailable, Code: "unavailable",
		Message: "test mode does not run at the moment: try again later",
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
	zh     string // for a person at a form; "" = what its kind of error says
}{
	{orderquery.ErrCannotQuery, http.StatusConflict, "cannot_be_asked", "", ""},
	{alert.ErrRule, http.StatusUnprocessableEntity, "invalid_rule", "", ""},
	{act.ErrNotFound, http.StatusNotFound, "not_found", "", ""},
	{act.ErrChanged, http.StatusConflict, "changed", "", "内容已变更：请重新查看"},
	{order.ErrNotFound, http.StatusNotFound, "not_found", "", ""},
	{notify.ErrNoDelivery, http.StatusNotFound, "not_found", "", ""},
	{approval.ErrPerson, http.StatusForbidden, "person_needed", "", ""},
	{approval.ErrSelfApproval, http.StatusForbidden, "own_proposal", "", ""},
	{approval.ErrMaker, http.StatusForbidden, "forbidden", "", "只有提议人能撤回"},
	{approval.ErrEnded, http.StatusConflict, "over", "", "已经结束"},
	{approval.ErrExpired, http.StatusConflict, "expired", "", "提议已过期：请重新提议"},
	{approval.ErrStaleProposal, http.StatusConflict, "hash", "", ""},
	{approval.ErrProposed, http.StatusConflict, "proposed", "", ""},
	{approval.ErrNoSecond, http.StatusConflict, "no_second_person", "", ""},
	{alert.ErrNoTarget, http.StatusConflict, "no_target", "", "没有告警目标：请设置 BACKSTOP_ALERT_URLS"},
	{alert.ErrOver, http.StatusConflict, "incident_over", "", "告警事件已结束"},
	{alert.ErrEndsItself, http.StatusConflict, "incident_ends_itself", "", "原因消除后，这个告警事件会自行结束"},
	{alert.ErrNotSilent, http.StatusConflict, "incident_not_silent", "", "这个告警事件既未确认也未静默"},
	{resend.ErrNotFailed, http.StatusConflict, "over", "", "这条消息已发出或正等待下一次发送：只有放弃的才能补发"},
	{compensation.ErrOver, http.StatusConflict, "over", "", "这个补偿已结束，没有可执行或取消的"},
	{compensation.ErrOnly, http.StatusConflict, "only_schedule", "", "退款或出款的渠道调用只由这个补偿完成，不能取消"},
	{compensation.ErrRunning, http.StatusConflict, "running", "", "这个补偿正在执行：请等待结果"},
	{compensation.ErrNothing, http.StatusNotFound, "not_found", "", ""},
	{compensation.ErrTooMany, http.StatusConflict, "use_a_batch", "", "符合的太多：请用批次处理"},
	{sweep.ErrRunning, http.StatusConflict, "running", "", "扫单正在进行：请等待结果"},
	{breaker.ErrProbing, http.StatusConflict, "probe_running", "", ""},
	{pause.ErrAlready, http.StatusConflict, "already", "", ""},
	{breaker.ErrAlready, http.StatusConflict, "already", "", ""},
	{notify.ErrUnreadable, http.StatusServiceUnavailable, "settings_unreadable", "", ""},
	{notify.ErrSending, http.StatusConflict, "sending", "", ""},
	{exception.ErrEnded, http.StatusConflict, "over", "", "异常已结束或已变更：请重新查看"},
	{exception.ErrOpen, http.StatusConflict, "open", "", "异常已经是打开的"},
	{exception.ErrDecided, http.StatusConflict, "over", "", "这条异常由两人决定：再次出现时才会重新打开"},
	{batch.ErrExpired, http.StatusConflict, "expired", "", "批次计划已过期：请重新做一份"},
	{batch.ErrState, http.StatusConflict, "state", "", "批次当前的状态不能这样操作"},
	{batch.ErrDrifted, http.StatusConflict, "drifted", "", "金额比计划时变化超过 1 %：请重新做一份"},
	{batch.ErrMaker, http.StatusForbidden, "not_yours", "", "只有做这份计划的人能启动它"},
	{batch.ErrNothing, http.StatusNotFound, "nothing", "", ""},
	{batch.ErrTooMany, http.StatusRequestEntityTooLarge, "too_many", "", ""},
	{savedview.ErrFull, http.StatusConflict, "views_full", "", ""},
	{savedview.ErrTaken, http.StatusConflict, "view_taken", "", ""},
	{dispute.ErrNotFound, http.StatusNotFound, "not_found", "", ""},
	{refund.ErrNotFound, http.StatusNotFound, "not_found", "", ""},
	{refund.ErrConflict, http.StatusConflict, "idempotency_conflict", "", "这个退款单号已用于另一笔退款"},
	{refund.ErrNotRefundable, http.StatusConflict, "not_refundable", "", "这笔订单不能退款：未支付，或已过退款期"},
	{refund.ErrStarted, http.StatusConflict, "refund_started", "", "退款已提交渠道，不能取消"},
	{refund.ErrNotOwn, http.StatusForbidden, "not_yours", "", ""},
	{payout.ErrNotFound, http.StatusNotFound, "not_found", "", ""},
	{payout.ErrConflict, http.StatusConflict, "idempotency_conflict", "", "这个出款单号已用于另一笔出款"},
	{payout.ErrStarted, http.StatusConflict, "payout_started", "", "出款已开始，不能取消"},
	{payout.ErrFrozen, http.StatusConflict, "frozen", "", "商户账户已冻结"},
	{refund.ErrSupplier, http.StatusServiceUnavailable, "unavailable", "", ""},
	{payment.ErrConflict, http.StatusConflict, "idempotency_conflict", "", "这个商户单号已用于另一笔订单"},
	{adjust.ErrFrozen, http.StatusConflict, "nothing_frozen", "", "该商户在这个币种没有冻结款"},
	{ledger.ErrInsufficient, http.StatusConflict, "insufficient_balance", "", "余额不足"},
	{payment.ErrSupplier, http.StatusServiceUnavailable, "unavailable", "", ""},
	{payment.ErrNoMessage, http.StatusConflict, "no_message", "", "渠道消息已不再留存，不能重新确认"},
	{payment.ErrState, http.StatusConflict, "wrong_state", "", "订单当前的状态不能这样操作"},
	{payment.ErrAttemptOpen, http.StatusConflict, "attempt_open", "", "已发起的支付仍可能付款：请等它失败或关闭"},
	{suppliercall.ErrShadow, http.StatusConflict, "shadow_mode", "", "影子模式：不向渠道发起支付、退款和出款"},
	{notify.ErrShadow, http.StatusConflict, "shadow_mode", "", "影子模式：不发送任何通知"},
	{suppliercall.ErrDown, http.StatusServiceUnavailable, "supplier_unreachable", "", ""},
	{testmode.ErrLive, http.StatusNotFound, "not_found", "", ""},
	{testmode.ErrScenario, http.StatusNotFound, "not_found", "", ""},
	{testmode.ErrSupplier, http.StatusConflict, "wrong_state", "", "这笔订单的渠道不是 sandbox"},
	{testmode.ErrAway, http.StatusServiceUnavailable, "unavailable", "", "测试模式没有运行"},
	{testmode.ErrOften, http.StatusTooManyRequests, "rate_limited", "", ""},
	{stock.ErrOutOfStock, http.StatusConflict, "out_of_stock", "", "库存不足"},
	{stock.ErrUnknownSKU, http.StatusUnprocessableEntity, "invalid_field", "items", ""},
	{access.ErrRole, http.StatusUnprocessableEntity, "invalid_field", "role", "没有这个角色"},
	{apply.ErrRotated, http.StatusTooManyRequests, "rotated_recently", "", "签名密钥一小时内刚轮换过：请等各处都用上新密钥再试"},
	{apply.ErrStoredInvalid, http.StatusConflict, "settings_invalid", "", "这个商户已存的配置不再有效：请管理员先修正"},
	{apply.ErrRotationWaits, http.StatusConflict, "second_person_needed", "", "这里更换密钥需要第二人复核：请联系管理员，或通过 API 轮换"},
	{access.ErrRoleLimit, http.StatusUnprocessableEntity, "invalid_field", "role", "商户角色只给限定商户的人：请先限定商户"},
	{access.ErrLimit, http.StatusUnprocessableEntity, "invalid_field", "merchants", "商户角色必须限定商户：请填写商户代码"},
	{access.ErrName, http.StatusUnprocessableEntity, "invalid_field", "name", "名称请用 1 到 64 个字符：a-z、0-9、点、- 和 _，以字母或数字开头"},
	{access.ErrExists, http.StatusUnprocessableEntity, "invalid_field", "name", "这个名称已被使用，可能属于已停用的人：请换一个"},
	{access.ErrSelf, http.StatusConflict, "own_access", "", "不能更改或停用自己：请另一位管理员处理"},
	{access.ErrNoSecond, http.StatusConflict, "no_second_factor", "", "没有两步验证"},
	{access.ErrHasSecond, http.StatusConflict, "has_second_factor", "", "已经设置了两步验证"},
	{access.ErrCode, http.StatusUnprocessableEntity, "invalid_field", "code", "验证码不正确：请输入应用现在显示的六位数字，或一个恢复码"},
	{access.ErrCodeUsed, http.StatusUnprocessableEntity, "invalid_field", "code", "这个验证码已用过：请等下一个"},
	{access.ErrProvider, http.StatusConflict, "signs_in_at_provider", "", "这位操作员通过身份提供方登录：密码和两步验证都在那里设置"},
	{access.ErrDisabled, http.StatusConflict, "disabled", "", "这位操作员已停用：请先启用"},
	{access.ErrNotDisabled, http.StatusConflict, "not_disabled", "", "这位操作员没有停用"},
	{access.ErrLastAdmin, http.StatusConflict, "last_admin", "", "这是最后一位管理员：请先邀请另一位"},
	{access.ErrLastApprover, http.StatusConflict, "last_lead", "", "这是最后一位能复核的财务主管：请先邀请另一位"},
	{db.ErrBusy, http.StatusServiceUnavailable, "busy", "", ""},
	{db.ErrStale, http.StatusServiceUnavailable, "busy", "", ""},
	{db.ErrCommitUnknown, http.StatusServiceUnavailable, "unknown_outcome", "", "不确定是否已生效：请先查看记录；再次提交同一表单不会重复执行"},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "busy", "", ""},
	{context.Canceled, http.StatusServiceUnavailable, "busy", "", ""},
}

// statusCodes maps the library's own refusals to codes.
var statusCodes = map[int]string{
	http.StatusNotFound:                    "not_found",
	http.StatusMethodNotAllowed:            "method_not_allowed",
	http.StatusRequestTimeout:              "timeout",
	http.StatusRequestEntityTooLarge:       "too_large",
	http.StatusRequestHeaderFieldsTooLarge: "header_too_large",
}

var tNoMerchants = text.Text{ZH: "没有这些商户：%s", EN: "there is no merchant %s"}

var tRefundable = text.Text{ZH: "最多还能退 %s", EN: "at most %s can be refunded"}

// answerTo returns the response to an error. An unknown error is our fault.
func answerTo(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if e, ok := errors.AsType[*refund.ExceedsError](err); ok {
		answer := &Error{Status: http.StatusConflict, Code: "refund_exceeds", Message: e.Error(), at: "amount", refundable: &e.Refundable}
		answer.says = invalid.Field("", tRefundable, ui.MoneyText(e.Refundable, e.Currency)).Says
		return answer
	}
	if e, ok := errors.AsType[*payout.LimitError](err); ok {
		return &Error{Status: http.StatusConflict, Code: "limit_exceeded", Message: e.Error(), field: e.Field}
	}
	if e, ok := errors.AsType[access.UnknownMerchants](err); ok {
		err = invalid.Field("merchants", tNoMerchants, strings.Join(e, ", "))
	}
	if e, ok := errors.AsType[*invalid.FieldError](err); ok {
		answer := InvalidField(e.Field, e.Problem)
		answer.says = e.Says
		return answer
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
			answer := &Error{Status: e.status, Code: e.code, Message: e.is.Error(), field: e.field}
			if e.zh != "" {
				answer.says = text.Text{ZH: e.zh, EN: answer.Message}
			}
			return answer
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
	c.Set(fiber.HeaderLink, "</docs#"+reference.ErrorAnchor(e.Code)+`>; rel="help"`)
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
