package orders

import "backstop/internal/base/text"

// Texts of this page.
var (
	tExpires      = text.Text{ZH: "到期", EN: "Expires"}
	tMoneyCheck   = text.Text{ZH: "资金核对", EN: "Money check"}
	tDifference   = text.Text{ZH: "差额", EN: "Difference"}
	tHeldTitle    = text.Text{ZH: "渠道有、账上没有", EN: "At the supplier, not in the books"}
	tTakenTitle   = text.Text{ZH: "账上有、渠道已退或在争议", EN: "In the books, refunded or disputed at the supplier"}
	tItems        = text.Text{ZH: "商品", EN: "Items"}
	tCloseReason  = text.Text{ZH: "关闭原因", EN: "Close reason"}
	tAttemptsList = text.Text{ZH: "通知", EN: "Notifications"}
	tLedgerNone   = text.Text{ZH: "这笔订单还没有记账。", EN: "Nothing is booked for this order."}
	tJournal      = text.Text{ZH: "凭证", EN: "Journal"}
	tLedgerSum    = text.Text{ZH: "合计", EN: "Sum"}
)

// asideRows is how many rows the lists beside a story have.
const asideRows = 20

// transfersShown is how many of an order's transfers are open at once.
const transfersShown = 3
