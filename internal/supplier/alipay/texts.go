package alipay

import "backstop/internal/base/text"

// Texts are what rows keep of this package by a code and its arguments.
var Texts text.Codes

var (
	signType       = Texts.New("alipay.sign_type", text.Text{ZH: "sign_type 是 %s，应为 RSA2", EN: "sign_type is %s, RSA2 is wanted"})
	noSign         = Texts.New("alipay.no_sign", text.Text{ZH: "sign 缺失或不是 base64", EN: "sign is missing or not base64"})
	signatureWrong = Texts.New("alipay.signature_wrong", text.Text{ZH: "验签不通过，公钥 alipay_public_key", EN: "the signature does not hold under alipay_public_key"})
	signatureHolds = Texts.New("alipay.signature_holds", text.Text{ZH: "RSA2 验签通过", EN: "RSA2 holds"})
	contentRead    = Texts.New("alipay.content_read", text.Text{ZH: "内容已读取", EN: "understood"})
	noTrade        = Texts.New("alipay.no_trade", text.Text{ZH: "通知既没有交易号和状态，也没有 notify_id", EN: "the notification names neither a trade and its status nor a notify_id"})
	noAmount       = Texts.New("alipay.no_amount", text.Text{ZH: "%s：%s", EN: "%s: %s"})
)
