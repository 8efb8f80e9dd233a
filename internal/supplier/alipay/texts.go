package alipay

import "backstop/internal/base/text"

// Texts are the texts that rows store by code and arguments.
var Texts text.Codes

var (
	signType       = Texts.New("alipay.sign_type", text.Text{ZH: "sign_type 是 %s，应为 RSA2", EN: "sign_type is %s, expected RSA2"})
	noSign         = Texts.New("alipay.no_sign", text.Text{ZH: "sign 缺失或不是 base64", EN: "sign is missing or not base64"})
	signatureWrong = Texts.New("alipay.signature_wrong", text.Text{
		ZH: "验签不通过，公钥 alipay_public_key",
		EN: "the signature is not valid under alipay_public_key",
	})
	signatureHolds = Texts.New("alipay.signature_holds", text.Text{ZH: "RSA2 验签通过", EN: "the RSA2 signature is valid"})
	contentRead    = Texts.New("alipay.content_read", text.Text{ZH: "内容已读取", EN: "the content was read"})
	noTrade        = Texts.New("alipay.no_trade", text.Text{
		ZH: "通知既没有交易号和状态，也没有 notify_id",
		EN: "the notification names neither a trade and its status nor a notify_id",
	})
	noAmount   = Texts.New("alipay.no_amount", text.Text{ZH: "%s：%s", EN: "%s: %s"})
	badCall    = Texts.New("alipay.bad_call", text.Text{ZH: "请求无法生成：%s", EN: "the request cannot be made: %s"})
	httpStatus = Texts.New("alipay.http_status", text.Text{
		ZH: "应答的 HTTP 状态是 %s，应为 200",
		EN: "the answer has HTTP status %s, expected 200",
	})
	noNode     = Texts.New("alipay.no_node", text.Text{ZH: "应答中没有 %s", EN: "the answer has no %s"})
	otherOrder = Texts.New("alipay.other_order", text.Text{ZH: "应答的 out_trade_no 是 %s", EN: "the answer has out_trade_no %s"})
	noCode     = Texts.New("alipay.no_code", text.Text{
		ZH: "应答没有 out_trade_no 或 qr_code",
		EN: "the answer has no out_trade_no or no qr_code",
	})
	noTradeNo   = Texts.New("alipay.no_trade_no", text.Text{ZH: "应答说已支付，但没有 trade_no", EN: "the answer says paid, without a trade_no"})
	refusedWith = Texts.New("alipay.refused_with", text.Text{ZH: "支付宝拒绝下单：%s", EN: "Alipay refuses the payment: %s"})
	notClosed   = Texts.New("alipay.not_closed",
		text.Text{ZH: "支付宝不关闭该交易（%s），须先查单", EN: "Alipay does not close the trade (%s): query it first"})
	noFundChange = Texts.New("alipay.no_fund_change",
		text.Text{ZH: "支付宝已受理退款，但资金未变动，须再查询", EN: "Alipay accepted the call, but no money moved: query it"})
	otherAnswer   = Texts.New("alipay.other_answer", text.Text{ZH: "应答不是退款查询的应答", EN: "the answer is not about a refund"})
	otherTransfer = Texts.New("alipay.other_transfer", text.Text{
		ZH: "应答不是该笔转账的应答：out_biz_no 是 %s",
		EN: "the answer is not about this transfer: its out_biz_no is %s",
	})
	badMessage = Texts.New("alipay.bad_message", text.Text{
		ZH: "转账通知的 biz_content 无法读取：%s",
		EN: "the biz_content of the transfer's notification cannot be read: %s",
	})
	unknownWord = Texts.New("alipay.unknown_word", text.Text{ZH: "应答 %s 不在对照表中", EN: "the answer %s is not in the table"})
)
