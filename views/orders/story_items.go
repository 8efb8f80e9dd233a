package orders

import "backstop/internal/base/text"

// Texts of this page.
var (
	tOrderMade    = text.Text{ZH: "下单", EN: "Order created"}
	tVerified     = text.Text{ZH: "验证通过 %d/%d", EN: "%d of %d checks passed"}
	tSameAs       = text.Text{ZH: "与第 1 次的差异：%d 行", EN: "Lines that differ from the first: %d"}
	tCompare      = text.Text{ZH: "并排比较", EN: "Compare side by side"}
	tWholeRaw     = text.Text{ZH: "查看全部", EN: "Show all"}
	tFrozenBody   = text.Text{ZH: "发给商户的正文", EN: "Body sent to the merchant"}
	tExpected     = text.Text{ZH: "期望与实际", EN: "Expected and received"}
	tExcSettled   = text.Text{ZH: "异常结束", EN: "Exception closed"}
	tNotifMade    = text.Text{ZH: "写入通知", EN: "Notification created"}
	tNotifSkipped = text.Text{
		ZH: "不通知：没有接收此类事件的地址，商户已关闭此类事件，或处于影子模式",
		EN: "Not sent: no endpoint accepts events of this type, the merchant has switched them off, or it was shadow mode",
	}
	tExcOpened = text.Text{ZH: "登记异常", EN: "Exception opened"}
)
