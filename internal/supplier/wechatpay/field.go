package wechatpay

import (
	"backstop/internal/base/text"
	"backstop/internal/supplier"
)

// fieldTexts are the labels of the fields of its config, and what to enter.
var fieldTexts = map[string]supplier.FieldText{
	"mch_id": {
		Label: text.Text{ZH: "商户号", EN: "Merchant number"},
		Help:  text.Text{ZH: "微信支付的商户号。", EN: "The merchant number at WeChat Pay."},
	},
	"app_id": {
		Label: text.Text{ZH: "应用 ID", EN: "Application id"},
		Help:  text.Text{ZH: "不填则不比对。", EN: "Not compared if it is empty."},
	},
	"api_v3_key": {
		Label: text.Text{ZH: "APIv3 密钥", EN: "APIv3 key"},
		Help:  text.Text{ZH: "32 个字符，用于解密通知。", EN: "32 characters; notifications are decrypted with it."},
	},
	"public_key_id": {
		Label: text.Text{ZH: "微信支付公钥 ID", EN: "Public key id"},
		Help: text.Text{
			ZH: "以 PUB_KEY_ID_ 开头，与 `public_key` 一起填写。",
			EN: "Begins with PUB_KEY_ID_; given together with `public_key`.",
		},
	},
	"public_key": {
		Label: text.Text{ZH: "微信支付公钥", EN: "Public key"},
		Help: text.Text{
			ZH: "微信支付的 RSA 公钥，PEM；与 `public_key_id` 一起填写。公钥和平台证书至少填一种。",
			EN: "WeChat Pay's RSA key, PEM; given together with `public_key_id`. A public key or certificates are required.",
		},
	},
	"certificates": {
		Label: text.Text{ZH: "平台证书", EN: "Platform certificates"},
		Help: text.Text{
			ZH: "微信支付平台证书，PEM；轮换期间可填多个。",
			EN: "WeChat Pay's platform certificates, PEM; several during a rotation.",
		},
	},
	"merchant_serial": {
		Label: text.Text{ZH: "商户证书序列号", EN: "Certificate's serial"},
		Help: text.Text{
			ZH: "商户 API 证书的序列号，与 `merchant_private_key` 一起填写。",
			EN: "The serial of the merchant's API certificate; given together with `merchant_private_key`.",
		},
	},
	"merchant_private_key": {
		Label: text.Text{ZH: "商户私钥", EN: "Merchant's private key"},
		Help: text.Text{
			ZH: "商户 API 证书的私钥，PEM；调用微信支付时需要。",
			EN: "The private key of the merchant's API certificate, PEM. Calls need it.",
		},
	},
	"base_url": {
		Label: text.Text{ZH: "API 地址", EN: "API address"},
		Help: text.Text{
			ZH: "不填为 `https://api.mch.weixin.qq.com`；填其他地址时需要 `merchant_private_key`。",
			EN: "`https://api.mch.weixin.qq.com` if it is empty; another one needs `merchant_private_key`.",
		},
	},
}
