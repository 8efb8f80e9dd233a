package alert

import "backstop/internal/compensation"

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
	SuccessRate:     {"通知成功率过低", "too few notifications succeed"},
	ErrorRate:       {"通知失败率过高", "too many notifications run out of attempts"},
	AnswerTime:      {"商户平均响应过慢", "merchants answer too slowly on average"},
	SlowMerchant:    {"商户响应慢", "a merchant answers slowly"},
	SupplierSilent:  {"供应商回调静默", "a supplier is silent"},
	DatabaseDown:    {"数据库不可用", "the database cannot be used"},
	RedisDown:       {"Redis 不可用", "Redis cannot be used"},
	ClockSkew:       {"时钟偏差过大", "clocks differ too much"},
	ExceptionOpened: {"新的异常", "new exceptions"},
	NotifyExhausted: {"通知重试用尽", "notifications ran out of attempts"},
	BreakerOpened:   {"熔断器断开", "a breaker opened"},
	BreakerClosed:   {"熔断器合上", "a breaker closed"},
	TargetDisabled:  {"通知地址已停用（410）", "an address was disabled (410)"},
	CountersDiffer:  {"统计与明细不符，已更正", "figures did not agree with their rows, and were put right"},
}

// kindName is a kind of exceptions, one and many of them.
type kindName struct{ zh, one, many string }

var kindNames = map[string]kindName{
	compensation.AmountMismatch:        {"金额不符", "amount mismatch", "amount mismatches"},
	compensation.CurrencyMismatch:      {"币种不符", "currency mismatch", "currency mismatches"},
	compensation.AccountMismatch:       {"收款账户不符", "account mismatch", "account mismatches"},
	compensation.DuplicatePayment:      {"重复付款", "duplicate payment", "duplicate payments"},
	compensation.LatePayment:           {"关单后到账", "late payment", "late payments"},
	compensation.UnknownOrder:          {"未知订单的付款", "payment for an unknown order", "payments for unknown orders"},
	compensation.DisputeOpened:         {"拒付争议", "dispute", "disputes"},
	compensation.UnknownRefund:         {"未知退款", "unknown refund", "unknown refunds"},
	compensation.NotifyExhausted:       {"通知失败", "notification out of attempts", "notifications out of attempts"},
	compensation.StuckPaying:           {"支付无结果", "payment without a result", "payments without a result"},
	compensation.UnknownEvent:          {"未知类型的消息", "message of an unknown type", "messages of an unknown type"},
	compensation.SubscriptionExhausted: {"订阅方通知失败", "notification of a subscriber out of attempts", "notifications of subscribers out of attempts"},
	compensation.DecryptFailed:         {"无法解密的消息", "message that cannot be decrypted", "messages that cannot be decrypted"},
	compensation.Malformed:             {"内容不完整的消息", "malformed message", "malformed messages"},
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
	ExceptionOpened: "/exceptions?state=needs",
	NotifyExhausted: "/exceptions?kind=notify_exhausted",
	BreakerOpened:   "/",
	BreakerClosed:   "/",
	TargetDisabled:  "/notifications",
	CountersDiffer:  "/",
}

var (
	wordFiring   = word{"%s：当前 %s，阈值 %s", "%s: now %s, limit %s"}
	wordDown     = word{"%s：不可用", "%s: cannot be used"}
	wordUp       = word{"%s：已恢复", "%s: well again"}
	wordResolved = word{"%s：已恢复，最差 %s", "%s: over, the worst was %s"}
	wordHappened = word{"%s：%d 次", "%s: %d times"}
	wordTest     = word{"测试告警：收到即表示此目标可用。发出者：%s", "A test alert: whoever reads it knows that this target works. Sent by %s"}
	wordTested   = word{"测试告警", "a test alert"}
	wordAmounts  = word{"（%s）", " (%s)"}
	wordComma    = word{"，", ", "}
	wordMore     = word{"另有 %d 条", "and %d more"}
)
