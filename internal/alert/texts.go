package alert

import (
	"backstop/internal/base/text"
	"backstop/internal/exception"
)

// Title returns the title of a rule, in "zh" or "en".
func Title(rule, language string) string {
	if r, ok := ruleTexts[rule]; ok {
		return r.title.In(language)
	}
	return rule
}

// ruleTexts holds the title of each rule and the console page that its messages link to.
var ruleTexts = map[string]struct {
	title text.Text
	link  string
}{
	QueueLength:         {text.Text{ZH: "队列过长", EN: "a queue is too long"}, "/"},
	SuccessRate:         {text.Text{ZH: "通知尝试成功率过低", EN: "too many attempts to notify fail"}, "/notifications"},
	ErrorRate:           {text.Text{ZH: "通知失败率过高", EN: "too many notifications run out of attempts"}, "/notifications"},
	AnswerTime:          {text.Text{ZH: "商户平均响应过慢", EN: "merchants answer too slowly on average"}, "/notifications"},
	SlowMerchant:        {text.Text{ZH: "商户响应慢", EN: "a merchant answers slowly"}, "/notifications"},
	SupplierSilent:      {text.Text{ZH: "渠道回调静默", EN: "a supplier is silent"}, "/callbacks"},
	DatabaseDown:        {text.Text{ZH: "数据库不可用", EN: "the database cannot be used"}, "/"},
	RedisDown:           {text.Text{ZH: "Redis 不可用", EN: "Redis cannot be used"}, "/"},
	ClockSkew:           {text.Text{ZH: "时钟偏差过大", EN: "clocks differ too much"}, "/"},
	ClockStep:           {text.Text{ZH: "系统时钟被调整", EN: "a clock was set"}, "/"},
	WrongKey:            {text.Text{ZH: "节点的主密钥不是当前使用的", EN: "a node does not have the master key in use"}, "/"},
	TestModeDown:        {text.Text{ZH: "测试模式未运行", EN: "test mode does not run"}, "/"},
	NodesDiffer:         {text.Text{ZH: "节点之间配置不一致", EN: "nodes differ in what must agree"}, "/"},
	OurFault:            {text.Text{ZH: "通知因系统自身原因未发出", EN: "notifications wait because of a fault on our side"}, "/notifications"},
	Unreadable:          {text.Text{ZH: "设置无法读取，其通知已暂停", EN: "settings cannot be read; their notifications wait"}, "/"},
	QueuePaused:         {text.Text{ZH: "队列已被暂停", EN: "a queue is paused"}, "/queues"},
	QueueForecast:       {text.Text{ZH: "预计积压将达到上限", EN: "the backlog is forecast to reach its limit"}, "/analytics"},
	RateForecast:        {text.Text{ZH: "预计成功率将跌破下限", EN: "the success rate is forecast to fall below its limit"}, "/analytics"},
	ExceptionOpened:     {text.Text{ZH: "新的异常", EN: "new exceptions"}, "/exceptions?state=needs"},
	DisputeOpened:       {text.Text{ZH: "新的拒付争议", EN: "new disputes"}, "/exceptions?kind=dispute_opened"},
	DisputeDue:          {text.Text{ZH: "拒付争议即将到期，尚未举证", EN: "evidence for disputes is due soon"}, "/exceptions?kind=dispute_opened"},
	NotifyExhausted:     {text.Text{ZH: "通知重试用尽", EN: "notifications ran out of attempts"}, "/exceptions?kind=notify_exhausted"},
	CompensationDead:    {text.Text{ZH: "补偿任务失败，需要人工处理", EN: "compensations are dead and need an operator"}, "/compensations?state=dead"},
	BatchStopped:        {text.Text{ZH: "批次自动停止", EN: "a batch stopped by itself"}, "/batches"},
	ProposalWaits:       {text.Text{ZH: "提议等待第二人复核", EN: "proposals wait for a second person"}, "/approvals?state=waiting"},
	BreakerOpened:       {text.Text{ZH: "商户熔断", EN: "a breaker opened"}, "/merchants"},
	BreakerClosed:       {text.Text{ZH: "商户恢复", EN: "a breaker closed"}, "/merchants"},
	SupplierUnreachable: {text.Text{ZH: "渠道无法访问，查单暂停", EN: "a supplier cannot be reached, and queries wait"}, "/orders?status=paying"},
	SupplierReachable:   {text.Text{ZH: "渠道已恢复，查单继续", EN: "a supplier can be reached again"}, "/orders?status=paying"},
	StuckOrders:         {text.Text{ZH: "卡单：多次查单仍无结果", EN: "orders are stuck without a result"}, "/orders?no_result=yes"},
	MerchantNegative:    {text.Text{ZH: "商户余额为负", EN: "a merchant's balance is below zero"}, "/merchants"},
	PayoutRefused:       {text.Text{ZH: "出款请求被拒绝：密钥或来源地址不符", EN: "requests for payouts were refused: wrong key or address"}, "/alerts"},
	BreakGlass:          {text.Text{ZH: "紧急账号用密码登录", EN: "the operator for emergencies signed in by password"}, "/audit"},
	SupplierShort: {
		text.Text{ZH: "渠道账户余额不足，出款或退款等待中", EN: "too little money at a supplier; payouts or refunds wait"},
		"/exceptions?kind=supplier_short",
	},
	TargetDisabled: {text.Text{ZH: "通知地址应答 410", EN: "an endpoint answered 410"}, "/notifications"},
	CountersDiffer: {text.Text{ZH: "统计与明细不符，已更正", EN: "figures did not match their rows, and were corrected"}, "/sweeps"},
	BooksDiffer:    {text.Text{ZH: "账实不符：verify 发现问题", EN: "the books do not add up: verify found violations"}, "/sweeps"},
}

