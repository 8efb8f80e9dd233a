package ui

import (
	"backstop/internal/alert"
	"backstop/internal/approval"
	"backstop/internal/base/text"
	"backstop/internal/breaker"
	"backstop/internal/callback"
	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/fund/dispute"
	"backstop/internal/fund/payout"
	"backstop/internal/fund/refund"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/report"
	"backstop/internal/sweep"
)

// State is the appearance of a state: mood, icon and word, never
// colour alone.
type State struct {
	Kind  string // ok, warn, bad, comp, info or idle
	Icon  string
	Label text.Text
}

// unknownState is the appearance of a code that this version does not know.
func unknownState(code string) State { return State{"idle", "clock", text.Text{ZH: code, EN: code}} }

// StateOf returns the appearance of a code; one that this version does not know is shown as it is.
func StateOf[C ~string](states map[string]State, code C) State {
	if s, ok := states[string(code)]; ok {
		return s
	}
	return unknownState(string(code))
}

// OrderStates are the states of orders.
var OrderStates = map[string]State{
	string(order.Pending): {"idle", "clock", text.Text{ZH: "待支付", EN: "Pending"}},
	string(order.Paying):  {"info", "arrow-right-left", text.Text{ZH: "支付中", EN: "Paying"}},
	string(order.Closing): {"warn", "hourglass", text.Text{ZH: "关单中", EN: "Closing"}},
	string(order.Paid):    {"ok", "check", text.Paid},
	string(order.Failed):  {"bad", "x", text.Failed},
	string(order.Closed):  {"idle", "ban", tClosed},
}

// NotifyStates are the words of an order's notify_status.
var NotifyStates = map[string]State{
	"none":      {"idle", "bell-ring", text.Text{ZH: "无通知", EN: "None"}},
	"queued":    {"info", "clock", tQueued},
	"sending":   {"info", "send", tSending},
	"retrying":  {"warn", "refresh-cw", tRetrying},
	"parked":    {"warn", "zap-off", text.Parked},
	"delivered": {"ok", "check", tDelivered},
	"exhausted": {"bad", "x", tExhausted},
}

// BreakerStates are the states of breakers.
var BreakerStates = map[string]State{
	string(breaker.Closed):   {"ok", "check", text.Text{ZH: "未熔断", EN: "Closed"}},
	string(breaker.Open):     {"bad", "zap-off", text.Text{ZH: "已熔断", EN: "Open"}},
	string(breaker.HalfOpen): {"warn", "flask-conical", text.Text{ZH: "探测中", EN: "Half-open"}},
}

// BreakerBecame is the state that a breaker changed to.
func BreakerBecame(to breaker.State) State {
	s := StateOf(BreakerStates, string(to))
	if to == breaker.Closed {
		s.Label = text.Text{ZH: "已恢复", EN: "Closed"}
	}
	return s
}

// DeliveryStates are the states of deliveries.
var DeliveryStates = map[string]State{
	string(notify.Queued):    {"info", "clock", tQueued},
	string(notify.Sending):   {"info", "send", tSending},
	string(notify.RetryWait): {"warn", "refresh-cw", tRetrying},
	string(notify.Delivered): {"ok", "check", tDelivered},
	string(notify.Exhausted): {"bad", "x", tExhausted},
	string(notify.Skipped):   {"idle", "ban", text.Text{ZH: "未发送", EN: "Not sent"}},
}

// ExceptionStates are the states of exceptions.
var ExceptionStates = map[string]State{
	string(exception.Opened):    {"bad", "triangle-alert", text.Text{ZH: "待处理", EN: "Open"}},
	string(exception.Assigned):  {"warn", "user", text.Text{ZH: "已指派", EN: "Assigned"}},
	string(exception.Proposed):  {"warn", "clock", text.Text{ZH: "待复核", EN: "Waiting for approval"}},
	string(exception.Approved):  {"info", "check", text.Text{ZH: "已复核", EN: "Approved"}},
	string(exception.Executing): {"info", "refresh-cw", text.Text{ZH: "执行中", EN: "Executing"}},
	string(exception.Resolved):  {"ok", "check", text.Text{ZH: "已解决", EN: "Resolved"}},
	string(exception.Failed):    {"bad", "x", text.Text{ZH: "执行失败", EN: "Decision failed"}},
	string(exception.Ignored):   {"idle", "ban", tIgnored},
}

