package ui

import (
	"backstop/internal/alert"
	"backstop/internal/base/text"
	"backstop/internal/breaker"
	"backstop/internal/callback"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/report"
)

// State is how a state of the domain looks: a mood, an icon and a word, never a
// colour alone.
type State struct {
	Kind  string // ok, warn, bad, comp, info or idle
	Icon  string
	Label text.Text
}

// unknownState is what this version does not know; the code is shown as it is.
func unknownState(code string) State { return State{"idle", "clock", text.Text{ZH: code, EN: code}} }

// Look is how a code looks; one that this version does not know is shown as it is.
func Look[C ~string](states map[string]State, code C) State {
	if s, ok := states[string(code)]; ok {
		return s
	}
	return unknownState(string(code))
}

// OrderStates are the states of orders.
var OrderStates = map[string]State{
	string(order.Pending): {"idle", "clock", tPending},
	string(order.Paying):  {"info", "arrow-right-left", tPaying},
	string(order.Closing): {"warn", "hourglass", tClosing},
	string(order.Paid):    {"ok", "check", text.Paid},
	string(order.Failed):  {"bad", "x", text.Failed},
	string(order.Closed):  {"idle", "ban", tClosed},
}

// ToldStates are the words of an order's notify_status.
var ToldStates = map[string]State{
	"none":      {"idle", "bell-ring", tToldNone},
	"queued":    {"info", "clock", tQueued},
	"sending":   {"info", "send", tSending},
	"retrying":  {"warn", "refresh-cw", tRetrying},
	"parked":    {"warn", "zap-off", text.Parked},
	"delivered": {"ok", "check", tDelivered},
	"exhausted": {"bad", "x", tExhausted},
}

// BreakerStates are the states of breakers.
var BreakerStates = map[string]State{
	string(breaker.Closed):   {"ok", "check", tStoryFlows},
	string(breaker.Open):     {"bad", "zap-off", tStoryParks},
	string(breaker.HalfOpen): {"warn", "flask-conical", tStoryProbes},
}

// DeliveryStates are the states of deliveries.
var DeliveryStates = map[string]State{
	string(notify.Queued):    {"info", "clock", tQueued},
	string(notify.Sending):   {"info", "send", tSending},
	string(notify.RetryWait): {"warn", "refresh-cw", tRetrying},
	string(notify.Delivered): {"ok", "check", tDelivered},
	string(notify.Exhausted): {"bad", "x", tExhausted},
	string(notify.Skipped):   {"idle", "ban", tSkipped},
}

// ExceptionStates are the states of exceptions.
var ExceptionStates = map[string]State{
	string(exception.Opened):   {"bad", "triangle-alert", tOpen},
	string(exception.Assigned): {"warn", "user", tAssigned},
	string(exception.Resolved): {"ok", "check", tResolved},
	string(exception.Ignored):  {"idle", "ban", tIgnored},
}

// ExceptionKinds are the kinds of exceptions.
var ExceptionKinds = map[string]text.Text{
	exception.UnknownOrder:          tUnknownOrder,
	exception.AmountMismatch:        tAmountMismatch,
	exception.CurrencyMismatch:      tCurrencyMismatch,
	exception.AccountMismatch:       tAccountMismatch,
	exception.LatePayment:           tLatePayment,
	exception.DuplicatePayment:      tDuplicatePayment,
	exception.UnknownRefund:         tUnknownRefund,
	exception.DisputeOpened:         tDisputeOpened,
	exception.UnknownEvent:          tUnknownEvent,
	exception.DecryptFailed:         tDecryptFailed,
	exception.Malformed:             tMalformed,
	exception.NotifyExhausted:       tNotifyExhausted,
	exception.StuckPaying:           tStuckPaying,
	exception.SubscriptionExhausted: tSubExhausted,
}

// TextFor is a code in words; what this version does not know is shown as it is.
func TextFor[C ~string](words map[C]text.Text, code C) text.Text {
	if w, ok := words[code]; ok {
		return w
	}
	return text.Text{ZH: string(code), EN: string(code)}
}

// KindText names a kind of exceptions.
func KindText(kind string) text.Text { return TextFor(ExceptionKinds, kind) }

