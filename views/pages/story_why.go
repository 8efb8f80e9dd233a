package pages

import (
	"strings"

	"backstop/internal/base/text"
	"backstop/internal/breaker"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/views/ui"
)

// mood is a sentence of why with its colour and icon.
type mood struct{ kind, icon string }

var moods = map[console.Rule]mood{
	console.WhyException:     {"bad", "triangle-alert"},
	console.WhyDead:          {"bad", "triangle-alert"},
	console.WhyExhausted:     {"bad", "triangle-alert"},
	console.WhyOverdue:       {"bad", "timer"},
	console.WhyDisabled:      {"bad", "ban"},
	console.WhyNoURL:         {"bad", "ban"},
	console.WhyOurFault:      {"bad", "triangle-alert"},
	console.WhyBreaker:       {"warn", "zap-off"},
	console.WhyByHand:        {"bad", "zap-off"},
	console.WhyQueued:        {"info", "clock"},
	console.WhyRetrying:      {"warn", "refresh-cw"},
	console.WhySending:       {"info", "send"},
	console.WhyPending:       {"info", "clock"},
	console.WhyPaying:        {"info", "arrow-right-left"},
	console.WhyClosing:       {"warn", "hourglass"},
	console.WhyAsking:        {"info", "search"},
	console.WhyUnknownAnswer: {"warn", "search"},
	console.WhySupplierDown:  {"bad", "zap-off"},
	console.WhyNoAddress:     {"info", "ban"},
	console.WhyPastKept:      {"info", "scroll-text"},
	console.WhyDone:          {"ok", "circle-check"},
}

// whyTexts are the sentence and what goes on by itself.
func whyTexts(p *ui.Page, s StoryData) (what, then string) {
	w := s.Why
	switch w.Rule {
	case console.WhyException:
		return exceptionText(p, s.Order, w.Exception)
	case console.WhyDead:
		return p.T(tWhyDead, p.T(compensationKind(w.Dead.Kind)), w.Dead.Attempts), p.T(tWhyDeadHow, p.T(compensationClass(string(w.Dead.LastClass))))
	case console.WhyExhausted:
		return p.T(tWhyExhausted, w.Delivery.Attempts), p.T(tWhyExhaustedHow, p.T(ui.ClassText(w.Delivery.LastClass)))
	case console.WhyOverdue:
		return p.T(tWhyOverdue, p.Full(w.At)), p.T(tWhyOverdueHow)
	case console.WhyDisabled:
		return p.T(tWhyDisabled), p.T(tWhyDisabledHow, p.Short(w.At), w.Delivery.Attempts+1, w.Attempts, p.Short(w.LastAt))
	case console.WhyNoURL:
		return p.T(tWhyNoURL), p.T(tWhyDisabledHow, p.Short(w.At), w.Delivery.Attempts+1, w.Attempts, p.Short(w.LastAt))
	case console.WhyOurFault:
		return p.T(tWhyOurFault, p.T(ui.ClassText(w.Fault))), p.T(tWhyOurFaultHow)
	case console.WhyBreaker:
		if w.Breaker.State == breaker.HalfOpen {
			return p.T(tWhyBreaker, breakerCause(p, w.Breaker.Cause, w.Breaker.Failures)), p.T(tWhyProbing, p.Short(w.At))
		}
		return p.T(tWhyBreaker, breakerCause(p, w.Breaker.Cause, w.Breaker.Failures)), p.T(tWhyBreakerHow, p.Short(w.At))
	case console.WhyByHand:
		return p.T(tWhyByHand, p.Full(w.Breaker.ChangedAt)), p.T(tWhyByHandHow)
	case console.WhyQueued:
		return p.T(tWhyQueued), p.T(tWhyQueuedHow, p.Short(w.At), w.Attempts, p.Short(w.LastAt))
	case console.WhyRetrying:
		return p.T(tWhyRetrying, w.Delivery.Attempts, p.T(ui.ClassText(w.Delivery.LastClass))),
			p.T(tWhyRetryingHow, p.Short(w.At), w.Delivery.Attempts+1, w.Attempts, p.Short(w.LastAt))
	case console.WhySending:
		return p.T(tWhySending), p.T(tWhySendingHow, w.Delivery.Attempts, p.Short(w.At))
	case console.WhyPending:
		return p.T(tWhyPending), p.T(tWhyPendingHow, p.Short(w.At))
	case console.WhyPaying:
		return p.T(tWhyPaying), p.T(tWhyPayingHow, p.Short(w.At))
	case console.WhyClosing:
		return p.T(tWhyClosing), p.T(tWhyClosingHow, p.Short(w.At))
	case console.WhyAsking:
		return p.T(tWhyAsking, w.Supplier), p.T(tWhyAskingHow, p.Short(w.At))
	case console.WhyUnknownAnswer:
		return p.T(tWhyUnknown, w.Supplier), p.T(tWhyAskingHow, p.Short(w.At))
	case console.WhySupplierDown:
		return p.T(tWhyDown, w.Supplier, p.Short(w.Breaker.ChangedAt)), p.T(tWhyDownHow, p.Short(w.At))
	case console.WhyNoAddress:
		return p.T(tWhyNoAddress), p.T(tWhyNoAddressHow)
	case console.WhyPastKept:
		return p.T(tWhyPastKept), p.T(tWhyPastKeptHow)
	}
	return p.T(tWhyDone), p.T(tWhyDoneHow)
}