// ApprovalStates are the states of proposals.
var ApprovalStates = map[string]State{
	string(approval.Waiting):   {"warn", "hourglass", text.Text{ZH: "待复核", EN: "Waiting"}},
	string(approval.Approved):  {"info", "check", text.Text{ZH: "已复核", EN: "Approved"}},
	string(approval.Executing): {"comp", "send", text.Text{ZH: "执行中", EN: "Running"}},
	string(approval.Done):      {"ok", "circle-check", text.Text{ZH: "已生效", EN: "Done"}},
	string(approval.Failed):    {"bad", "x", text.Text{ZH: "执行失败", EN: "Failed"}},
	string(approval.Rejected):  {"idle", "ban", text.Text{ZH: "已驳回", EN: "Rejected"}},
	string(approval.Withdrawn): {"idle", "ban", text.Text{ZH: "已撤回", EN: "Withdrawn"}},
	string(approval.Expired):   {"idle", "timer", text.Text{ZH: "已过期", EN: "Expired"}},
}

// CompensationStates are the states of compensations.
var CompensationStates = map[string]State{
	string(compensation.Waiting):   {"info", "clock", text.Text{ZH: "等待执行", EN: "Waiting"}},
	string(compensation.Running):   {"comp", "send", text.Text{ZH: "执行中", EN: "Running"}},
	string(compensation.Done):      {"ok", "check", text.Text{ZH: "已完成", EN: "Done"}},
	string(compensation.Dead):      {"bad", "x", text.Text{ZH: "补偿失败", EN: "Dead"}},
	string(compensation.Cancelled): {"idle", "ban", text.Text{ZH: "已取消", EN: "Cancelled"}},
}

// RefundStates are the states of refunds.
var RefundStates = map[string]State{
	string(refund.Requested): {"warn", "hourglass", text.Text{ZH: "待复核", EN: "Waiting for approval"}},
	string(refund.Approved):  {"info", "clock", text.Text{ZH: "待提交渠道", EN: "Approved"}},
	string(refund.Rejected):  {"idle", "ban", text.Text{ZH: "已驳回", EN: "Rejected"}},
	string(refund.Cancelled): {"idle", "ban", text.Text{ZH: "已取消", EN: "Cancelled"}},
	string(refund.Submitted): {"info", "send", text.Text{ZH: "渠道处理中", EN: "Sent to the supplier"}},
	string(refund.Unknown):   {"warn", "search", text.Text{ZH: "结果未知", EN: "Unknown"}},
	string(refund.Succeeded): {"ok", "check", text.Text{ZH: "退款成功", EN: "Refunded"}},
	string(refund.Failed):    {"bad", "x", text.Text{ZH: "退款失败", EN: "Failed"}},
	string(refund.Returned):  {"bad", "undo-2", text.Text{ZH: "退款被退回", EN: "Returned"}},
}

// PayoutStates are the states of payouts.
var PayoutStates = map[string]State{
	string(payout.Created):   {"warn", "hourglass", text.Text{ZH: "待复核", EN: "Waiting for approval"}},
	string(payout.Approved):  {"info", "clock", text.Text{ZH: "已批准", EN: "Approved"}},
	string(payout.Rejected):  {"idle", "ban", text.Text{ZH: "已驳回", EN: "Rejected"}},
	string(payout.Cancelled): {"idle", "ban", text.Text{ZH: "已取消", EN: "Cancelled"}},
	string(payout.Debiting):  {"info", "arrow-right-left", text.Text{ZH: "扣款中", EN: "Debiting"}},
	string(payout.Crediting): {"info", "send", text.Text{ZH: "渠道出款中", EN: "Being paid"}},
	string(payout.Unknown):   {"warn", "search", text.Text{ZH: "结果未知", EN: "Unknown"}},
	string(payout.Succeeded): {"ok", "check", text.Text{ZH: "出款成功", EN: "Paid out"}},
	string(payout.Failed):    {"bad", "x", text.Text{ZH: "出款失败", EN: "Failed"}},
	string(payout.Reversing): {"warn", "undo-2", text.Text{ZH: "冲正中", EN: "Being reversed"}},
	string(payout.Reversed):  {"bad", "undo-2", text.Text{ZH: "已冲正", EN: "Reversed"}},
	string(payout.Stuck):     {"bad", "triangle-alert", text.Text{ZH: "卡住，待人工裁定", EN: "Stuck, needs a decision"}},
}

