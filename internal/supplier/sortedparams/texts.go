package sortedparams

import "backstop/internal/base/text"

// Texts are the texts that rows store by code and arguments.
var Texts text.Codes

var (
	noParameter   = Texts.New("sortedparams.no_parameter", text.Text{ZH: "没有参数 %s", EN: "no parameter %s"})
	signatureOver = Texts.New("sortedparams.signature_over", text.Text{
		ZH: "%s 验签不通过，共 %s 个参数：%s",
		EN: "%s is not valid over %s parameters: %s",
	})
	signatureWrong = Texts.New("sortedparams.signature_wrong", text.Text{ZH: "%s 验签不通过", EN: "the %s signature is not valid"})
	signatureHolds = Texts.New("sortedparams.signature_holds", text.Text{ZH: "验签通过", EN: "the signature is valid"})
	contentRead    = Texts.New("sortedparams.content_read", text.Text{ZH: "内容已读取", EN: "the content was read"})
	tooMany        = Texts.New("sortedparams.too_many", text.Text{ZH: "参数超过 %s 个", EN: "more than %s parameters"})
	oddName        = Texts.New("sortedparams.odd_name",
		text.Text{ZH: "参数名为空，或含有 & 或 =", EN: "a parameter's name is empty or contains & or ="})
	queryAndBody = Texts.New("sortedparams.query_and_body", text.Text{
		ZH: "%s 同时带查询串和正文，或只带了不该带的那个",
		EN: "%s with a query and a body, or with the wrong one of them",
	})
	getOrPost       = Texts.New("sortedparams.get_or_post", text.Text{ZH: "方法 %s；应为 GET 或 POST", EN: "method %s; GET or POST is expected"})
	postOnly        = Texts.New("sortedparams.post_only", text.Text{ZH: "方法 %s；应为 POST", EN: "method %s; POST is expected"})
	jsonNull        = Texts.New("sortedparams.json_null", text.Text{ZH: "JSON 是 null，不是对象", EN: "the JSON is null, not an object"})
	jsonForm        = Texts.New("sortedparams.json_form", text.Text{ZH: "JSON 不是预期的结构", EN: "the JSON does not have the expected form"})
	xmlForm         = Texts.New("sortedparams.xml_form", text.Text{ZH: "XML 格式错误", EN: "the XML is not well formed"})
	xmlHas          = Texts.New("sortedparams.xml_has", text.Text{ZH: "XML 有 %s", EN: "the XML has %s"})
	xmlEmpty        = Texts.New("sortedparams.xml_empty", text.Text{ZH: "XML 是空的", EN: "the XML is empty"})
	tooLong         = Texts.New("sortedparams.too_long", text.Text{ZH: "%s 超过 %s 字节", EN: "%s is longer than %s bytes"})
	missing         = Texts.New("sortedparams.missing", text.Text{ZH: "缺少 %s", EN: "%s is missing"})
	currencyUnknown = Texts.New("sortedparams.currency_unknown", text.Text{ZH: "币种 %s 未知", EN: "currency %s is not known"})
	noAmount        = Texts.New("sortedparams.no_amount", text.Text{ZH: "%s：%s", EN: "%s: %s"})
	badCall         = Texts.New("sortedparams.bad_call", text.Text{ZH: "请求无法生成：%s", EN: "the request cannot be made: %s"})
	httpStatus      = Texts.New("sortedparams.http_status", text.Text{
		ZH: "应答的 HTTP 状态是 %s，应为 200",
		EN: "the answer has HTTP status %s, expected 200",
	})
	otherOrder   = Texts.New("sortedparams.other_order", text.Text{ZH: "应答的 %s 是 %s", EN: "the answer has %s %s"})
	otherAccount = Texts.New("sortedparams.other_account", text.Text{ZH: "应答是另一个账户的：%s", EN: "the answer is for another account: %s"})
	refusedWith  = Texts.New("sortedparams.refused_with", text.Text{ZH: "渠道拒绝下单：%s", EN: "the supplier refuses the payment: %s"})
	notClosed    = Texts.New("sortedparams.not_closed",
		text.Text{ZH: "渠道没有确认关单（%s），须先查单", EN: "the supplier does not confirm the close (%s): query it first"})
	notStarted = Texts.New("sortedparams.not_started",
		text.Text{ZH: "下单的应答是 %s，须先查单", EN: "the answer to the start is %s: query it first"})
	unknownWord = Texts.New("sortedparams.unknown_word", text.Text{ZH: "状态 %s 不在对照表中", EN: "the status %s is not in the lists"})
)
