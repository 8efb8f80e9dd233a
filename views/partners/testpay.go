package partners

import (
	"backstop/internal/base/text"
	"backstop/internal/order"
	"backstop/internal/testmode"
	"backstop/views/panel"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// TestPayData is an order of test mode, and what was just done with it.
type TestPayData struct {
	Order    *order.Order
	Merchant string           // code
	Played   *testmode.Played // nil = nothing
}

// TestPay is the page on which a payment of test mode is made.
func TestPay(p *ui.Page, d TestPayData) templ.Component {
	parts := []templ.Component{ui.Say(p.T(tTestPayHow))}
	switch played := d.Played; {
	case played == nil:
	case played.At.IsZero():
		parts = append(parts, testPlayed(p, played))
	default:
		parts = append(parts, ui.Notice(p, "info", p.T(tTestLateAt, p.Full(played.At.UnixMicro()))))
	}
	parts = append(parts, ui.FactList(p, d.facts(p)...))
	for _, s := range testmode.Scenarios {
		button := ui.Act{Label: scenarios[s].label}
		if s == testmode.Pays {
			button.Class = "primary"
		}
		hidden := ui.Hidden("scenario", string(s))
		parts = append(parts, panel.PostForm("", nil, hidden, ui.Button(p, button), panel.Small(p.T(scenarios[s].how))))
	}
	return panel.Outside(p, "pay-title", tTestPay, tTestPay, append(parts, panel.Languages(""))...)
}

// facts describe the order.
func (d TestPayData) facts(p *ui.Page) []ui.Fact {
	o := d.Order
	return []ui.Fact{
		ui.TextFact(text.Merchant, "mono", d.Merchant),
		ui.TextFact(text.Order, "mono small", o.OrderNo),
		ui.MoneyFact(text.Amount, o.Amount, o.Currency),
		ui.BodyFact(text.State, ui.Pill(p, ui.StateOf(ui.OrderStates, o.Status))),
		ui.TextFact(tTestExpires, "", p.Full(o.ExpiresAt)),
	}
}

// scenarios are the buttons, with what each does.
var scenarios = map[testmode.Scenario]struct{ label, how text.Text }{
	testmode.Pays: {
		text.Text{ZH: "支付", EN: "Pay"},
		text.Text{ZH: "渠道回调：支付成功。", EN: "The supplier reports the payment."},
	},
	testmode.OtherAmount: {
		text.Text{ZH: "支付另一金额", EN: "Pay another amount"},
		text.Text{ZH: "金额差一个最小单位：记为异常，订单不变。", EN: "One minor unit off: an exception, and the order stays as it is."},
	},
	testmode.Late: {
		text.Text{ZH: "延迟支付", EN: "Pay late"},
		text.Text{
			ZH: "订单过期三秒后才回调；两分钟内不过期的，两分钟后回调。",
			EN: "The callback comes three seconds after the order has expired, or in two minutes if that is earlier.",
		},
	},
	testmode.Twice: {
		text.Text{ZH: "回调两次", EN: "Call back twice"},
		text.Text{ZH: "同一条回调发送两次：只入账一次。", EN: "The same callback is sent twice, and booked once."},
	},
	testmode.LostAnswer: {
		text.Text{ZH: "应答丢失", EN: "Lose the answer"},
		text.Text{ZH: "渠道没收到第一次的应答，于是重发。", EN: "The supplier never sees the first answer, and sends the callback again."},
	},
	testmode.Fails: {
		text.Text{ZH: "支付失败", EN: "Fail"},
		text.Text{ZH: "渠道回调：最终失败。", EN: "The supplier reports a final failure."},
	},
}

// Texts of this page.
var (
	tTestPay     = text.Text{ZH: "测试付款", EN: "Test payment"}
	tTestPayHow  = text.Text{ZH: "这是测试模式：没有真实资金。选择这笔付款的结果。", EN: "This is test mode: no money moves. Choose what becomes of the payment."}
	tTestExpires = text.Text{ZH: "过期时间", EN: "Expires"}
	tTestAnswers = text.Text{ZH: "回调的应答", EN: "How the callbacks were answered"}
	tTestLateAt  = text.Text{ZH: "将于 %s 付款", EN: "It will be paid at %s"}
	tTestLost    = text.Text{ZH: "应答已忽略", EN: "the answer was ignored"}
)