// StepStates are the states of a payout's steps.
var StepStates = map[string]State{
	string(payout.Init):       {"idle", "clock", text.Text{ZH: "未开始", EN: "Not yet"}},
	string(payout.Processing): {"info", "refresh-cw", text.Text{ZH: "处理中", EN: "In progress"}},
	string(payout.Unsure):     {"warn", "search", text.Text{ZH: "结果未知", EN: "Unknown"}},
	string(payout.Success):    {"ok", "check", text.Text{ZH: "已完成", EN: "Done"}},
	string(payout.Failure):    {"bad", "x", text.Failed},
	string(payout.CameBack):   {"bad", "undo-2", text.Text{ZH: "被退回", EN: "Returned"}},
}

// DisputeStates are the states of disputes.
var DisputeStates = map[string]State{
	string(dispute.Opened):   {"bad", "shield-alert", text.Text{ZH: "待举证", EN: "Evidence due"}},
	string(dispute.Answered): {"warn", "hourglass", text.Text{ZH: "已举证，待裁定", EN: "Answered"}},
	string(dispute.Won):      {"ok", "check", text.Text{ZH: "胜诉", EN: "Won"}},
	string(dispute.Lost):     {"bad", "x", text.Text{ZH: "败诉", EN: "Lost"}},
}

// Refunded are the words of an order's refund_status.
var Refunded = map[string]State{
	"partial": {"info", "undo-2", text.Text{ZH: "部分退款", EN: "Partly refunded"}},
	"full":    {"idle", "undo-2", text.Text{ZH: "全额退款", EN: "Refunded"}},
}

// SweepStates are the states of sweeps.
var SweepStates = map[string]State{
	string(sweep.Running): {"info", "clock", text.Text{ZH: "扫描中", EN: "Running"}},
	string(sweep.Done):    {"ok", "check", text.Text{ZH: "已完成", EN: "Done"}},
	string(sweep.Missed):  {"warn", "hourglass", text.Text{ZH: "错过", EN: "Missed"}},
	string(sweep.Stopped): {"warn", "ban", text.Text{ZH: "超时结束", EN: "Stopped"}},
}

