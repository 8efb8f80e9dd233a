package stripe

import (
	"backstop/internal/base/text"
	"backstop/internal/supplier"
)

// fieldTexts are the labels of the fields of its config, and what to enter.
var fieldTexts = map[string]supplier.FieldText{
	"webhook_secrets": {
		Label: text.Text{ZH: "Webhook 签名密钥", EN: "Webhook signing secrets"},
		Help: text.Text{
			ZH: "端点的签名密钥（以 whsec_ 开头）；轮换期间新旧各一个。",
			EN: "The endpoint's signing secrets (whsec_…). During a rotation, the old one beside the new one.",
		},
	},
	"api_key": {
		Label: text.Text{ZH: "API 密钥", EN: "API key"},
		Help: text.Text{
			ZH: "密钥，或可写 payment intents、可读 charges 的受限密钥；调用 Stripe 时需要。",
			EN: "The secret key, or a restricted key that may write payment intents and read charges. Calls need it.",
		},
	},
	"base_url": {
		Label: text.Text{ZH: "API 地址", EN: "API address"},
		Help: text.Text{
			ZH: "不填为 `https://api.stripe.com`；填其他地址时需要 `api_key`，且必须是 https（本机可用 http），因为应答没有签名。",
			EN: "`https://api.stripe.com` if it is empty; another one needs `api_key`. It must be https, or http on this machine, as answers are not signed.",
		},
	},
	"livemode": {
		Label: text.Text{ZH: "正式模式", EN: "Live mode"},
		Help: text.Text{
			ZH: "端点事件的模式；另一模式的事件不入账。不填则按 `api_key` 判断（`sk_live_`、`sk_test_` 等），没有密钥则不检查。",
			EN: "The mode of the endpoint's events: one of the other mode pays nothing. Unset, it is that of `api_key` (`sk_live_`, `sk_test_`, …), and without a key any.",
		},
	},
}