// kindName names a kind of exception, singular and plural.
type kindName struct{ zh, one, many string }

var kindNames = map[string]kindName{
	exception.AmountMismatch:      {"金额不符", "amount mismatch", "amount mismatches"},
	exception.CurrencyMismatch:    {"币种不符", "currency mismatch", "currency mismatches"},
	exception.AccountMismatch:     {"收款账户不符", "account mismatch", "account mismatches"},
	exception.DuplicatePayment:    {"重复付款", "duplicate payment", "duplicate payments"},
	exception.LatePayment:         {"关单后到账", "late payment", "late payments"},
	exception.UnknownOrder:        {"未知订单的付款", "payment for an unknown order", "payments for unknown orders"},
	exception.DisputeOpened:       {"拒付争议", "dispute", "disputes"},
	exception.UnknownRefund:       {"未知退款", "unknown refund", "unknown refunds"},
	exception.RefundFailed:        {"退款异常", "refund that needs a person", "refunds that need a person"},
	exception.PayoutStuck:         {"出款待处理", "payout that needs a person", "payouts that need a person"},
	exception.PayoutReturned:      {"出款被退回", "returned payout", "returned payouts"},
	exception.PayoutAfterReversal: {"冲正后出款到账", "payout after its reversal", "payouts after their reversals"},
	exception.SupplierShort:       {"渠道账户余额不足", "supplier account short of funds", "supplier accounts short of funds"},
	exception.NotifyExhausted:     {"通知失败", "notification out of attempts", "notifications out of attempts"},
	exception.StuckPaying:         {"支付无结果", "payment without a result", "payments without a result"},
	exception.CompensationDead:    {"补偿失败", "dead compensation", "dead compensations"},
	exception.StockShort:          {"库存不足", "stock shortage", "stock shortages"},
	exception.BooksDiffer:         {"账实不符", "difference in the books", "differences in the books"},
	exception.Complaint:           {"买家投诉", "complaint", "complaints"},
	exception.UnknownEvent:        {"未知类型的消息", "message of an unknown type", "messages of an unknown type"},
	exception.SubscriptionExhausted: {
		"订阅方通知失败", "notification of a subscriber out of attempts",
		"notifications of subscribers out of attempts",
	},
	exception.DecryptFailed: {"无法解密的消息", "message that cannot be decrypted", "messages that cannot be decrypted"},
	exception.Malformed:     {"内容不完整的消息", "malformed message", "malformed messages"},
}

