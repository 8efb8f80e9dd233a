package overview

import (
	"cmp"
	"strconv"

	"backstop/internal/base/text"
	"backstop/internal/sandbox"
	"backstop/views/panel"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// GuideData is the first steps of an installation.
type GuideData struct {
	sandbox.State
	May        bool // whether the viewer may take them
	Production bool
	Asked      bool // a sandbox is wanted although this is production
	// APIKey is the new key of the sandbox's merchant, shown once; "" = none was made now.
	APIKey string
	// Callback is the signed callback for the newest order; "" = none is due.
	Callback string
	Key      string // of the forms that make new keys
	// CallbackURL is the URL for suppliers, without their code.
	CallbackURL string
	APIURL      string
	Example     Example // zero = its keys were not made now
}

// orderCall creates an order of the sandbox.
func (d GuideData) orderCall() string {
	return `curl -H "Authorization: Bearer $SANDBOX_KEY" -H 'Content-Type: application/json' \` + "\n" +
		`  -d '{"out_trade_no":"'"$(date +%s)"'","amount":` + strconv.Itoa(sandbox.Amount) + `,"currency":"` + sandbox.Currency +
		`","supplier":"` + sandbox.Code + `","subject":"Telescope"}' \` + "\n  " + d.APIURL + "/api/v1/orders"
}

// callbackCall sends the signed callback for the newest order.
func (d GuideData) callbackCall() string {
	return `curl -d '` + d.Callback + `' ` + d.CallbackURL + sandbox.Code
}

// guideLive keeps the page current.
func guideLive(p *ui.Page) templ.Attributes {
	return templ.Attributes{
		"class": "live", "role": "status", "data-live": "/_/live?topics=guide&lang=" + p.Language, "data-state": "still",
		"data-word-live": p.T(text.Live), "data-word-delayed": p.T(text.Delayed), "data-word-offline": p.T(text.Offline),
		"data-word-paused": p.T(text.PausedAt),
	}
}

// says is how far the steps lead.
func (d GuideData) says(p *ui.Page) string {
	if d.Delivered {
		return p.T(tArrived)
	}
	return p.T(tWelcomeHow)
}

// steps are the first steps, each with what is to be done.
func (d GuideData) steps(p *ui.Page) []panel.Step {
	return []panel.Step{
		{Title: p.T(tStepMake), Done: d.Made, How: d.stepMake(p)},
		{Title: p.T(tStepOrder), Done: d.Created, How: d.stepOrder(p)},
		{Title: p.T(tStepCallback), Done: d.Paid, How: d.stepCallback(p)},
		{Title: p.T(tStepArrive), Done: d.Delivered, How: d.stepArrive(p)},
	}
}

// sayWith is a sentence that leads to what is behind it.
func sayWith(p *ui.Page, said text.Text, then templ.Component) templ.Component {
	return panel.Line("", panel.Text(p.T(said)), then)
}

func (d GuideData) orderLink() templ.SafeURL { return templ.URL("/orders/" + d.OrderNo) }

func (d GuideData) stepMake(p *ui.Page) templ.Component {
	switch {
	case d.Made:
		return ui.If(d.Sandbox, sayWith(p, tMadeAs, ui.Styled("mono", sandbox.Code)))
	case !d.May:
		return ui.Say(p.T(tStepAdmin))
	case d.Production:
		return sayWith(p, tStepProduction, panel.Anchor("/guide?sandbox=1", p.T(tAskSandbox)))
	}
	return templ.Join(ui.Say(p.T(tStepMakeHow)), guideForm(p, "sandbox", "guide sandbox", tMake, ""))
}

func (d GuideData) stepOrder(p *ui.Page) templ.Component {
	switch {
	case !d.May || !d.Made && !d.Sandbox:
		return templ.NopComponent
	case d.Sandbox:
		needs := sayWith(p, tStepCurl, panel.Anchor("/guide", p.T(text.FirstSteps)))
		return templ.Join(guideForm(p, "order", "guide order "+d.OrderNo, tCreate, ""), orCurl(p, needs, d.orderCall()))
	}
	return templ.Join(ui.Say(p.T(tStepCall)), ui.Copied(p, firstCall(d.APIURL)))
}

func (d GuideData) stepCallback(p *ui.Page) templ.Component {
	switch {
	case !d.May || d.Paid:
	case d.Callback != "":
		order := panel.Linked(d.orderLink(), templ.Attributes{"class": "mono"}, panel.Text(d.OrderNo))
		return templ.Join(sayWith(p, tStepSigned, order), guideForm(p, "callback", "guide callback "+d.OrderNo, tSend, ""),
			orCurl(p, ui.Say(p.T(tStepSignature)), d.callbackCall()))
	case d.Made && !d.Sandbox:
		return sayWith(p, tStepAddress, ui.Styled("mono", d.CallbackURL))
	}
	return templ.NopComponent
}

func (d GuideData) stepArrive(p *ui.Page) templ.Component {
	if d.Paid && d.OrderNo != "" {
		return panel.Line("", ui.ButtonLink(p, string(d.orderLink()), ui.Act{Label: tOpenStory}))
	}
	return ui.Say(p.T(tStepArriveHow))
}

// ownSteps are what comes after the sandbox: a supplier and a merchant of one's own.
func (d GuideData) ownSteps(p *ui.Page) []templ.Component {
	all := []templ.Component{ui.Say(p.T(tStepApply)), ui.Copied(p, cmp.Or(d.Example, noKeys).yaml())}
	if d.Example != (Example{}) {
		all = append(all, ui.Say(p.T(tKeysShown)))
	} else if d.May {
		all = append(all, ui.Say(p.T(tKeysHow)), guideForm(p, "keys", d.Key, tFillKeys, ""))
	}
	return append(all, sayWith(p, tStepAddress, ui.Styled("mono", d.CallbackURL+"first")), ui.Say(p.T(tOwnDocs)))
}

// Texts of the first steps.
var (
	tGuideHow    = text.Text{ZH: "完成的步骤会自动打勾", EN: "Completed steps are ticked automatically"}
	tWelcome     = text.Text{ZH: "从这里开始", EN: "Start here"}
	tWelcomeHow  = text.Text{ZH: "四步走完一笔：下单、支付成功、商户收到通知。", EN: "Four steps to the first payment whose merchant is notified."}
	tArrived     = text.Text{ZH: "第一条通知已送达。", EN: "The first notification was delivered."}
	tStepMake    = text.Text{ZH: "创建沙箱商户和渠道", EN: "Create a sandbox merchant and supplier"}
	tStepMakeHow = text.Text{
		ZH: "商户的接收端就在本程序内，不向外发送任何请求；密钥随机生成。",
		EN: "The merchant's endpoint is inside this program, so nothing is sent outside. The keys are random.",
	}
	tStepAdmin      = text.Text{ZH: "由管理员完成。", EN: "An admin takes these steps."}
	tStepProduction = text.Text{ZH: "这是生产环境：请直接接入自己的渠道和商户。", EN: "This is production: connect your own supplier and merchant."}
	tAskSandbox     = text.Text{ZH: "仍要使用沙箱", EN: "Use a sandbox nevertheless"}
	tAskedTitle     = text.Text{ZH: "生产环境中的沙箱", EN: "A sandbox in production"}
	tAskedHow       = text.Text{ZH: "沙箱订单的金额会计入本环境的报表和账本。", EN: "Sandbox orders count in the figures and the ledger of this installation."}
	tMadeAs         = text.Text{ZH: "代码均为", EN: "Code of both:"}
	tMake           = text.Text{ZH: "创建沙箱", EN: "Create the sandbox"}
	tCreate         = text.Text{ZH: "创建订单（19.99 元）", EN: "Create an order of 19.99 CNY"}
	tSend           = text.Text{ZH: "发送已签名的回调", EN: "Send the signed callback"}
	tDismiss        = text.Text{ZH: "收起引导", EN: "Dismiss the guide"}
	tOrCurl         = text.Text{ZH: "或用 curl", EN: "Or with curl"}
	tStepCurl       = text.Text{
		ZH: "SANDBOX_KEY 是沙箱商户的 API 密钥，只在生成时显示一次；新密钥见",
		EN: "SANDBOX_KEY is the API key of the sandbox merchant, shown once when it is created. For a new one, see",
	}
	tStepSigned    = text.Text{ZH: "渠道报告支付成功，订单", EN: "The supplier reports the payment of the order"}
	tStepSignature = text.Text{
		ZH: "签名由沙箱渠道的密钥计算，只对这笔订单有效：",
		EN: "The signature is made with the sandbox supplier's key and is valid for this order only:",
	}
	tStepArrive    = text.Text{ZH: "查看到达结果", EN: "See it arrive"}
	tStepArriveHow = text.Text{
		ZH: "订单详情依次显示：回调、验签、状态变化、商户通知。",
		EN: "The order's story shows the callback, each check, the change of state, and the notification.",
	}
	tOpenStory = text.Text{ZH: "打开订单详情", EN: "Open its story"}
	tKeyTitle  = text.Text{ZH: "沙箱商户的 API 密钥", EN: "The API key of the sandbox merchant"}
	tKeyOnce   = text.Text{
		ZH: "只显示这一次：系统只保存它的哈希。下面的命令从环境变量读取，请先执行：",
		EN: "It is shown only once, because only its hash is stored. The commands below read it from the environment, so run this first:",
	}
	tKeyGone = text.Text{
		ZH: "密钥只在生成时显示一次。生成新密钥后，旧密钥立即失效。",
		EN: "The key was shown once, when it was created. A new key replaces it at once.",
	}
	tNewKey   = text.Text{ZH: "生成新密钥", EN: "Create a new key"}
	tFillKeys = text.Text{ZH: "生成密钥填入", EN: "Fill in new keys"}
	tKeysHow  = text.Text{
		ZH: "“…”处需填密钥。在此生成的密钥不会保存，只显示这一次。",
		EN: "Keys belong where “…” is. Those made here are not stored, so they are shown only once.",
	}
	tKeysShown = text.Text{
		ZH: "其中的密钥是新生成的，没有保存，只显示这一次：请现在复制。",
		EN: "Its keys are new, are not stored and are shown only once: copy them now.",
	}
	tOwn     = text.Text{ZH: "接入自己的渠道和商户", EN: "Connect your own"}
	tOwnDocs = text.Text{
		ZH: "文档：docs/suppliers.md（各渠道）、docs/merchants.md（商户验签）、docs/apply.md（全部字段）。",
		EN: "Read on: docs/suppliers.md for each kind of supplier, docs/merchants.md for merchants, docs/apply.md for every field.",
	}
	tStepApply = text.Text{
		ZH: "写入 first.yaml，运行 backstop apply first.yaml，两秒内生效：",
		EN: "Write first.yaml and run backstop apply first.yaml; it takes effect within two seconds:",
	}
	tStepOrder    = text.Text{ZH: "创建订单", EN: "Create an order"}
	tStepCall     = text.Text{ZH: "把商户的 api_key 放进 API_KEY，然后调用：", EN: "Put the merchant's api_key into API_KEY and call:"}
	tStepCallback = text.Text{ZH: "发送已签名的回调", EN: "Send a signed callback"}
	tStepAddress  = text.Text{ZH: "把这个地址交给渠道，末尾是渠道代码：", EN: "Give this address, which ends in the supplier's code, to the supplier:"}
	tStepDemo     = text.Text{ZH: "或者先看演示：停止服务，运行", EN: "Or try the demo first: stop the server and run"}
)
