package sweep

import "backstop/internal/base/text"

// Texts are the texts that rows store by code and arguments.
var Texts text.Codes

var (
	figuresDiffer = Texts.New("sweep.figures", text.Text{ZH: "%s 项统计与记录不符", EN: "%s figures differ"})
	figuresFixed  = Texts.New("sweep.corrected", text.Text{ZH: "%s 项统计与记录不符，已更正", EN: "%s figures differed and were corrected"})
	moneyDiffers  = Texts.New("sweep.money", text.Text{
		ZH: "商户 %[1]s：按记录 %[2]s 笔、%[3]s，按统计 %[4]s 笔、%[5]s",
		EN: "merchant %s: %s orders, %s by the rows, %s orders, %s by the counter",
	})
	ordersDiffer = Texts.New("sweep.orders", text.Text{
		ZH: "%[1]s 起 %[2]s 分钟：按记录 %[3]s 笔（%[4]s），已通知 %[5]s 笔（%[6]s）；按统计 %[7]s 笔（%[8]s），已通知 %[9]s 笔（%[10]s）",
		EN: "%[2]s minutes from %[1]s: %[3]s orders (%[4]s), %[5]s notified (%[6]s) by the rows, %[7]s orders (%[8]s), %[9]s notified (%[10]s) by the counters",
	})
	rowsDiffer     = Texts.New("sweep.violations", text.Text{ZH: "%s 处不符", EN: "%s violations"})
	namedOrder     = Texts.New("sweep.order", text.Text{ZH: "订单 %s", EN: "order %s"})
	namedTrade     = Texts.New("sweep.trade", text.Text{ZH: "渠道流水号 %s", EN: "trade number %s"})
	namedAccount   = Texts.New("sweep.account", text.Text{ZH: "账户 %s", EN: "account %s"})
	namedCallback  = Texts.New("sweep.callback", text.Text{ZH: "回调 %s", EN: "callback %s"})
	namedException = Texts.New("sweep.exception", text.Text{ZH: "异常 %s", EN: "exception %s"})
	namedApproval  = Texts.New("sweep.approval", text.Text{ZH: "提议 %s", EN: "approval %s"})
	namedEntry     = Texts.New("sweep.entry", text.Text{ZH: "分录 %s", EN: "ledger entry %s"})
	namedPayout    = Texts.New("sweep.payout", text.Text{ZH: "出款 %s", EN: "payout %s"})
)
