package apply

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"backstop/internal/base/text"
)

// said are the problems of fields in both languages. The checks write the English one, for commands and
// programs; verbs stand for what they fill in.
var said = []text.Text{
	{EN: "missing", ZH: "必填"},
	{EN: "missing: the stored value cannot be read, so give a new one", ZH: "必填：已存的值无法读取，请填新值"},
	{EN: "missing: a key needs its certificate", ZH: "必填：有私钥就要有证书"},
	{EN: "missing: none is stored for this address", ZH: "必填：这个地址没有已存的私钥"},
	{EN: "missing: give at least one endpoint", ZH: "必填：至少填一个地址"},
	{EN: "missing: a new merchant's notifications are signed with it", ZH: "必填：新商户的通知用它签名"},
	{EN: "missing: webhooks are signed with it", ZH: "必填：webhook 用它签名"},
	{EN: "missing: name the bank of a %s", ZH: "必填：%s 须填银行"},
	{EN: "missing: in minor units", ZH: "必填：以最小货币单位计"},
	{EN: "missing: the opening balance in minor units", ZH: "必填：期初余额，以最小货币单位计"},
	{EN: "use all, or a list of merchants", ZH: "请填 all，或商户代码的列表"},
	{EN: "use true or false", ZH: "请填 true 或 false"},
	{EN: "use a duration from %s to %s", ZH: "请填 %s 到 %s 的时长"},
	{EN: "use a percentage from 0%% to 99.9999%%, such as 0.6%%", ZH: "请填 0%% 到 99.9999%% 的百分比，例如 0.6%%"},
	{EN: "use a rate from %s/s to %s/s", ZH: "请填 %s/s 到 %s/s 的速率"},
	{EN: "use a whole number from %d to %d", ZH: "请填 %s 到 %s 的整数"},
	{EN: "use at least %d characters", ZH: "至少 %s 个字符"},
	{EN: "use letters, digits and signs only, without spaces", ZH: "只能用字母、数字和符号，不含空格"},
	{EN: "at most %d characters are allowed", ZH: "最多 %s 个字符"},
	{EN: "at most %d %s are allowed", ZH: "最多 %[1]s 项"},
	{EN: "NUL is not allowed here", ZH: "不得含有 NUL"},
	{EN: "control characters and line breaks are not allowed here", ZH: "不得含有控制字符和换行"},
	{
		EN: "%q: use 1 to 64 of a-z, 0-9, - and _, beginning with a letter or digit",
		ZH: "%s：请用 1 到 64 个 a-z、0-9、- 和 _，以字母或数字开头",
	},
	{EN: "%q is not known; use %s", ZH: "没有 %s；可用的是 %s"},
	{EN: "unknown field; known fields are %s", ZH: "没有这个字段；可用的是 %s"},
	{EN: "set twice: keep one of them", ZH: "重复：只留一个"},
	{EN: "%q: use a range such as 101.226.103.0/25, or one address", ZH: "%s：请填网段，例如 101.226.103.0/25，或单个地址"},
	{EN: "%s has bits set beyond its prefix length: use %s", ZH: "%s 的主机位不为零：请填 %s"},
	{EN: "character %d of %d is %s: copy the value alone", ZH: "第 %s 个字符（共 %s 个）是空白、换行或不可见字符（%s）：只复制值本身"},
	{EN: "%d characters: use a random text of at least %d (openssl rand -hex 24)", ZH: "只有 %s 个字符：请用至少 %s 个字符的随机文本（openssl rand -hex 24）"},
	{EN: "give one secret, or two during rotation: [new, old]", ZH: "请填一个密钥；轮换期间填两个：[新, 旧]"},
	{EN: "give signing_secret or signing_secrets, not both", ZH: "signing_secret 和 signing_secrets 只能填一个"},
	{EN: "both secrets are the same", ZH: "两个密钥相同"},
	{EN: "only the email channel supports digests", ZH: "只有 email 支持汇总"},
	{EN: "certificate and key are not a pair in PEM: give both as they were issued", ZH: "证书和私钥不是一对 PEM：请按签发的原样填写"},
	{EN: "a subscription has no API key to connect with: use another channel", ZH: "订阅没有 API 密钥，不能连接：请用其他方式"},
	{EN: "this is the %s of merchant %s: each needs its own", ZH: "这是商户 %[2]s 的 %[1]s：每个商户须各用各的"},
	{EN: "keys of test mode begin with sk_test_: give the merchant another one", ZH: "sk_test_ 开头的密钥属于测试模式：请换一个"},
	{EN: "there is no supplier %q: declare it first", ZH: "没有渠道 %s：请先添加"},
	{EN: "there is no merchant %q: declare it first", ZH: "没有商户 %s：请先添加"},
	{EN: "there is no merchant %q: declare it under merchants", ZH: "没有商户 %s：请先添加"},
	{EN: "%d is below min, which is %d: raise it, or leave it out for no maximum", ZH: "%s 小于下限 %s：请调高，或不填上限"},
	{EN: "%q: use the code of a supplier, or * for all", ZH: "%s：请填渠道代码，或用 * 表示全部"},
	{EN: "%s is a built-in role: choose another name", ZH: "%s 是内置角色：请换一个名称"},
	{EN: "only built-in roles have %s, which decides who may do what", ZH: "%s 决定谁能做什么，只属于内置角色"},
	{EN: "%s still has it: give them another role first", ZH: "%s 还有这个角色：请先改给其他角色"},
	{EN: "the same as in %s: give each its own", ZH: "与 %s 相同：须各不相同"},
	{EN: "must be a set of named fields", ZH: "须为一组带名称的字段"},
	{EN: "must be a set of named fields: %s", ZH: "须为一组带名称的字段：%s"},
	{EN: "must be a list: lines that begin with a dash, or [a, b]", ZH: "须为列表：以短横开头的行，或 [a, b]"},
	{EN: "must be a single value, not a list or a set of fields", ZH: "须为单个值，不能是列表或一组字段"},
	{EN: "must be %s: a code never changes", ZH: "须为 %s：代码不能修改"},
	{EN: "not valid YAML: fix it, or put the value in quotes", ZH: "不是有效的 YAML：请改正，或给值加上引号"},
	{EN: "not valid YAML here or just before: fix it, or put the value in quotes", ZH: "此处或之前不是有效的 YAML：请改正，或给值加上引号"},
	{EN: "the file contains more than one document: remove everything from the second --- on", ZH: "含有多个文档：请删去第二个 --- 及其后内容"},
	{EN: "aliases (*name) are not supported: write the value out", ZH: "不支持别名（*name）：请写出值"},
	{EN: "tags (!name) are not supported: leave the tag out", ZH: "不支持标签（!name）：请去掉"},
	{EN: "no such secret is stored: give the value itself", ZH: "没有存这个密钥：请填写值本身"},
	{EN: "the stored secret cannot be decrypted here: give a new one", ZH: "已存的密钥在此无法解密：请填新的"},
	{EN: "only the command apply reads files: give the value itself", ZH: "只有 apply 命令会读取文件：请填写值本身"},
	{EN: "nested too deeply", ZH: "嵌套太深"},
	{EN: "use a preset (day, quick) or a list of waits such as [1s, 3s, 5s]", ZH: "请填 day、quick，或等待的列表，例如 [1s, 3s, 5s]"},
	{EN: "the file declares nothing: it needs suppliers, merchants, skus, accounts, subscriptions, payout_accounts, roles or approval", ZH: "没有任何内容"},
	{EN: "more than %d entries in one file: split it", ZH: "超过 %s 项：请拆分"},
}

var verb = regexp.MustCompile(`%(?:\[\d\])?[sdq]`)

// allSaid are the problems that the checks of fields and of suppliers' configs find.
var allSaid = slices.Concat(said, saidOfSuppliers)

// sayings are allSaid, as patterns of the English texts.
var sayings = func() (all []*regexp.Regexp) {
	for _, t := range allSaid {
		pattern := verb.ReplaceAllString(regexp.QuoteMeta(strings.ReplaceAll(t.EN, "%%", "%")), "(.+)")
		all = append(all, regexp.MustCompile("^"+pattern+"$"))
	}
	return all
}()

// Say returns a problem of a field in both languages. One that a channel found is in English alone.
func Say(problem string) text.Text {
	for i, pattern := range sayings {
		if m := pattern.FindStringSubmatch(problem); m != nil {
			args := make([]any, len(m)-1)
			for j, arg := range m[1:] {
				args[j] = arg
			}
			return text.Text{ZH: fmt.Sprintf(allSaid[i].ZH, args...), EN: problem}
		}
	}
	return text.Text{ZH: problem, EN: problem}
}
