package alert

import "backstop/internal/exception"

// word is one text in both languages.
type word struct{ zh, en string }

func (s Style) say(w word) string {
	if s.Language == "en" {
		return w.en
	}
	return w.zh
}

// Title is what a rule is about, in "zh" or "en".
func Title(rule, language string) string {
	if w, ok := ruleNames[rule]; ok {
		return Style{Language: language}.say(w)
	}
	return rule
}

var ruleNames = map[string]word{
	QueueLength:     {"队列过长", "a queue is too long"},
	SuccessRate:     {"通知尝试成功率过低", "too few attempts to notify succeed"},
	ErrorRate:       {"通知失败率过高", "too many notifications run out of attempts"},
	AnswerTime:      {"商户平均响应过慢", "merchants answer too slowly on average"},
	SlowMerchant:    {"商户响应慢", "a merchant answers slowly"},
	SupplierSilent:  {"渠道回调静默", "a supplier is silent"},
	DatabaseDown:    {"数据库不可用", "the database cannot be used"},
	RedisDown:       {"Redis 不可用", "Redis cannot be used"},
	ClockSkew:       {"时钟偏差过大", "clocks differ too much"},
	WrongKey:        {"节点的主密钥不是当前使用的", "a node does not have the master key in use"},
	NodesDiffer:     {"节点之间配置不一致", "nodes differ in what must agree"},
	OurFault:        {"通知因系统自身原因未发出", "notifications wait for a fault of ours"},
	Unreadable:      {"设置无法读取，其通知已暂停", "settings cannot be read, and what they concern waits"},
	ExceptionOpened: {"新的异常", "new exceptions"},
	DisputeOpened:   {"新的拒付争议", "new disputes"},
	NotifyExhausted: {"通知重试用尽", "notifications ran out of attempts"},
	BreakerOpened:   {"商户熔断", "a breaker opened"},
	BreakerClosed:   {"商户恢复", "a breaker closed"},
	TargetDisabled:  {"通知地址已停用（410）", "an address was disabled (410)"},
	CountersDiffer:  {"统计与明细不符，已更正", "figures did not agree with their rows, and were put right"},
}

// kindName is a kind of exceptions, one and many of them.
type kindName struct{ zh, one, many string }

var kindNames = map[string]kindName{
	exception.AmountMismatch:        {"金额不符", "amount mismatch", "amount mismatches"},
	exception.CurrencyMismatch:      {"币种不符", "currency mismatch", "currency mismatches"},
	exception.AccountMismatch:       {"收款账户不符", "account mismatch", "account mismatches"},
	exception.DuplicatePayment:      {"重复付款", "duplicate payment", "duplicate payments"},
	exception.LatePayment:           {"关单后到账", "late payment", "late payments"},
	exception.UnknownOrder:          {"未知订单的付款", "payment for an unknown order", "payments for unknown orders"},
	exception.DisputeOpened:         {"拒付争议", "dispute", "disputes"},
	exception.UnknownRefund:         {"未知退款", "unknown refund", "unknown refunds"},
	exception.NotifyExhausted:       {"通知失败", "notification out of attempts", "notifications out of attempts"},
	exception.StuckPaying:           {"支付无结果", "payment without a result", "payments without a result"},
	exception.UnknownEvent:          {"未知类型的消息", "message of an unknown type", "messages of an unknown type"},
	exception.SubscriptionExhausted: {"订阅方通知失败", "notification of a subscriber out of attempts", "notifications of subscribers out of attempts"},
	exception.DecryptFailed:         {"无法解密的消息", "message that cannot be decrypted", "messages that cannot be decrypted"},
	exception.Malformed:             {"内容不完整的消息", "malformed message", "malformed messages"},
}

// ruleLinks is where in the console people go on.
var ruleLinks = map[string]string{
	QueueLength:     "/",
	SuccessRate:     "/notifications",
	ErrorRate:       "/notifications",
	AnswerTime:      "/notifications",
	SlowMerchant:    "/notifications",
	SupplierSilent:  "/callbacks",
	DatabaseDown:    "/",
	RedisDown:       "/",
	ClockSkew:       "/",
	WrongKey:        "/",
	NodesDiffer:     "/",
	OurFault:        "/notifications",
	Unreadable:      "/",
	ExceptionOpened: "/exceptions?state=needs",
	DisputeOpened:   "/exceptions?kind=dispute_opened",
	NotifyExhausted: "/exceptions?kind=notify_exhausted",
	BreakerOpened:   "/merchants",
	BreakerClosed:   "/merchants",
	TargetDisabled:  "/notifications",
	CountersDiffer:  "/",
}

// subjects are the subjects that are not names: parts of a node's fingerprint, and
// causes of our own (package notify).
var subjects = map[string]word{
	"keys":         {"主密钥", "the master keys"},
	"ranges":       {"BACKSTOP_NOTIFY_ALLOW_CIDRS", "BACKSTOP_NOTIFY_ALLOW_CIDRS"},
	"build":        {"程序版本", "the version"},
	"locked":       {"密钥无法解开（检查 BACKSTOP_MASTER_KEY，必要时重新 apply 该密钥）", "secrets do not open (check BACKSTOP_MASTER_KEY, or apply the secret again)"},
	"no_channel":   {"程序版本缺少该通知通道（升级节点）", "this version lacks the channel (upgrade the node)"},
	"blocked_here": {"本节点禁止访问该地址（统一各节点的 BACKSTOP_NOTIFY_ALLOW_CIDRS）", "the address is blocked on this node (give all nodes the same BACKSTOP_NOTIFY_ALLOW_CIDRS)"},
}

var (
	wordWrongKey  = word{"%s：没有当前使用的主密钥，收不了回调也发不了通知；补上密钥并重启", "%s: it does not have the master key in use; give it the key and restart it"}
	wordDiffer    = word{"%s：各节点不一致，详见各节点 /readyz 与日志", "%s: live nodes differ; /readyz and the log of each node say how"}
	wordAgree     = word{"%s：已一致", "%s: all nodes agree again"}
	wordFault     = word{"%s：%s 条通知在等待，不计入重试次数；原因消除后自动发出", "%s: %s notifications wait, uncounted; they go out once the cause is gone"}
	wordFaultOver = word{"%s：已恢复，最多时 %s 条在等待", "%s: over, at most %s notifications waited"}
	wordFiring    = word{"%s：当前 %s，阈值 %s", "%s: now %s, limit %s"}
	wordDown      = word{"%s：不可用", "%s: cannot be used"}
	wordUp        = word{"%s：已恢复", "%s: well again"}
	wordResolved  = word{"%s：已恢复，最差 %s", "%s: over, the worst was %s"}
	wordHappened  = word{"%s：%d 次", "%s: %d times"}
	wordTest      = word{"测试告警：收到即表示此目标可用。发出者：%s", "A test alert: whoever reads it knows that this target works. Sent by %s"}
	wordTested    = word{"测试告警", "a test alert"}
	wordHead      = word{"审计链头（已签名）", "the signed head of the audit"}
	wordHeadKeep  = word{"审计第 %d 条。请保存本消息：日后若链条被重写或截短，可据此查出。", "Row %d of the audit. Keep this message: it shows if the chain is ever made anew or cut short."}
	wordAmounts   = word{"（%s）", " (%s)"}
	wordMore      = word{"另有 %d 条", "and %d more"}
)
