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
	multipart     = Texts.New("callback.multipart", text.Text{
		ZH: "正文是 %s：没有渠道这样签名，应为 application/x-www-form-urlencoded",
		EN: "the body is %s, which no supplier signs: it must be application/x-www-form-urlencoded",
	})
	anyAddress     = Texts.New("callback.any_address", text.Text{ZH: "允许任何地址", EN: "any address is allowed"})
	allowed        = Texts.New("callback.allowed", text.Text{ZH: "在 allow_ips 中", EN: "in allow_ips"})
	addressUnknown = Texts.New("callback.address_unknown", text.Text{ZH: "未填来源地址，未检查", EN: "not checked: no address was given"})
	pasteEmpty     = Texts.New("callback.paste_empty", text.Text{
		ZH: "请粘贴一个 HTTP 请求，或一行 curl",
		EN: "paste an HTTP request or a curl command",
	})
	pasteLong = Texts.New("callback.paste_long", text.Text{ZH: "超过 %s 字节", EN: "it is longer than %s bytes"})
	pasteText = Texts.New("callback.paste_text", text.Text{ZH: "不是 UTF-8 文本", EN: "it is not UTF-8 text"})
	pasteLine = Texts.New("callback.paste_line", text.Text{
		ZH: "第一行应为方法和地址，例如 POST /callback/%s",
		EN: "the first line must be a method and a URL, such as POST /callback/%s",
	})
	pasteMethod = Texts.New("callback.paste_method", text.Text{ZH: "回调的方法只有 GET 和 POST，不是 %s", EN: "callbacks use GET or POST, not %s"})
	pasteTarget = Texts.New("callback.paste_target", text.Text{ZH: "地址 %s 无法解析", EN: "the address %s cannot be read"})
	pasteOther  = Texts.New("callback.paste_other",
		text.Text{ZH: "它发往 %s，不是这个渠道的地址 %s", EN: "it goes to %s, not to this supplier's address %s"})
	pasteHeader = Texts.New("callback.paste_header", text.Text{
		ZH: "%s 不是“名称: 值”形式的请求头；请求头与正文之间要有一个空行",
		EN: "%s is not a header such as Name: value; an empty line must separate headers and body",
	})
	pasteHeaders = Texts.New("callback.paste_headers", text.Text{ZH: "请求头超过 %s 个", EN: "it has more than %s headers"})
	pasteEncoded = Texts.New("callback.paste_encoded", text.Text{
		ZH: "不接受 Content-Encoding %s：回调的正文不得压缩",
		EN: "Content-Encoding %s is not accepted: a callback's body is not compressed",
	})
	pasteQuote  = Texts.New("callback.paste_quote", text.Text{ZH: "引号没有结束", EN: "a quotation mark is not closed"})
	pasteOption = Texts.New("callback.paste_option", text.Text{ZH: "不支持 curl 的选项 %s", EN: "the curl option %s is not supported"})
	pasteValue  = Texts.New("callback.paste_value", text.Text{ZH: "curl 的选项 %s 缺少值", EN: "the curl option %s has no value"})
	pasteFile   = Texts.New("callback.paste_file",
		text.Text{ZH: "不读取文件：请写出 %s 的内容", EN: "files are not read: write out the content of %s"})
	pasteNoURL   = Texts.New("callback.paste_no_url", text.Text{ZH: "这行 curl 没有地址", EN: "the curl command has no URL"})
	pasteURLs    = Texts.New("callback.paste_urls", text.Text{ZH: "这行 curl 有多个地址", EN: "the curl command has more than one URL"})
	fieldTooLong = Texts.New("callback.field_too_long", text.Text{ZH: "%s 过长", EN: "the %s is too long"})
)
