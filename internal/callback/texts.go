package callback

import "backstop/internal/base/text"

// Texts are the texts that rows store by code and arguments.
var Texts text.Codes

var (
	notUsable     = Texts.New("callback.not_usable", text.Text{ZH: "此处无法使用 %s：原因见日志", EN: "%s cannot be used on this node: see the log"})
	noSupplier    = Texts.New("callback.no_supplier", text.Text{ZH: "没有渠道用这个代码", EN: "no supplier has this code"})
	_             = Texts.New("callback.is_disabled", text.Text{ZH: "%s 已停用", EN: "%s is disabled"}) // in old rows
	supplierKnown = Texts.New("callback.supplier_known", text.Text{ZH: "已知", EN: "known"})
	adapterBroke  = Texts.New("callback.adapter_broke", text.Text{ZH: "适配器处理这条消息时出错", EN: "our adapter failed on this message"})
	notAllowed    = Texts.New("callback.not_allowed", text.Text{ZH: "%s 不在 allow_ips 中", EN: "%s is not in allow_ips"})
	anyAddress    = Texts.New("callback.any_address", text.Text{ZH: "允许任何地址", EN: "any address is allowed"})
	allowed       = Texts.New("callback.allowed", text.Text{ZH: "在 allow_ips 中", EN: "in allow_ips"})
	fieldTooLong  = Texts.New("callback.field_too_long", text.Text{ZH: "%s 过长", EN: "the %s is too long"})
)
