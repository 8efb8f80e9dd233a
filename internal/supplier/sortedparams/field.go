package sortedparams

import (
	"backstop/internal/base/text"
	"backstop/internal/supplier"
)

// fields are the fields of a config. Their defaults and choices are those that readConfig enters and checks.
var fields = supplier.FieldsOf[config](fieldTexts)

// fieldTexts are the labels of the fields of its config, and what to enter.
var fieldTexts = map[string]supplier.FieldText{
	"format": {
		Label: text.Text{ZH: "回调格式", EN: "Format of callbacks"},
		Help:  text.Text{ZH: "回调参数的格式。", EN: "How the parameters of a callback are sent."},
	},
	"algorithm": {
		Label: text.Text{ZH: "签名算法", EN: "Signature algorithm"},
		Help:  text.Text{ZH: "渠道和我方签名的算法。", EN: "The algorithm with which the supplier, and Backstop, sign."},
	},
	"key": {
		Label: text.Text{ZH: "密钥", EN: "Key"},
		Help: text.Text{
			ZH: "与渠道共享的密钥；`rsa-sha256` 以外必填。",
			EN: "The secret shared with the supplier; required unless `rsa-sha256`.",
		},
	},
	"public_key": {
		Label: text.Text{ZH: "渠道公钥", EN: "Supplier's public key"},
		Help: text.Text{
			ZH: "渠道的 RSA 公钥，至少 2048 位，PEM 或 base64；只用于 `rsa-sha256`。",
			EN: "The supplier's RSA key of at least 2048 bits, PEM or base64; only with `rsa-sha256`.",
		},
	},
	"key_append": {
		Label: text.Text{ZH: "待签文本后缀", EN: "Text after the pairs"},
		Help: text.Text{
			ZH: "接在排序后的参数之后；`{key}` 代表密钥，`md5` 必须包含它。不填时 `md5` 为 `{key}`，其他算法为空。",
			EN: "The text after the sorted pairs; `{key}` stands for the key, and `md5` must contain it. Unset, it is `{key}` with `md5` and empty otherwise.",
		},
	},
	"sign_field": {
		Label: text.Text{ZH: "签名参数", EN: "Parameter of the signature"},
		Help:  text.Text{ZH: "含签名的参数，自身不参与签名。", EN: "The parameter with the signature; it is never signed."},
	},
	"sign_exclude": {
		Label: text.Text{ZH: "不参与签名的参数", EN: "Parameters not signed"},
		Help: text.Text{
			ZH: "其他不参与签名的参数，例如 `sign_type`；不得包含其他设置要读取的参数。",
			EN: "Further parameters that are not signed, such as `sign_type`. None of them may be one that another setting reads.",
		},
	},
	"sign_case": {
		Label: text.Text{ZH: "签名大小写", EN: "Case of the signature"},
		Help: text.Text{
			ZH: "十六进制签名的大小写；`any` 为两者皆可，但不得混用。",
			EN: "The case of a hex signature; `any` accepts either, but never mixed.",
		},
	},
	"skip_empty": {
		Label: text.Text{ZH: "空值不签名", EN: "Skip empty values"},
		Help:  text.Text{ZH: "空值不进入待签文本。", EN: "Empty values are left out of the signed text."},
	},
	"order_field": {
		Label: text.Text{ZH: "订单号参数", EN: "Parameter of the order number"},
		Help:  text.Text{ZH: "含我方订单号的参数。", EN: "The parameter with our order number."},
	},
	"trade_field": {
		Label: text.Text{ZH: "渠道流水号参数", EN: "Parameter of the trade number"},
		Help: text.Text{
			ZH: "含渠道流水号的参数；设置后，没有流水号的支付无法读取。",
			EN: "The parameter with the supplier's trade number. If it is set, a payment without the number is unreadable.",
		},
	},
	"amount_field": {
		Label: text.Text{ZH: "金额参数", EN: "Parameter of the amount"},
		Help:  text.Text{ZH: "含金额的参数。", EN: "The parameter with the amount."},
	},
	"amount_unit": {
		Label: text.Text{ZH: "金额单位", EN: "Unit of the amount"},
		Help:  text.Text{ZH: "`major` 为元（19.99），`minor` 为分（1999）。", EN: "`major` (\"19.99\") or `minor` (\"1999\")."},
	},
	"currency": {
		Label: text.Text{ZH: "币种", EN: "Currency"},
		Help: text.Text{
			ZH: "大写 ISO 4217；没有 `currency_field` 时必填，有则作为消息未写币种时的币种。",
			EN: "ISO 4217 in upper case. Required without a `currency_field`; with one, the currency of messages that have none.",
		},
	},
	"currency_field": {
		Label: text.Text{ZH: "币种参数", EN: "Parameter of the currency"},
		Help:  text.Text{ZH: "含币种的参数，大小写均可。", EN: "The parameter with the currency, in upper or lower case."},
	},
	"status_field": {
		Label: text.Text{ZH: "状态参数", EN: "Parameter of the state"},
		Help: text.Text{
			ZH: "含状态的参数。不填则每条验签通过的消息都视为已支付：仅适用于不发送其他消息的渠道。",
			EN: "The parameter with the state. Without it, every correctly signed message means paid: only for suppliers that send nothing else.",
		},
	},
	"paid_values": {
		Label: text.Text{ZH: "已支付的状态", EN: "States: paid"},
		Help:  text.Text{ZH: "表示已支付的状态。", EN: "The states that mean paid."},
	},
	"failed_values": {
		Label: text.Text{ZH: "已失败的状态", EN: "States: failed"},
		Help:  text.Text{ZH: "表示最终失败的状态。", EN: "The states that mean finally failed."},
	},
	"closed_values": {
		Label: text.Text{ZH: "已关闭的状态", EN: "States: closed"},
		Help: text.Text{
			ZH: "表示不能再支付的状态；订单随之关闭。",
			EN: "The states that mean that the payment can no longer be made; the order is closed.",
		},
	},
	"paying_values": {
		Label: text.Text{ZH: "支付中的状态", EN: "States: paying"},
		Help:  text.Text{ZH: "表示尚未支付的状态，不产生影响。", EN: "The states that mean \"not yet\"; they are harmless."},
	},
	"not_found_values": {
		Label: text.Text{ZH: "不存在的状态", EN: "States: not found"},
		Help: text.Text{
			ZH: "表示渠道没有该支付、退款或出款的状态。",
			EN: "The states that mean that the supplier has no such payment, refund or payout.",
		},
	},
	"account_field": {
		Label: text.Text{ZH: "商户号参数", EN: "Parameter of the account"},
		Help: text.Text{
			ZH: "含我方在渠道的商户号的参数；渠道会发送时务必设置：多个账户可能共用一个密钥。",
			EN: "The parameter with our merchant number at the supplier. Always set it if the supplier sends one: several accounts may share a key.",
		},
	},
	"account": {
		Label: text.Text{ZH: "商户号", EN: "Account"},
		Help:  text.Text{ZH: "`account_field` 必须等于的值。", EN: "The value that `account_field` must have."},
	},
	"reply": {
		Label: text.Text{ZH: "应答", EN: "Answers"},
		Help:  text.Text{ZH: "给渠道的应答。", EN: "What the supplier is answered."},
	},
	"reply.content_type": {
		Label: text.Text{ZH: "应答类型", EN: "Content type"},
		Help:  text.Text{ZH: "应答的 Content-Type。", EN: "The Content-Type of the answers."},
	},
	"reply.success": {
		Label: text.Text{ZH: "成功应答", EN: "Success"},
		Help:  text.Text{ZH: "表示已收到的应答文本。", EN: "The text that says that the callback was taken."},
	},
	"reply.failure": {
		Label: text.Text{ZH: "失败应答", EN: "Failure"},
		Help:  text.Text{ZH: "表示失败的应答文本，渠道会再次发送。", EN: "The text after which the supplier sends again."},
	},
	"query_url": {
		Label: text.Text{ZH: "查询地址", EN: "Address for queries"},
		Help:  text.Text{ZH: "查询支付的地址。", EN: "Where payments are queried."},
	},
	"close_url": {
		Label: text.Text{ZH: "关单地址", EN: "Address for closes"},
		Help:  text.Text{ZH: "关闭支付的地址。", EN: "Where payments are closed."},
	},
	"pay_url": {
		Label: text.Text{ZH: "下单地址", EN: "Address for payments"},
		Help:  text.Text{ZH: "发起支付的地址。", EN: "Where payments are started."},
	},
	"pay_kind": {
		Label: text.Text{ZH: "支付方式", EN: "Kind of payment"},
		Help: text.Text{
			ZH: "`pay_value_field` 的内容：二维码文本（`qr`）或跳转地址（`redirect`）；只与 `pay_url` 一起填写。",
			EN: "What `pay_value_field` is: the text of a QR code (`qr`), or an address to send the buyer to (`redirect`). Only with `pay_url`.",
		},
	},
	"pay_value_field": {
		Label: text.Text{ZH: "支付内容参数", EN: "Parameter for the buyer"},
		Help:  text.Text{ZH: "下单应答中买家需要的参数。", EN: "The parameter of the answer to `pay_url` that the buyer needs."},
	},
	"answer_format": {
		Label: text.Text{ZH: "应答格式", EN: "Format of answers"},
		Help:  text.Text{ZH: "渠道应答的格式。", EN: "The format of the supplier's answers."},
	},
	"private_key": {
		Label: text.Text{ZH: "我方私钥", EN: "Our private key"},
		Help: text.Text{
			ZH: "我方 RSA 私钥，PEM 或 base64；`rsa-sha256` 下调用渠道时必填，且只用于它。",
			EN: "Your own RSA key, PEM or base64; required for calls with `rsa-sha256`, and only with it.",
		},
	},
	"refund_url": {
		Label: text.Text{ZH: "退款地址", EN: "Address for refunds"},
		Help: text.Text{
			ZH: "发起退款的地址；与 `refund_query_url` 同时填写。",
			EN: "Where refunds are made; given together with `refund_query_url`.",
		},
	},
	"refund_query_url": {
		Label: text.Text{ZH: "退款查询地址", EN: "Address for refund queries"},
		Help:  text.Text{ZH: "查询退款的地址。", EN: "Where refunds are queried."},
	},
	"refund_no_field": {
		Label: text.Text{ZH: "退款单号参数", EN: "Parameter of the refund number"},
		Help:  text.Text{ZH: "含退款单号的参数。", EN: "The parameter with the refund's number."},
	},
	"refund_amount_field": {
		Label: text.Text{ZH: "退款金额参数", EN: "Parameter of the refund's amount"},
		Help:  text.Text{ZH: "含退款金额的参数。", EN: "The parameter with the refund's amount."},
	},
	"payout_url": {
		Label: text.Text{ZH: "出款地址", EN: "Address for payouts"},
		Help: text.Text{
			ZH: "发起出款的地址；与 `payout_query_url` 同时填写。",
			EN: "Where payouts are made; given together with `payout_query_url`.",
		},
	},
	"payout_query_url": {
		Label: text.Text{ZH: "出款查询地址", EN: "Address for payout queries"},
		Help:  text.Text{ZH: "查询出款的地址。", EN: "Where payouts are queried."},
	},
	"payout_no_field": {
		Label: text.Text{ZH: "出款单号参数", EN: "Parameter of the payout number"},
		Help: text.Text{
			ZH: "请求和应答中含出款单号的参数；金额在 `amount_field` 中。",
			EN: "The parameter of requests and answers with the payout's number. The amount is in `amount_field`.",
		},
	},
	"payee_field": {
		Label: text.Text{ZH: "收款账户参数", EN: "Parameter of the payee"},
		Help:  text.Text{ZH: "请求中含收款账户的参数。", EN: "The parameter of requests with the payee's account."},
	},
	"result_field": {
		Label: text.Text{ZH: "结果参数", EN: "Parameter of the result"},
		Help: text.Text{
			ZH: "退款和出款的应答中含状态的参数。",
			EN: "The parameter of answers about refunds and payouts with their state.",
		},
	},
	"success_values": {
		Label: text.Text{ZH: "成功的结果", EN: "Results: succeeded"},
		Help:  text.Text{ZH: "表示已退款或已出款。", EN: "They mean refunded, or paid out."},
	},
	"failure_values": {
		Label: text.Text{ZH: "失败的结果", EN: "Results: failed"},
		Help:  text.Text{ZH: "表示最终失败。", EN: "They mean finally failed."},
	},
	"processing_values": {
		Label: text.Text{ZH: "处理中的结果", EN: "Results: processing"},
		Help:  text.Text{ZH: "表示尚未结束。", EN: "They mean still running."},
	},
	"returned_values": {
		Label: text.Text{ZH: "退回的结果", EN: "Results: returned"},
		Help:  text.Text{ZH: "表示成功后资金又被退回。", EN: "They mean that it succeeded, but the money came back later."},
	},
}