// ExceptionKinds are the kinds of exceptions.
var ExceptionKinds = map[string]text.Text{
	exception.UnknownOrder:          {ZH: "未知订单", EN: "Unknown order"},
	exception.AmountMismatch:        {ZH: "金额不符", EN: "Amount mismatch"},
	exception.CurrencyMismatch:      {ZH: "币种不符", EN: "Currency mismatch"},
	exception.AccountMismatch:       {ZH: "收款账户不符", EN: "Account mismatch"},
	exception.LatePayment:           {ZH: "关单后到账", EN: "Late payment"},
	exception.DuplicatePayment:      {ZH: "重复付款", EN: "Duplicate payment"},
	exception.UnknownRefund:         {ZH: "未知退款", EN: "Unknown refund"},
	exception.PayoutStuck:           {ZH: "出款待处理", EN: "Payout needs a person"},
	exception.PayoutReturned:        {ZH: "出款被退回", EN: "Payout returned"},
	exception.PayoutAfterReversal:   {ZH: "冲正后出款到账", EN: "Payout after its reversal"},
	exception.SupplierShort:         {ZH: "渠道账户余额不足", EN: "Supplier account short of funds"},
	exception.RefundFailed:          {ZH: "退款异常", EN: "Refund needs a person"},
	exception.DisputeOpened:         {ZH: "拒付争议", EN: "Dispute opened"},
	exception.Complaint:             {ZH: "买家投诉", EN: "Complaint"},
	exception.UnknownEvent:          {ZH: "未知类型消息", EN: "Unknown event"},
	exception.DecryptFailed:         {ZH: "解密失败", EN: "Decryption failed"},
	exception.Malformed:             {ZH: "内容不完整", EN: "Malformed"},
	exception.NotifyExhausted:       {ZH: "通知失败", EN: "Notification exhausted"},
	exception.StuckPaying:           {ZH: "支付卡住", EN: "Stuck paying"},
	exception.CompensationDead:      {ZH: "补偿失败", EN: "Compensation dead"},
	exception.StockShort:            {ZH: "库存不足", EN: "Stock short"},
	exception.BooksDiffer:           {ZH: "账实不符", EN: "Books differ"},
	exception.SubscriptionExhausted: {ZH: "内部系统通知失败", EN: "Subscription exhausted"},
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

// outcomes are the results of callbacks, also of rejected ones.
var outcomes = map[string]State{
	payment.Paid:             {"ok", "check", text.Paid},
	payment.Repeat:           {"idle", "git-compare", text.Text{ZH: "重复", EN: "Repeat"}},
	payment.Ignored:          {"idle", "ban", text.Text{ZH: "无需处理", EN: "No action"}},
	payment.FailedTry:        {"warn", "x", text.Text{ZH: "支付失败", EN: "Failed attempt"}},
	payment.OrderFailed:      {"bad", "x", text.Failed},
	payment.OrderClosed:      {"idle", "ban", tClosed},
	callback.UnknownSupplier: {"bad", "shield-alert", text.Text{ZH: "未知渠道", EN: "Unknown supplier"}},
	callback.WrongAddress:    {"bad", "shield-alert", text.Text{ZH: "地址不在白名单", EN: "Address not allowed"}},
	callback.BadSignature:    {"bad", "shield-alert", text.Text{ZH: "验签失败", EN: "Bad signature"}},
	callback.Unparsable:      {"bad", "shield-alert", text.Text{ZH: "无法解析", EN: "Unreadable"}},
	callback.AdapterFailed:   {"bad", "triangle-alert", text.Text{ZH: "适配器出错", EN: "Adapter failed"}},
	callback.Unavailable:     {"warn", "hourglass", text.Text{ZH: "暂不可用", EN: "Unavailable"}},
}

// OutcomeState is how the outcome of a callback looks.
func OutcomeState(outcome string) State {
	if w, ok := ExceptionKinds[outcome]; ok {
		return State{"warn", "triangle-alert", w}
	}
	return StateOf(outcomes, outcome)
}

var causes = map[order.Cause]text.Text{
	order.Created:    {ZH: "下单", EN: "created"},
	order.PayStarted: {ZH: "发起支付", EN: "payment started"},
	order.ByCallback: {ZH: "渠道回调", EN: "supplier's callback"},
	order.ByTimeout:  {ZH: "超时", EN: "timeout"},
	order.ByCancel:   {ZH: "商户取消", EN: "cancelled by the merchant"},
	order.ByQuery:    {ZH: "查询所得", EN: "the supplier was queried"},
	order.ByGrace:    {ZH: "等待期满", EN: "grace period over"},
	order.ByDecision: {ZH: "人工裁定", EN: "decided"},
	order.Imported:   {ZH: "迁入", EN: "imported"},
	order.BySupplier: {ZH: "渠道已关单", EN: "closed by the supplier"},
}

// CauseText names what moved an order.
func CauseText(c order.Cause) text.Text { return TextFor(causes, c) }

var classes = map[notify.Class]text.Text{
	notify.OK:         text.ClassOK,
	notify.BadStatus:  {ZH: "应答不是 2xx", EN: "answer is not 2xx"},
	notify.Gone:       {ZH: "对方已停止接收（410）", EN: "no longer accepted there (410)"},
	notify.BadText:    {ZH: "应答内容不符", EN: "answer has another text"},
	notify.Timeout:    {ZH: "超时无应答", EN: "no answer in time"},
	notify.Cancelled:  {ZH: "我方停止", EN: "stopped by us"},
	notify.DNS:        {ZH: "域名解析失败", EN: "name does not resolve"},
	notify.Connect:    {ZH: "连接失败", EN: "connection failed"},
	notify.TLS:        {ZH: "TLS 握手或证书失败", EN: "TLS handshake or certificate failed"},
	notify.Broken:     {ZH: "连接中断", EN: "connection broken"},
	notify.Blocked:    {ZH: "地址不允许访问", EN: "address not allowed"},
	notify.BadAddress: {ZH: "地址不可用", EN: "address cannot be used"},
	notify.Internal:   {ZH: "我方故障", EN: "internal fault"},

	notify.Refused:      {ZH: "对方拒绝", EN: "refused by the receiver"},
	notify.NotConnected: {ZH: "商户未连接", EN: "merchant is not connected"},

	notify.NoAddress:   {ZH: "未配置通知地址", EN: "no notification address"},
	notify.SwitchedOff: {ZH: "商户不接收此类通知", EN: "not wanted by the merchant"},
	notify.Shadow:      {ZH: "影子模式", EN: "shadow mode"},

	notify.Resent: {ZH: "已人工补发", EN: "resent by an operator"},

	notify.Locked:      {ZH: "密钥无法解开", EN: "secrets do not open"},
	notify.NoChannel:   {ZH: "程序版本缺少该通道", EN: "this version lacks the channel"},
	notify.BlockedHere: {ZH: "仅本节点禁止访问该地址", EN: "blocked on this node only"},
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
	return StateOf(ExceptionStates, state).Label
}

// AlertStates are the states of alerts.
var AlertStates = map[string]State{
	alert.Firing:   {"bad", "triangle-alert", text.Text{ZH: "告警中", EN: "Firing"}},
	alert.Resolved: {"ok", "check", text.Text{ZH: "已恢复", EN: "Over"}},
	alert.Happened: {"warn", "zap-off", text.Text{ZH: "已发生", EN: "Happened"}},
}

// IncidentStates are the states of incidents.
var IncidentStates = map[string]State{
	alert.Open:         {"bad", "triangle-alert", text.Text{ZH: "待处理", EN: "Open"}},
	alert.Acknowledged: {"info", "user", text.Text{ZH: "处理中", EN: "Acknowledged"}},
	alert.Snoozed:      {"idle", "moon", text.Text{ZH: "已暂缓", EN: "Snoozed"}},
	alert.Over:         {"ok", "check", text.Text{ZH: "已结束", EN: "Over"}},
}

// RiskParts is how the parts of the money at risk look, in the order of
// report.Parts. Each has a colour of its own.
var RiskParts = map[report.Part]struct {
	Kind, Icon, Href string
	Label            text.Text
}{
	report.Unnotified: {
		"bad", "bell-ring", "/notifications?risk=untold",
		text.Text{ZH: "掉单（已收款，未通知成功）", EN: "Paid, merchant not notified"},
	},
	report.Compensated: {"comp", "wrench", "/exceptions?risk=compensated", text.Text{ZH: "补偿中", EN: "Being compensated"}},
	report.Stuck:       {"warn", "hourglass", "/orders?risk=stuck", text.Text{ZH: "卡在中间态", EN: "Stuck between two states"}},
	report.Mismatch:    {"acc", "scale", "/exceptions?risk=mismatch", text.Text{ZH: "异常款待处理", EN: "Payments without a matching order"}},
}

// riskWord is what a part of the money at risk is called on the overview.
func riskWord(part string) text.Text {
	if r, ok := RiskParts[report.Part(part)]; ok {
		return r.Label
	}
	return text.Text{ZH: part, EN: part}
}

// objects are the kinds of objects that acts are about.
var objects = map[string]text.Text{
	"order":                 text.Order,
	console.ExceptionObject: {ZH: "异常", EN: "Exception"},
	"callback":              {ZH: "渠道回调", EN: "Callback"},
	"notification":          {ZH: "通知", EN: "Notification"},
	"merchant":              text.Merchant,
	"refund":                text.Refund,
	"payout":                text.Payout,
	"dispute":               text.Dispute,
	"compensation":          {ZH: "补偿任务", EN: "Compensation"},
	"batch":                 {ZH: "批次", EN: "Batch"},
	"accounts":              {ZH: "账户", EN: "Accounts"},
	"funds":                 {ZH: "商户资金", EN: "Merchant's money"},
	"frozen":                {ZH: "冻结资金", EN: "Frozen money"},
	"setting":               {ZH: "配置", EN: "Setting"},
	"plan":                  {ZH: "批量补单", EN: "Bulk resend"},
	"approval":              {ZH: "复核", EN: "Approval"},
	"operator":              {ZH: "操作员", EN: "Operator"},
	"token":                 {ZH: "令牌", EN: "Token"},
	"file":                  {ZH: "文件", EN: "File"},
	"master_key":            {ZH: "主密钥", EN: "Master key"},
	"audit":                 text.Audit,
	"alert_rule":            {ZH: "告警规则", EN: "Alert rule"},
	"incident":              {ZH: "告警事件", EN: "Incident"},
	"list":                  {ZH: "列表", EN: "List"},
	"alert":                 {ZH: "告警测试", EN: "Test alert"},
}

// ObjectText names a kind of things that acts are about.
func ObjectText(name string) text.Text { return TextFor(objects, name) }

// Texts of these pieces.
var (
	tClosed    = text.Text{ZH: "已关闭", EN: "Closed"}
	tQueued    = text.Text{ZH: "排队中", EN: "Queued"}
	tSending   = text.Text{ZH: "发送中", EN: "Sending"}
	tRetrying  = text.Text{ZH: "重试中", EN: "Retrying"}
	tDelivered = text.Text{ZH: "已确认", EN: "Delivered"}
	tExhausted = text.Text{ZH: "重试耗尽", EN: "Exhausted"}
	tIgnored   = text.Text{ZH: "已忽略", EN: "Ignored"}
)
