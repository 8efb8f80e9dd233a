package wechatpay

import "backstop/internal/base/text"

// Texts are the texts that rows store by code and arguments.
var Texts text.Codes

var (
	oneHeader = Texts.New("wechatpay.one_header",
		text.Text{ZH: "需要恰好一个非空的请求头 %s", EN: "header %s is expected exactly once and not empty"})
	probe = Texts.New("wechatpay.probe", text.Text{
		ZH: "微信支付的探测请求，签名故意错误：应当拒绝",
		EN: "a probe by WeChat Pay with a wrong signature: rejected as expected",
	})
	wrongType = Texts.New("wechatpay.wrong_type", text.Text{
		ZH: "Wechatpay-Signature-Type 是 %s，应为 %s",
		EN: "Wechatpay-Signature-Type is %s, expected %s",
	})
	noSerial = Texts.New("wechatpay.no_serial",
		text.Text{ZH: "没有配置序列号为 %s 的公钥或证书", EN: "no key or certificate with the serial %s is configured"})
	notBase64        = Texts.New("wechatpay.not_base64", text.Text{ZH: "签名不是 base64", EN: "the signature is not base64"})
	signatureWrong   = Texts.New("wechatpay.signature_wrong", text.Text{ZH: "验签不通过，公钥 %s", EN: "the signature is not valid under %s"})
	timeNoNumber     = Texts.New("wechatpay.time_no_number", text.Text{ZH: "签名时间不是秒数", EN: "the signed time is not a number of seconds"})
	signatureHolds   = Texts.New("wechatpay.signature_holds", text.Text{ZH: "RSA-SHA256 验签通过", EN: "the RSA-SHA256 signature is valid"})
	certificateDates = Texts.New("wechatpay.certificate_dates",
		text.Text{ZH: "平台证书的有效期只从 %s 到 %s", EN: "the platform certificate is valid from %s to %s only"})
	decrypted    = Texts.New("wechatpay.decrypted", text.Text{ZH: "已解密", EN: "decrypted"})
	contentRead  = Texts.New("wechatpay.content_read", text.Text{ZH: "内容已读取", EN: "the content was read"})
	notDecrypted = Texts.New("wechatpay.not_decrypted", text.Text{
		ZH: "resource 无法解密：api_v3_key 不是微信支付所用的那个",
		EN: "the resource cannot be decrypted: api_v3_key is not the one that WeChat Pay uses",
	})
	otherCipher = Texts.New("wechatpay.other_cipher", text.Text{
		ZH: "resource 以 %s 加密，只认识 %s",
		EN: "the resource is encrypted with %s, only %s is known",
	})
	noEvent = Texts.New("wechatpay.no_event",
		text.Text{ZH: "通知没有 id 或 event_type", EN: "the notification has no id or no event_type"})
	noPayment = Texts.New("wechatpay.no_payment", text.Text{
		ZH: "通知没有支付单号或 trade_state",
		EN: "the notification names no payment or no trade_state",
	})
	noRefund      = Texts.New("wechatpay.no_refund", text.Text{ZH: "通知没有退款单号", EN: "the notification names no refund"})
	noComplaint   = Texts.New("wechatpay.no_complaint", text.Text{ZH: "通知没有投诉单号", EN: "the notification names no complaint"})
	noAmount      = Texts.New("wechatpay.no_amount", text.Text{ZH: "金额：%s", EN: "amount: %s"})
	httpStatus    = Texts.New("wechatpay.http_status", text.Text{ZH: "HTTP %s，没有有效签名：%s", EN: "HTTP %s without a valid signature: %s"})
	errorCode     = Texts.New("wechatpay.error_code", text.Text{ZH: "HTTP %s，错误码 %s", EN: "HTTP %s, error code %s"})
	noValue       = Texts.New("wechatpay.no_value", text.Text{ZH: "应答没有 %s", EN: "the answer has no %s"})
	otherMerchant = Texts.New("wechatpay.other_merchant",
		text.Text{ZH: "应答是另一个商户号的：%s", EN: "the answer is about another merchant number: %s"})
)