// outcomes are what came of a callback: of the payment, or refused at the door.
var outcomes = map[string]State{
	payment.Paid:              {"ok", "check", text.Paid},
	payment.Repeat:            {"idle", "git-compare", tRepeat},
	payment.Ignored:           {"idle", "ban", tNothingToDo},
	payment.FailedTry:         {"warn", "x", tFailedTry},
	payment.OrderFailed:       {"bad", "x", text.Failed},
	payment.OrderClosed:       {"idle", "ban", tClosed},
	callback.UnknownSupplier:  {"bad", "shield-alert", tUnknownSupplier},
	callback.DisabledSupplier: {"bad", "shield-alert", tDisabledSupplier},
	callback.WrongAddress:     {"bad", "shield-alert", tWrongAddress},
	callback.BadSignature:     {"bad", "shield-alert", tBadSignature},
	callback.Unparsable:       {"bad", "shield-alert", tUnparsable},
	callback.AdapterFailed:    {"bad", "triangle-alert", tAdapterFailed},
	callback.Unavailable:      {"warn", "hourglass", tUnavailable},
}

// OutcomeState is how the outcome of a callback looks.
func OutcomeState(outcome string) State {
	if w, ok := ExceptionKinds[outcome]; ok {
		return State{"warn", "triangle-alert", w}
	}
	return Look(outcomes, outcome)
}

var causes = map[order.Cause]text.Text{
	order.Created:    tCauseCreated,
	order.PayStarted: tCausePay,
	order.ByCallback: tCauseCallback,
	order.ByTimeout:  tCauseTimeout,
	order.ByCancel:   tCauseCancel,
	order.ByGrace:    tCauseGrace,
	order.Imported:   tCauseImported,
	order.BySupplier: tCauseSupplier,
}

// CauseText names what moved an order.
func CauseText(c order.Cause) text.Text { return TextFor(causes, c) }

var classes = map[notify.Class]text.Text{
	notify.OK:         text.ClassOK,
	notify.BadStatus:  tClassBadStatus,
	notify.BadText:    tClassBadText,
	notify.Timeout:    tClassTimeout,
	notify.Cancelled:  tClassCancelled,
	notify.DNS:        tClassDNS,
	notify.Connect:    tClassConnect,
	notify.TLS:        tClassTLS,
	notify.Broken:     tClassBroken,
	notify.Blocked:    tClassBlocked,
	notify.BadAddress: tClassBadAddress,
	notify.Internal:   tClassInternal,

	notify.Refused:      tClassRefused,
	notify.NotConnected: tClassNotConnected,

	notify.Locked:      tClassLocked,
	notify.NoChannel:   tClassNoChannel,
	notify.BlockedHere: tClassBlockedHere,
}

// ClassText names how an attempt ended.
func ClassText(c notify.Class) text.Text { return TextFor(classes, c) }

// exceptionStateWord names a state of exceptions, or what stands for several.
func ExceptionStateText(state string) text.Text {
	switch state {
	case console.NeedsPerson:
		return text.NeedsPerson
	case console.Unsettled:
		return text.Unsettled
	}
	return Look(ExceptionStates, state).Label
}

// AlertStates are the states of alerts.
var AlertStates = map[string]State{
	alert.Firing:   {"bad", "triangle-alert", tFiringNow},
	alert.Resolved: {"ok", "check", tOver},
	alert.Happened: {"warn", "zap-off", tHappened},
}

// RiskParts is how the parts of the money at risk look, in the order of
// report.Parts.
var RiskParts = map[report.Part]struct {
	Kind, Icon, Href string
	Label            text.Text
}{
	report.Untold:      {"bad", "bell-ring", "/notifications?risk=untold", tUntold},
	report.Compensated: {"comp", "wrench", "/exceptions?risk=compensated", tCompensated},
	report.Stuck:       {"warn", "hourglass", "/orders?risk=stuck", tStuck},
	report.Mismatch:    {"bad", "scale", "/exceptions?risk=mismatch", tMismatch},
}

