package stripe

import "backstop/internal/base/text"

// Texts are the texts that rows store by code and arguments.
var Texts text.Codes

var (
	headerCount = Texts.New("stripe.header_count", text.Text{
		ZH: "有 %s 个 Stripe-Signature 请求头，应为一个",
		EN: "%s Stripe-Signature headers, expected one",
	})
	signatureHolds = Texts.New("stripe.signature_holds", text.Text{ZH: "v1 验签通过", EN: "the v1 signature is valid"})
	signatureWrong = Texts.New("stripe.signature_wrong", text.Text{
		ZH: "v1 签名均验证不通过（签名 %s 个，密钥 %s 个）",
		EN: "no v1 signature is valid (signatures: %s, secrets: %s)",
	})
	noValue = Texts.New("stripe.no_value", text.Text{
		ZH: "Stripe-Signature 请求头中有一项没有值",
		EN: "the Stripe-Signature header has a part without a value",
	})
	twoTimes = Texts.New("stripe.two_times", text.Text{
		ZH: "Stripe-Signature 请求头中有两个时间",
		EN: "the Stripe-Signature header has two times",
	})
	notHex      = Texts.New("stripe.not_hex", text.Text{ZH: "v1 签名不是 %s 字节的十六进制", EN: "a v1 signature is not %s bytes of hex"})
	headerParts = Texts.New("stripe.header_parts", text.Text{
		ZH: "Stripe-Signature 请求头需要一个时间和 1 到 %s 个 v1 签名",
		EN: "the Stripe-Signature header needs one time and 1 to %s v1 signatures",
	})
	timeNoNumber = Texts.New("stripe.time_no_number", text.Text{ZH: "签名时间不是秒数", EN: "the signed time is not a number of seconds"})
	contentRead  = Texts.New("stripe.content_read", text.Text{ZH: "内容已读取", EN: "the content was read"})
	oddObject    = Texts.New("stripe.odd_object", text.Text{
		ZH: "%s 的 data.object 不是预期的结构",
		EN: "data.object of %s does not have the expected form",
	})
	noDispute    = Texts.New("stripe.no_dispute", text.Text{ZH: "%s 没有争议编号", EN: "%s names no dispute"})
	noEvent      = Texts.New("stripe.no_event", text.Text{ZH: "事件没有 id 或类型", EN: "the event has no id or no type"})
	noPayment    = Texts.New("stripe.no_payment", text.Text{ZH: "%s 没有支付单号", EN: "%s names no payment"})
	noAmount     = Texts.New("stripe.no_amount", text.Text{ZH: "%s 的金额：%s", EN: "amount of %s: %s"})
	httpStatus   = Texts.New("stripe.http_status", text.Text{ZH: "HTTP %s，没有可读的错误说明", EN: "HTTP %s without a readable error"})
	errorCode    = Texts.New("stripe.error_code", text.Text{ZH: "HTTP %s，错误码 %s", EN: "HTTP %s, error code %s"})
	noIntent     = Texts.New("stripe.no_intent", text.Text{ZH: "应答不是 payment intent", EN: "the answer is not a payment intent"})
	otherIntent  = Texts.New("stripe.other_intent", text.Text{ZH: "应答是另一笔支付的：%s", EN: "the answer is about another payment: %s"})
	nothingFound = Texts.New("stripe.nothing_found", text.Text{
		ZH: "搜索没有找到：搜索结果可能滞后，不能说明没有支付",
		EN: "the search found nothing: it may lag behind, so it proves nothing about the payment",
	})
	noID = Texts.New("stripe.no_id", text.Text{
		ZH: "没有 payment intent 编号，未发送：请先查单",
		EN: "not sent: the intent's id is not known, a query must find it first",
	})
	noRefunds = Texts.New("stripe.no_refunds",
		text.Text{ZH: "应答不是（完整的）退款列表", EN: "the answer is not a refund or not a complete list of refunds"})
	tooLate = Texts.New("stripe.too_late", text.Text{
		ZH: "未发送：超过 %s 后，Stripe 会把重复的请求当作新的支付",
		EN: "not sent: after %s Stripe would take a repeat for another payment",
	})
	oddCancel = Texts.New("stripe.odd_cancel", text.Text{ZH: "取消的应答状态是 %s", EN: "the answer to a cancel has the status %s"})
)