// subjects are the alert subjects that are not names: parts of a node's fingerprint, and faults
// of ours (package notify).
var subjects = map[string]text.Text{
	"orders": {ZH: "订单", EN: "orders"},
	"keys":   {ZH: "主密钥", EN: "the master keys"},
	"ranges": {ZH: "BACKSTOP_NOTIFY_ALLOW_CIDRS", EN: "BACKSTOP_NOTIFY_ALLOW_CIDRS"},
	"build":  {ZH: "程序版本", EN: "the version"},
	"shadow": {ZH: "BACKSTOP_SHADOW", EN: "BACKSTOP_SHADOW"},
	"locked": {
		ZH: "密钥无法解开（检查 BACKSTOP_MASTER_KEY，必要时重新 apply 该密钥）",
		EN: "secrets do not open (check BACKSTOP_MASTER_KEY, or apply the secret again)",
	},
	"no_channel": {ZH: "程序版本缺少该通知通道（升级节点）", EN: "this version lacks the channel (upgrade the node)"},
	"blocked_here": {
		ZH: "本节点禁止访问该地址（统一各节点的 BACKSTOP_NOTIFY_ALLOW_CIDRS）",
		EN: "the address is blocked on this node (give all nodes the same BACKSTOP_NOTIFY_ALLOW_CIDRS)",
	},
}

var (
	tRunbook  = text.Text{ZH: "处置手册：%s", EN: "Runbook: %s"}
	tWrongKey = text.Text{
		ZH: "%s：没有当前使用的主密钥，无法接收回调和发送通知；请补上密钥并重启",
		EN: "%s: it does not have the master key in use; give it the key and restart it",
	}
	tDiffer    = text.Text{ZH: "%s：各节点不一致，详见各节点 /readyz 与日志", EN: "%s: running nodes differ; /readyz and the log of each node show how"}
	tPaused    = text.Text{ZH: "%s：已由操作员暂停，恢复前不再处理", EN: "%s: paused by an operator; nothing is processed until somebody resumes it"}
	tRunsAgain = text.Text{ZH: "%s：已恢复处理", EN: "%s: resumed"}
	tAgree     = text.Text{ZH: "%s：已一致", EN: "%s: all nodes agree again"}
	tFault     = text.Text{
		ZH: "%s：%s 条通知在等待，不计入重试次数；原因消除后自动发出",
		EN: "%s: %s notifications wait; no attempt is counted, and they are sent once the cause is gone",
	}
	tFaultOver = text.Text{ZH: "%s：已恢复，最多时 %s 条在等待", EN: "%s: over; at most %s notifications waited"}
	tStuck     = text.Text{
		ZH: "%s 笔订单%s第 3 次查单后超过 30 分钟仍无结果；会继续自动查单，请到渠道侧核实",
		EN: "%s orders%s have no result more than 30 minutes after the third query. Queries continue; check the orders with the supplier",
	}
	tStuckOver = text.Text{ZH: "已无卡单，最多时 %s 笔%s", EN: "No order is stuck any more; at most %s%s were"}
	tFiring    = text.Text{ZH: "%s：当前 %s，阈值 %s", EN: "%s: now %s, limit %s"}
	tDown      = text.Text{ZH: "%s：不可用", EN: "%s: cannot be used"}
	tUp        = text.Text{ZH: "%s：已恢复", EN: "%s: healthy again"}
	tResolved  = text.Text{ZH: "%s：已恢复，最差 %s", EN: "%s: over, the worst was %s"}
	tHappened  = text.Text{ZH: "%s：%d 次", EN: "%s: %d times"}
	tProposals = text.Text{ZH: "%d 份提议等待第二人复核%s，最久 %s", EN: "%d%s waiting for a second person, the oldest for %s"}
	tDue       = text.Text{
		ZH: "%s%s：请在此之前在渠道页面举证，并在此处登记",
		EN: "%s%s: send the evidence on the supplier's pages before then, and record it here",
	}
	tTest     = text.Text{ZH: "测试告警：收到即表示此目标可用。发出者：%s", EN: "Test alert: if you read this, the target works. Sent by %s"}
	tTested   = text.Text{ZH: "测试告警", EN: "a test alert"}
	tHead     = text.Text{ZH: "审计链头（已签名）", EN: "the signed head of the audit"}
	tHeadKeep = text.Text{
		ZH: "审计第 %d 条。请保存本消息：日后若链条被重写或截短，可据此查出。",
		EN: "Row %d of the audit. Keep this message: it shows if the chain is ever rewritten or cut short.",
	}
	tAmounts = text.Text{ZH: "（%s）", EN: " (%s)"}
	tMore    = text.Text{ZH: "另有 %d 条", EN: "and %d more"}
)