// riskWord is what a part of the money at risk is called on the overview.
func riskWord(part string) text.Text {
	if r, ok := RiskParts[report.Part(part)]; ok {
		return r.Label
	}
	return text.Text{ZH: part, EN: part}
}

// objects are the kinds of things that something is done to.
var objects = map[string]text.Text{
	"order":                 text.Order,
	console.ExceptionObject: tObjException,
	"merchant":              text.Merchant,
	"plan":                  tObjPlan,
	"operator":              tObjOperator,
	"token":                 tObjToken,
	"file":                  tObjFile,
	"master_key":            tObjKey,
	"audit":                 text.Audit,
	"alert_rule":            tObjRule,
	"alert":                 tObjAlert,
}

// ObjectText names a kind of things that acts are about.
func ObjectText(name string) text.Text { return TextFor(objects, name) }

// Texts of these pieces.
var (
	tPending           = text.Text{ZH: "待支付", EN: "Pending"}
	tPaying            = text.Text{ZH: "支付中", EN: "Paying"}
	tClosing           = text.Text{ZH: "关单中", EN: "Closing"}
	tClosed            = text.Text{ZH: "已关闭", EN: "Closed"}
	tToldNone          = text.Text{ZH: "无通知", EN: "None"}
	tQueued            = text.Text{ZH: "排队中", EN: "Queued"}
	tSending           = text.Text{ZH: "发送中", EN: "Sending"}
	tRetrying          = text.Text{ZH: "重试中", EN: "Retrying"}
	tDelivered         = text.Text{ZH: "已确认", EN: "Delivered"}
	tExhausted         = text.Text{ZH: "重试耗尽", EN: "Exhausted"}
	tSkipped           = text.Text{ZH: "未发送", EN: "Not sent"}
	tOpen              = text.Text{ZH: "待处理", EN: "Open"}
	tAssigned          = text.Text{ZH: "已指派", EN: "Assigned"}
	tResolved          = text.Text{ZH: "已解决", EN: "Resolved"}
	tIgnored           = text.Text{ZH: "已忽略", EN: "Ignored"}
	tRepeat            = text.Text{ZH: "重复", EN: "Repeat"}
	tNothingToDo       = text.Text{ZH: "无需处理", EN: "Nothing to do"}
	tFailedTry         = text.Text{ZH: "支付失败", EN: "Failed try"}
	tUnknownSupplier   = text.Text{ZH: "未知渠道", EN: "Unknown supplier"}
	tDisabledSupplier  = text.Text{ZH: "渠道已停用", EN: "Supplier disabled"}
	tWrongAddress      = text.Text{ZH: "地址不在白名单", EN: "Address not allowed"}
	tBadSignature      = text.Text{ZH: "验签失败", EN: "Bad signature"}
	tUnparsable        = text.Text{ZH: "无法解析", EN: "Unreadable"}
	tAdapterFailed     = text.Text{ZH: "适配器出错", EN: "Adapter failed"}
	tUnavailable       = text.Text{ZH: "暂不可用", EN: "Unavailable"}
	tUnknownOrder      = text.Text{ZH: "未知订单", EN: "Unknown order"}
	tAmountMismatch    = text.Text{ZH: "金额不符", EN: "Amount mismatch"}
	tCurrencyMismatch  = text.Text{ZH: "币种不符", EN: "Currency mismatch"}
	tAccountMismatch   = text.Text{ZH: "收款账户不符", EN: "Account mismatch"}
	tLatePayment       = text.Text{ZH: "关单后到账", EN: "Late payment"}
	tDuplicatePayment  = text.Text{ZH: "重复付款", EN: "Duplicate payment"}
	tUnknownRefund     = text.Text{ZH: "未知退款", EN: "Unknown refund"}
	tDecryptFailed     = text.Text{ZH: "解密失败", EN: "Decryption failed"}
	tDisputeOpened     = text.Text{ZH: "拒付争议", EN: "Dispute opened"}
	tUnknownEvent      = text.Text{ZH: "未知类型消息", EN: "Unknown event"}
	tMalformed         = text.Text{ZH: "内容不完整", EN: "Malformed"}
	tNotifyExhausted   = text.Text{ZH: "通知失败", EN: "Notification exhausted"}
	tStuckPaying       = text.Text{ZH: "支付卡住", EN: "Stuck paying"}
	tSubExhausted      = text.Text{ZH: "内部系统通知失败", EN: "Subscription exhausted"}
	tCauseCreated      = text.Text{ZH: "下单", EN: "created"}
	tCausePay          = text.Text{ZH: "发起支付", EN: "payment started"}
	tCauseCallback     = text.Text{ZH: "渠道回调", EN: "supplier's callback"}
	tCauseTimeout      = text.Text{ZH: "超时", EN: "timeout"}
	tCauseCancel       = text.Text{ZH: "商户取消", EN: "cancelled by the merchant"}
	tCauseGrace        = text.Text{ZH: "等待期满", EN: "grace over"}
	tCauseImported     = text.Text{ZH: "迁入", EN: "imported"}
	tCauseSupplier     = text.Text{ZH: "渠道已关单", EN: "closed by the supplier"}
	tClassBadStatus    = text.Text{ZH: "应答不是 2xx", EN: "answer is not 2xx"}
	tClassBadText      = text.Text{ZH: "应答内容不符", EN: "answer has another text"}
	tClassTimeout      = text.Text{ZH: "超时无应答", EN: "no answer in time"}
	tClassCancelled    = text.Text{ZH: "我方停止", EN: "stopped by us"}
	tClassDNS          = text.Text{ZH: "域名解析失败", EN: "name does not resolve"}
	tClassConnect      = text.Text{ZH: "连接失败", EN: "no connection"}
	tClassTLS          = text.Text{ZH: "TLS 握手或证书失败", EN: "TLS handshake or certificate"}
	tClassBroken       = text.Text{ZH: "连接中断", EN: "connection broke"}
	tClassBlocked      = text.Text{ZH: "地址不允许访问", EN: "address may not be reached"}
	tClassBadAddress   = text.Text{ZH: "地址不可用", EN: "address cannot be used"}
	tClassInternal     = text.Text{ZH: "我方故障", EN: "our fault"}
	tClassRefused      = text.Text{ZH: "对方拒绝", EN: "refused by the other side"}
	tClassNotConnected = text.Text{ZH: "商户未连接", EN: "merchant is not connected"}
	tClassLocked       = text.Text{ZH: "密钥无法解开", EN: "secrets do not open"}
	tClassNoChannel    = text.Text{ZH: "程序版本缺少该通道", EN: "this version lacks the channel"}
	tClassBlockedHere  = text.Text{ZH: "仅本节点禁止访问该地址", EN: "blocked on this node alone"}
	tObjException      = text.Text{ZH: "异常", EN: "Exception"}
	tObjPlan           = text.Text{ZH: "批量补单", EN: "Resend of many"}
	tObjAlert          = text.Text{ZH: "告警测试", EN: "Test of alerts"}
	tObjRule           = text.Text{ZH: "告警规则", EN: "Rule of alerts"}
	tObjOperator       = text.Text{ZH: "操作员", EN: "Operator"}
	tObjToken          = text.Text{ZH: "令牌", EN: "Token"}
	tObjFile           = text.Text{ZH: "文件", EN: "File"}
	tObjKey            = text.Text{ZH: "主密钥", EN: "Master key"}
	tFiringNow         = text.Text{ZH: "告警中", EN: "Firing"}
	tOver              = text.Text{ZH: "已恢复", EN: "Over"}
	tHappened          = text.Text{ZH: "已发生", EN: "Happened"}
	tUntold            = text.Text{ZH: "掉单（已收款，未通知成功）", EN: "Paid, merchant not notified"}
	tCompensated       = text.Text{ZH: "补偿中", EN: "Being compensated"}
	tStuck             = text.Text{ZH: "卡在中间态", EN: "Stuck mid-flow"}
	tMismatch          = text.Text{ZH: "异常款待处理", EN: "Payments that fit no order"}
	tStoryFlows        = text.Text{ZH: "已恢复", EN: "Closed"}
	tStoryParks        = text.Text{ZH: "已熔断", EN: "Open"}
	tStoryProbes       = text.Text{ZH: "探测中", EN: "Half-open"}
)
