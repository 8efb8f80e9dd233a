package supplier

import "backstop/internal/base/text"

// Texts are the texts that rows store by code and arguments.
var Texts text.Codes

var (
	noTime   = Texts.New("message.no_time", text.Text{ZH: "消息没有时间", EN: "the message has no time"})
	tooOld   = Texts.New("message.too_old", text.Text{ZH: "签名于 %s 前，只允许 %s", EN: "signed %s ago, %s allowed"})
	tooEarly = Texts.New("message.too_early", text.Text{ZH: "签名时间在 %s 之后，只允许 %s", EN: "signed %s in the future, %s allowed"})
	inTime   = Texts.New("message.in_time", text.Text{ZH: "签名时间在允许范围内", EN: "signed within the allowed time"})
	jsonType = Texts.New("message.json_type", text.Text{
		ZH: "JSON 中 %[2]s 处的 %[1]s 类型不对",
		EN: "the JSON has a %s of the wrong type at %s",
	})
	jsonForm      = Texts.New("message.json_form", text.Text{ZH: "JSON 不是预期的结构", EN: "the JSON does not have the expected form"})
	jsonFlaw      = Texts.New("message.json_flaw", text.Text{ZH: "JSON 内容%s", EN: "the JSON %s"})
	jsonFlawAt    = Texts.New("message.json_flaw_at", text.Text{ZH: "JSON 在 %[2]s 处%[1]s", EN: "the JSON %s at %s"})
	notUTF8       = Texts.New("message.not_utf8", text.Text{ZH: "不是有效的 UTF-8", EN: "is not valid UTF-8"})
	hasNUL        = Texts.New("message.has_nul", text.Text{ZH: "有 NUL", EN: "has a NUL"})
	nameNUL       = Texts.New("message.name_nul", text.Text{ZH: "名称中有 NUL", EN: "has a NUL in a name"})
	notOneValue   = Texts.New("message.not_one_value", text.Text{ZH: "不是一个完整的值", EN: "is not one well-formed value"})
	halfPair      = Texts.New("message.half_pair", text.Text{ZH: "有半个代理对", EN: "has half of a surrogate pair"})
	tooDeep       = Texts.New("message.too_deep", text.Text{ZH: "嵌套超过 32 层", EN: "is nested more than 32 deep"})
	sameName      = Texts.New("message.same_name", text.Text{ZH: "有重复的名称", EN: "has the same name more than once"})
	noReading     = Texts.New("message.no_reading", text.Text{ZH: "无法读取", EN: "cannot be read"})
	semicolon     = Texts.New("message.semicolon", text.Text{ZH: "参数中有分号：它不是分隔符", EN: "semicolon in the parameters: not a separator"})
	noName        = Texts.New("message.no_name", text.Text{ZH: "有一个参数没有名称", EN: "a parameter has no name"})
	oddName       = Texts.New("message.odd_name", text.Text{ZH: "参数名含有 & 或 =", EN: "a parameter's name contains & or ="})
	nameTwice     = Texts.New("message.name_twice", text.Text{ZH: "参数 %s 出现多次", EN: "parameter %s occurs more than once"})
	tooManyFields = Texts.New("message.too_many_fields", text.Text{ZH: "参数超过 %s 个", EN: "more than %s parameters"})
	badEscape     = Texts.New("message.bad_escape", text.Text{ZH: "参数中的百分号转义不完整", EN: "broken percent escape in the parameters"})
	formNotUTF8   = Texts.New("message.form_not_utf8", text.Text{ZH: "参数不是有效的 UTF-8", EN: "the parameters are not valid UTF-8"})
	formNUL       = Texts.New("message.form_nul", text.Text{ZH: "参数中有 NUL", EN: "NUL in the parameters"})
	otherReading  = Texts.New("message.other_reading", text.Text{
		ZH: "验签通过，但有两种读法：某个参数的值含有 %s",
		EN: "signature holds, two readings: the value of a parameter contains %s",
	})
	unsignedBytes = Texts.New("message.unsigned_bytes", text.Text{
		ZH: "%s 字节不在签名范围内，最多接受 %s 字节",
		EN: "%s bytes are not covered by the signature; at most %s are accepted",
	})
	noAddress     = Texts.New("message.no_address", text.Text{ZH: "连接没有地址", EN: "the connection has no address"})
	forwardedLong = Texts.New("message.forwarded_long", text.Text{
		ZH: "X-Forwarded-For 格式错误：超过 %s 字节",
		EN: "X-Forwarded-For is malformed: longer than %s bytes",
	})
	forwardedHop = Texts.New("message.forwarded_hop", text.Text{
		ZH: "X-Forwarded-For 格式错误：%s 不是地址",
		EN: "X-Forwarded-For is malformed: %s is not an address",
	})
	noAnswer       = Texts.New("answer.none", text.Text{ZH: "没有得到可读的应答：%s", EN: "no readable answer: %s"})
	otherOrder     = Texts.New("answer.other_order", text.Text{ZH: "应答是另一笔订单的：%s", EN: "the answer is about another order: %s"})
	otherRefund    = Texts.New("answer.other_refund", text.Text{ZH: "应答是另一笔退款的：%s", EN: "the answer is about another refund: %s"})
	otherPayout    = Texts.New("answer.other_payout", text.Text{ZH: "应答是另一笔出款的：%s", EN: "the answer is about another payout: %s"})
	otherPayoutSum = Texts.New("answer.other_payout_sum",
		text.Text{ZH: "应答说出款 %s %s，应为 %s %s", EN: "the answer says that %s %s were paid out, not %s %s"})
	otherSum = Texts.New("answer.other_sum", text.Text{
		ZH: "应答说退款 %s %s，应为 %s %s",
		EN: "the answer says that %s %s were refunded, not %s %s",
	})
	otherWord = Texts.New("answer.other_word", text.Text{ZH: "应答的状态不认识：%s", EN: "the answer has an unknown status: %s"})
	noMoney   = Texts.New("answer.no_money",
		text.Text{ZH: "应答说已支付，但没有金额或币种", EN: "the answer says paid, without an amount or a currency"})
	unexpected = Texts.New("message.unexpected", text.Text{ZH: "%s", EN: "%s"})
)
