package orders

import (
	"strings"

	"backstop/internal/base/text"
	"backstop/internal/breaker"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/views/ui"
	"backstop/views/wording"
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
		what, then = exceptionText(p, s.Order, w.Exception)
		if a := w.Proposal; a != nil {
			then = p.T(tWhyProposed, p.T(wording.Action(a.Action)), wording.Actor(p, a.MakerName),
				p.RoleNames(s.Approvers(&a.Approval)), p.Full(a.ExpiresAt))
		}
		return what, then
	case console.WhyDead:
		return p.T(tWhyDead, p.T(wording.CompensationKind(w.Dead.Kind)), w.Dead.Attempts),
			p.T(tWhyDeadHow, p.T(wording.CompensationClass(string(w.Dead.LastClass))))
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
			return p.T(tWhyBreaker, wording.BreakerCause(p, w.Breaker.Cause, w.Breaker.Failures)), p.T(tWhyProbing, p.Short(w.At))
		}
		return p.T(tWhyBreaker, wording.BreakerCause(p, w.Breaker.Cause, w.Breaker.Failures)), p.T(tWhyBreakerHow, p.Short(w.At))
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
		return p.T(tWhyAmount, ui.MoneyText(o.Amount, o.Currency), ui.MoneyText(x.Amount, x.Currency)), p.T(tWhyExceptionNow)
	case exception.LatePayment:
		return p.T(tWhyLate, strings.ToLower(p.T(ui.StateOf(ui.OrderStates, string(o.Status)).Label)), ui.MoneyText(x.Amount, x.Currency)),
			p.T(tWhyExceptionNow)
	case exception.DuplicatePayment:
		return p.T(tWhyDuplicate, ui.MoneyText(x.Amount, x.Currency)), p.T(tWhyExceptionNow)
	case exception.DisputeOpened:
		return wording.DisputeText(p, x)
	}
	return p.T(tWhyException, p.T(ui.KindText(x.Kind))), p.T(text.WhyExceptionHow)
}

