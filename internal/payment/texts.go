package payment

import "backstop/internal/base/text"

// Texts are the texts that rows store by code and arguments.
var Texts text.Codes

var (
	stepRepeat       = Texts.New("payment.repeat", text.Text{ZH: "同一条消息已经处理过", EN: "the same message was accepted before"})
	stepNoMove       = Texts.New("payment.no_move", text.Text{ZH: "不影响任何订单", EN: "affects no order"})
	stepNoOrder      = Texts.New("payment.no_order", text.Text{ZH: "没有订单用编号 %s", EN: "no order has the reference %s"})
	stepOrder        = Texts.New("payment.order", text.Text{ZH: "已找到", EN: "found"})
	stepAccount      = Texts.New("payment.account", text.Text{ZH: "%s 是 %s，应为 %s", EN: "%s is %s, not %s"})
	stepOurs         = Texts.New("payment.ours", text.Text{ZH: "消息属于我方账户", EN: "the message is for our account"})
	stepNoRefund     = Texts.New("payment.no_refund", text.Text{ZH: "没有已知的退款", EN: "no refund of ours is known"})
	stepRefundKnown  = Texts.New("payment.refund_known", text.Text{ZH: "这笔退款已知，没有新内容", EN: "a known refund; nothing new"})
	stepRefundNoted  = Texts.New("payment.refund_noted", text.Text{ZH: "已记录；没有资金变动", EN: "noted; no money moved"})
	stepRefundStored = Texts.New("payment.refund_stored",
		text.Text{ZH: "已记录；收到这笔付款后入账", EN: "stored; booked once its payment is known"})
	stepRefundBooked = Texts.New("payment.refund_booked",
		text.Text{ZH: "在渠道侧退款：按这笔付款的全部已知退款入账", EN: "refunded at the supplier: booked by all that is known about the payment"})
	stepPayoutQueried = Texts.New("payment.payout_asked", text.Text{ZH: "是我方的出款，正向渠道查询结果", EN: "our payout: the supplier is being queried"})
	stepRefundQueried = Texts.New("payment.refund_asked", text.Text{ZH: "是我方的退款，正向渠道查询结果", EN: "our refund: the supplier is being queried"})
	stepNot           = Texts.New("payment.not", text.Text{ZH: "%s，应为 %s", EN: "%s, not %s"})
	stepAmount        = Texts.New("payment.amount", text.Text{ZH: "与订单一致", EN: "as ordered"})
	stepSettled       = Texts.New("payment.settled", text.Text{ZH: "%s 已结清另一笔订单", EN: "%s has settled another order"})
	stepSameTrade     = Texts.New("payment.same_trade", text.Text{ZH: "已由同一渠道流水号支付", EN: "paid already by the same trade number"})
	stepMayPay        = Texts.New("payment.may_pay", text.Text{ZH: "可以变为“已支付”", EN: "may become paid"})
	stepException     = Texts.New("payment.exception", text.Text{ZH: "这笔款已是异常", EN: "the money is already an exception"})
	stepDecided       = Texts.New("payment.decided", text.Text{ZH: "这笔款已由复核决定处理完毕", EN: "an approval has already dealt with this money"})
	stepPaidBy        = Texts.New("payment.paid_by", text.Text{ZH: "已由渠道流水号 %s 支付", EN: "paid already by trade number %s"})
	stepLate          = Texts.New("payment.late", text.Text{ZH: "“%s”：关单后到账", EN: "%s: the payment arrived late"})
	stepNothing       = Texts.New("payment.nothing", text.Text{ZH: "不改变已结束的订单", EN: "does not change an order that has ended"})
	stepFailed        = Texts.New("payment.failed", text.Text{ZH: "最后一次支付尝试已确定失败", EN: "the last attempt definitely failed"})
	stepClosed        = Texts.New("payment.closed", text.Text{ZH: "渠道关闭了最后一次支付尝试", EN: "the supplier closed the last attempt"})
	stepPayAgain      = Texts.New("payment.pay_again", text.Text{
		ZH: "这次支付尝试已关闭；订单仍可再次支付，直至超时",
		EN: "this attempt is closed; the order may be paid again until it expires",
	})
	stepOther     = Texts.New("payment.other", text.Text{ZH: "另一次支付尝试仍可能成功", EN: "another attempt may still succeed"})
	stepNoTrade   = Texts.New("payment.no_trade", text.Text{ZH: "没有由渠道流水号 %s 支付的订单", EN: "no order was paid by the trade number %s"})
	stepDispute   = Texts.New("payment.dispute", text.Text{ZH: "买家对这笔付款提出争议：%s，%s", EN: "the buyer disputes the payment: %s, %s"})
	stepComplaint = Texts.New("payment.complaint",
		text.Text{ZH: "买家投诉 %s：请在渠道的页面上处理", EN: "a buyer's complaint %s: answer it on the supplier's pages"})
	stepUnknown = Texts.New("payment.unknown", text.Text{ZH: "%s 不在适配器已知的类型中", EN: "%s is not a word that the adapter knows"})
)
