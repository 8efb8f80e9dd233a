package pages

import "backstop/internal/base/text"

// Texts of this page.
var (
	tExpires      = text.Text{ZH: "到期", EN: "Expires"}
	tBecame       = text.Text{ZH: "状态", EN: "Status"}
	tVersionN     = text.Text{ZH: "版本 %d", EN: "version %d"}
	tMoneyCheck   = text.Text{ZH: "资金核对", EN: "Money check"}
	tDifference   = text.Text{ZH: "差额", EN: "Difference"}
	tHeldTitle    = text.Text{ZH: "渠道有、账上没有", EN: "At the supplier, not in the books"}
	tTakenTitle   = text.Text{ZH: "账上有、渠道已退或在争议", EN: "In the books, refunded or disputed at the supplier"}
	tItems        = text.Text{ZH: "商品", EN: "Items"}
	tCloseReason  = text.Text{ZH: "关闭原因", EN: "Close reason"}
	tAttemptsList = text.Text{ZH: "通知", EN: "Notifications"}
	tLedgerNone   = text.Text{ZH: "这笔订单还没有记账。", EN: "Nothing is booked for this order."}
	tDebit        = text.Text{ZH: "借", EN: "Debit"}
	tCredit       = text.Text{ZH: "贷", EN: "Credit"}
	tJournal      = text.Text{ZH: "凭证", EN: "Journal"}
	tRef          = text.Text{ZH: "依据", EN: "Reference"}
	tLedgerSum    = text.Text{ZH: "合计", EN: "Sum"}
)