// exceptionText says what came of money that does not fit its order.
func exceptionText(p *ui.Page, o *order.Order, x *exception.Item) (what, then string) {
	switch x.Kind {
	case exception.AmountMismatch:
		return p.T(tWhyAmount, sum(o.Amount, o.Currency), sum(x.Amount, x.Currency)), p.T(tWhyExceptionNow)
	case exception.LatePayment:
		return p.T(tWhyLate, strings.ToLower(p.T(ui.Look(ui.OrderStates, string(o.Status)).Label)), sum(x.Amount, x.Currency)), p.T(tWhyExceptionNow)
	case exception.DuplicatePayment:
		return p.T(tWhyDuplicate, sum(x.Amount, x.Currency)), p.T(tWhyExceptionNow)
	case exception.DisputeOpened:
		return disputeText(p, x)
	}
	return p.T(tWhyException, p.T(ui.KindText(x.Kind))), p.T(text.WhyExceptionHow)
}

// sum is an amount within a sentence: its code stands behind it.
func sum(minor int64, currency string) string { return ui.Amount(minor, currency) + " " + currency }

// Texts of why an order is as it is.
var (
	tWhyProbing      = text.Text{ZH: "正在用一条通知探测，最迟 %s 有结果：成功就陆续补发，失败就再等一轮。等待不消耗次数，现在不需要人。", EN: "A probe is under way, until %s at the latest. If it is taken, the others follow; if not, they wait another round. Waiting uses no attempt, and no person is needed."}
	tWhy             = text.Text{ZH: "现在怎样，为什么", EN: "Where it stands, and why"}
	tWhyException    = text.Text{ZH: "有一条异常等人决定：%s", EN: "An exception waits for a decision: %s"}
	tWhyDead         = text.Text{ZH: "补偿失败：%s执行了 %d 次，都没有成功", EN: "A compensation is dead: %s, %d tries without success"}
	tWhyDeadHow      = text.Text{ZH: "不会再自动执行。最后一次的原因：%s。现在需要人：排除原因后，重新执行。", EN: "It does not run again by itself. The last reason: %s. A person is needed now: remove the cause, then run it again."}
	tWhyDeadOpen     = text.Text{ZH: "打开补偿任务", EN: "Open the compensation"}
	tWhyExhausted    = text.Text{ZH: "商户没有收到通知，%d 次尝试全部用完", EN: "Merchant not notified: all %d attempts are used up"}
	tWhyExhaustedHow = text.Text{ZH: "不会再自动发送。最后一次的原因：%s。请联系商户，修好后补发。", EN: "Nothing more is sent by itself. The last reason: %s. Talk to the merchant and send again once fixed."}
	tWhyOverdue      = text.Text{ZH: "本应在 %s 继续，但没有", EN: "It should have gone on at %s and has not"}
	tWhyOverdueHow   = text.Text{ZH: "工作进程可能没有运行，或该商户的并发已占满。请查看 /readyz 和队列。", EN: "The workers may be down, or this merchant's places are taken. Look at /readyz and at the queues."}
	tWhyQueued       = text.Text{ZH: "通知已写入，等待第 1 次发送", EN: "The notification is written; the first attempt has not begun"}
	tWhyQueuedHow    = text.Text{ZH: "%s 起随时发送，共 %d 次；若都失败，约在 %s 用尽，那时才需要人。", EN: "It goes out at %s or right after, %d attempts in all. If all fail, they are used up at about %s; only then is a person needed."}
	tWhyDisabled     = text.Text{ZH: "商户已停用：每次通知都会失败，不会真的发出", EN: "The merchant is disabled: each attempt fails and nothing is sent"}
	tWhyDisabledHow  = text.Text{ZH: "%s 自动再试第 %d 次，共 %d 次，约在 %s 用尽。需要人：启用商户，或让它用尽后再处理。", EN: "Attempt %[2]d of %[3]d comes at %[1]s by itself; they are used up at about %[4]s. A person is needed: enable the merchant, or settle it once they are used up."}
	tWhyOurFault     = text.Text{ZH: "系统自身原因，通知未发出：%s", EN: "Not sent through a fault of ours: %s"}
	tWhyOurFaultHow  = text.Text{ZH: "不计入重试次数，每 30 秒自动再试；其他节点能发送时由其发出。需要人：按告警 our_fault 的提示排除原因。", EN: "No attempt is counted. It is tried again every 30 seconds, and any node that can send it does. A person is needed: remove the cause, as the alert our_fault says."}
	tWhyNoURL        = text.Text{ZH: "商户已没有可用的通知地址：每次通知都会失败", EN: "The merchant has no usable endpoint left: each attempt fails"}
	tWhyRetrying     = text.Text{ZH: "商户还没有确认：第 %d 次失败（%s）", EN: "The merchant has not confirmed: attempt %d failed (%s)"}
	tWhyRetryingHow  = text.Text{ZH: "%s 自动发第 %d 次，共 %d 次；若都失败，约在 %s 用尽，那时才需要人。", EN: "Attempt %[2]d of %[3]d goes out at %[1]s by itself. If all fail, they are used up at about %[4]s; only then is a person needed."}
	tWhySending      = text.Text{ZH: "正在通知商户", EN: "The merchant is being notified now"}
	tWhySendingHow   = text.Text{ZH: "第 %d 次正在进行；若到 %s 没有结果，就收回重发。不需要做什么。", EN: "Attempt %d is running. If it has no end by %s, it is taken over and sent again. Nothing needs to be done."}
	tWhyPending      = text.Text{ZH: "等待付款", EN: "Waiting for payment"}
	tWhyPendingHow   = text.Text{ZH: "到 %s 仍未付款就自动关闭，释放库存。", EN: "If nobody has paid by %s, it closes by itself and its stock is free."}
	tWhyPaying       = text.Text{ZH: "已发起支付，等待渠道回调", EN: "A payment was started; the supplier's callback is awaited"}
	tWhyPayingHow    = text.Text{ZH: "到 %s 仍无消息就转为关单中。", EN: "If there is no news by %s, it starts to close."}
	tWhyClosing      = text.Text{ZH: "关单中：钱仍可能到账", EN: "Closing: money may still come"}
	tWhyClosingHow   = text.Text{ZH: "到 %s 仍无消息就关闭。", EN: "If there is no news by %s, it is closed."}
	tWhyAsking       = text.Text{ZH: "尚未收到回调，正在向渠道 %s 查单", EN: "No callback yet: %s is asked about the payment"}
	tWhyAskingHow    = text.Text{ZH: "%s 再次查单。", EN: "It is asked again at %s."}
	tWhyUnknown      = text.Text{ZH: "渠道 %s 查单结果不明，订单状态不变", EN: "%s gave no clear answer; the order stays as it is"}
	tWhyDown         = text.Text{ZH: "渠道 %s 自 %s 起无法访问，查单暂停", EN: "%s has been unreachable since %s; queries wait"}
	tWhyDownHow      = text.Text{ZH: "%s 再试；等待期间不计查单次数，收到回调照常处理。", EN: "It is tried again at %s. The wait uses no step, and callbacks are taken as always."}
	tWhyNoAddress    = text.Text{ZH: "已结束；没有接收此类事件的地址，或商户已关闭此类事件，所以没有通知", EN: "It is over; no address takes events of this type, or the merchant switched them off"}
	tWhyNoAddressHow = text.Text{ZH: "商户可以用 API 查询订单。", EN: "The merchant can ask for the order with the API."}
	tWhyPastKept     = text.Text{ZH: "已结束；订单太久，它的通知已过保留期，不再保存", EN: "It is over; the order is so old that its notifications are past their retention"}
	tWhyPastKeptHow  = text.Text{ZH: "订单和账目一直保留。不需要做什么。", EN: "The order and its ledger entries are kept for ever. Nothing needs to be done."}
	tWhyDone         = text.Text{ZH: "一切正常：已结束，商户已确认", EN: "All is well: it is over, and the merchant knows"}
	tWhyDoneHow      = text.Text{ZH: "不需要做什么。", EN: "Nothing needs to be done."}
	tWhyAmount       = text.Text{ZH: "渠道收到的金额不对：应付 %s，实付 %s", EN: "The supplier took a wrong amount: %[2]s instead of %[1]s"}
	tWhyLate         = text.Text{ZH: "钱来晚了：订单已经%s，才收到 %s", EN: "The money came late: the order was %s when %s arrived"}
	tWhyDuplicate    = text.Text{ZH: "付了两次：订单已支付，又收到 %s", EN: "It was paid twice: the order was paid already when %s arrived"}
	tWhyExceptionNow = text.Text{ZH: "不会自动处理，订单的状态不变。现在需要人：决定这笔钱退回还是接受。", EN: "Nothing happens by itself and the order does not change. A person is needed now: to give the money back or to accept it."}
	tWhyNext         = text.Text{ZH: "下一步", EN: "Next"}
	tWhyBreaker      = text.Text{ZH: "商户已熔断（%s），通知已挂起", EN: "The merchant's breaker is open (%s), and the notification waits"}
	tWhyBreakerHow   = text.Text{ZH: "%s 自动放行一笔探测：成功就陆续补发，失败就再等一轮。等待不消耗次数，现在不需要人。", EN: "At %s one notification goes as a probe by itself. If it is taken, the others follow; if not, they wait another round. Waiting uses no attempt, and no person is needed."}
	tWhyByHand       = text.Text{ZH: "商户在 %s 被手动熔断，通知已挂起", EN: "A person opened this merchant's breaker at %s, and the notification waits"}
	tWhyByHandHow    = text.Text{ZH: "不会自动恢复：需人工解除熔断。等待不消耗次数。", EN: "It does not go on by itself: a person must close the breaker. Waiting uses no attempt."}
)