// Texts of why an order is as it is.
var (
	tWhyProbing = text.Text{
		ZH: "正在用一条通知探测，最迟 %s 有结果：成功则陆续补发，失败则再等一轮。等待不消耗次数，无需人工处理。",
		EN: "A probe is under way, until %s at the latest. If it is delivered, the others follow; if not, they wait another round. Waiting uses no attempt. No action needed now.",
	}
	tWhy          = text.Text{ZH: "当前状态与原因", EN: "Current state and reason"}
	tWhyException = text.Text{ZH: "有一条异常待人工处理：%s", EN: "An exception waits for a decision: %s"}
	tWhyDead      = text.Text{ZH: "补偿失败：%s执行了 %d 次，都没有成功", EN: "Compensation dead: %s, %d tries without success"}
	tWhyDeadHow   = text.Text{
		ZH: "不会再自动执行。最后一次的原因：%s。需要人工处理：排除原因后重新执行。",
		EN: "It does not run again automatically. Last result: %s. A person is needed now: remove the cause, then run it again.",
	}
	tWhyDeadOpen     = text.Text{ZH: "打开补偿任务", EN: "Open the compensation"}
	tWhyExhausted    = text.Text{ZH: "商户没有收到通知，%d 次尝试全部用完", EN: "Merchant not notified: all %d attempts are used up"}
	tWhyExhaustedHow = text.Text{
		ZH: "不会再自动发送。最后一次的原因：%s。请联系商户，修好后补发。",
		EN: "Nothing more is sent automatically. Last result: %s. Contact the merchant, and send again once fixed.",
	}
	tWhyOverdue    = text.Text{ZH: "本应在 %s 继续，但没有", EN: "It should have continued at %s but has not"}
	tWhyOverdueHow = text.Text{
		ZH: "工作进程可能没有运行，或该商户的并发已占满。请查看 /readyz 和队列。",
		EN: "The workers may be down, or all slots of this merchant are in use. Check /readyz and the queues.",
	}
	tWhyQueued    = text.Text{ZH: "通知已写入，等待第 1 次发送", EN: "The notification is stored; the first attempt has not begun"}
	tWhyQueuedHow = text.Text{
		ZH: "%s 起随时发送，共 %d 次；若都失败，约在 %s 用尽，届时才需人工处理。",
		EN: "It is sent at %s or shortly after; %d attempts in all. If all fail, they are used up at about %s; only then is a person needed.",
	}
	tWhyDisabled    = text.Text{ZH: "商户已停用：每次通知都会失败，不会真的发出", EN: "The merchant is disabled: each attempt fails and nothing is sent"}
	tWhyDisabledHow = text.Text{
		ZH: "%s 自动再试第 %d 次，共 %d 次，约在 %s 用尽。需要人工处理：启用商户，或在次数用尽后处理异常。",
		EN: "Attempt %[2]d of %[3]d follows automatically at %[1]s; they are used up at about %[4]s. A person is needed: enable the merchant, or resolve the exception that follows.",
	}
	tWhyOurFault    = text.Text{ZH: "系统自身原因，通知未发出：%s", EN: "Not sent because of a fault on our side: %s"}
	tWhyOurFaultHow = text.Text{
		ZH: "不计入重试次数，每 30 秒自动再试；其他节点能发送时由其发出。需要人工处理：按告警 our_fault 的提示排除原因。",
		EN: "No attempt is counted. It is tried again every 30 seconds, and any node that can send it does. A person is needed: remove the cause as the alert our_fault describes.",
	}
	tWhyNoURL       = text.Text{ZH: "商户已没有可用的通知地址：每次通知都会失败", EN: "The merchant has no usable endpoint left: each attempt fails"}
	tWhyRetrying    = text.Text{ZH: "商户还没有确认：第 %d 次失败（%s）", EN: "The merchant has not confirmed: attempt %d failed (%s)"}
	tWhyRetryingHow = text.Text{
		ZH: "%s 自动发第 %d 次，共 %d 次；若都失败，约在 %s 用尽，届时才需人工处理。",
		EN: "Attempt %[2]d of %[3]d follows automatically at %[1]s. If all fail, they are used up at about %[4]s; only then is a person needed.",
	}
	tWhySending    = text.Text{ZH: "正在通知商户", EN: "The merchant is being notified now"}
	tWhySendingHow = text.Text{
		ZH: "第 %d 次正在进行；若到 %s 没有结果，则重发。无需处理。",
		EN: "Attempt %d is running. If it has no result by %s, it is repeated. No action needed.",
	}
	tWhyPending    = text.Text{ZH: "等待付款", EN: "Waiting for payment"}
	tWhyPendingHow = text.Text{
		ZH: "到 %s 仍未付款就自动关闭，释放库存。",
		EN: "If it is not paid by %s, it is closed automatically and its stock is released.",
	}
	tWhyPaying     = text.Text{ZH: "已发起支付，等待渠道回调", EN: "A payment was started; the supplier's callback is awaited"}
	tWhyPayingHow  = text.Text{ZH: "到 %s 仍无消息就转为关单中。", EN: "If there is no result by %s, it starts to close."}
	tWhyClosing    = text.Text{ZH: "关单中：款项仍可能到账", EN: "Closing: a payment may still arrive"}
	tWhyClosingHow = text.Text{ZH: "到 %s 仍无消息就关闭。", EN: "If there is no result by %s, it is closed."}
	tWhyAsking     = text.Text{ZH: "尚未收到回调，正在向渠道 %s 查单", EN: "No callback yet: %s is being queried"}
	tWhyAskingHow  = text.Text{ZH: "%s 再次查单。", EN: "It is queried again at %s."}
	tWhyUnknown    = text.Text{ZH: "渠道 %s 查单结果不明，订单状态不变", EN: "%s gave no clear answer; the order does not change"}
	tWhyDown       = text.Text{ZH: "渠道 %s 自 %s 起无法访问，查单暂停", EN: "%s has been unreachable since %s; queries wait"}
	tWhyDownHow    = text.Text{
		ZH: "%s 再试；等待期间不计查单次数，收到回调照常处理。",
		EN: "It is tried again at %s. The wait uses no query step, and callbacks are processed as usual.",
	}
	tWhyNoAddress = text.Text{
		ZH: "已结束；没有接收此类事件的地址，商户已关闭此类事件，或处于影子模式，所以没有通知",
		EN: "Completed; no endpoint accepts events of this type, the merchant switched them off, or it was shadow mode",
	}
	tWhyNoAddressHow = text.Text{ZH: "商户可以用 API 查询订单。", EN: "The merchant can query the order through the API."}
	tWhyPastKept     = text.Text{ZH: "已结束；该订单的通知已过保留期，不再保存", EN: "Completed; the notifications of this order are past their retention"}
	tWhyPastKeptHow  = text.Text{ZH: "订单和账目永久保留。无需处理。", EN: "The order and its ledger entries are kept forever. No action needed."}
	tWhyDone         = text.Text{ZH: "已完成，商户已确认", EN: "Completed, merchant notified"}
	tWhyDoneHow      = text.Text{ZH: "无需处理。", EN: "No action needed."}
	tWhyAmount       = text.Text{ZH: "金额不符：应付 %s，实付 %s", EN: "Wrong amount: %[2]s was paid instead of %[1]s"}
	tWhyLate         = text.Text{ZH: "关单后到账：订单%s，之后收到 %s", EN: "Late payment: the order was %s when %s arrived"}
	tWhyDuplicate    = text.Text{ZH: "重复付款：订单已支付，又收到 %s", EN: "Paid twice: the order was already paid when %s arrived"}
	tWhyExceptionNow = text.Text{
		ZH: "不会自动处理，订单状态不变。需要人工处理：决定退款还是入账。",
		EN: "Nothing happens automatically, and the order does not change. A person is needed now: refund the money or accept it.",
	}
	tWhyProposed = text.Text{
		ZH: "%[2]s 已提议“%[1]s”，等待 %[3]s 复核，至 %[4]s 为止；在此之前订单状态不变。",
		EN: "%[2]s has proposed: %[1]s. It waits for %[3]s until %[4]s; the order does not change before.",
	}
	tWhyNext       = text.Text{ZH: "下一步", EN: "Next"}
	tWhyBreaker    = text.Text{ZH: "商户已熔断（%s），通知已挂起", EN: "The merchant's breaker is open (%s); the notification waits"}
	tWhyBreakerHow = text.Text{
		ZH: "%s 自动放行一笔探测：成功则陆续补发，失败则再等一轮。等待不消耗次数，无需人工处理。",
		EN: "At %s one notification is sent as a probe. If it is delivered, the others follow; if not, they wait another round. Waiting uses no attempt. No action needed now.",
	}
	tWhyByHand    = text.Text{ZH: "商户在 %s 被手动熔断，通知已挂起", EN: "An operator opened this merchant's breaker at %s; the notification waits"}
	tWhyByHandHow = text.Text{
		ZH: "不会自动恢复：需人工解除熔断。等待不消耗次数。",
		EN: "It does not continue automatically: an operator must close the breaker. Waiting uses no attempt.",
	}
)
