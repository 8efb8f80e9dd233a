package alipay

import (
	"backstop/internal/base/text"
	"backstop/internal/supplier"
)

// fieldTexts are the labels of the fields of its config, and what to enter.
var fieldTexts = map[string]supplier.FieldText{
	"app_id": {
		Label: text.Text{ZH: "应用 ID", EN: "Application id"},
		Help:  text.Text{ZH: "支付宝开放平台的应用 `app_id`。", EN: "The application's `app_id` on Alipay's open platform."},
	},
	"seller_id": {
		Label: text.Text{ZH: "卖家 ID", EN: "Seller id"},
		Help:  text.Text{ZH: "以 2088 开头；不填则不比对。", EN: "Begins with 2088. Not compared if it is empty."},
	},
	"alipay_public_key": {
		Label: text.Text{ZH: "支付宝公钥", EN: "Alipay's public key"},
		Help: text.Text{
			ZH: "支付宝公钥（不是应用公钥）：PEM，或支付宝控制台显示的 base64。",
			EN: "Alipay's public key (支付宝公钥, not 应用公钥): PEM, or the base64 that Alipay's console shows.",
		},
	},
	"app_private_key": {
		Label: text.Text{ZH: "应用私钥", EN: "Application's private key"},
		Help: text.Text{
			ZH: "应用自己的 RSA 私钥：PEM 或 base64。有它才能下单、查询、关单、退款和出款。",
			EN: "The application's own RSA key (应用私钥): PEM or base64. Payments, queries, closes, refunds and payouts need it.",
		},
	},
	"gateway_url": {
		Label: text.Text{ZH: "网关地址", EN: "Gateway"},
		Help: text.Text{
			ZH: "不填为 `https://openapi.alipay.com/gateway.do`；填其他地址时需要 `app_private_key`。",
			EN: "`https://openapi.alipay.com/gateway.do` if it is empty; another one needs `app_private_key`.",
		},
	},
}
