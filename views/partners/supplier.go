package partners

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"backstop/internal/base/text"
	"backstop/internal/breaker"
	"backstop/internal/report"
	"backstop/internal/supplier"
	"backstop/views/ui"
)

var keyKinds = map[supplier.KeyKind]text.Text{
	supplier.Certificate: {ZH: "渠道证书", EN: "Supplier's certificate"},
	supplier.PublicKey:   {ZH: "渠道公钥", EN: "Supplier's public key"},
	supplier.PrivateKey:  {ZH: "我方私钥（指纹为其公钥的）", EN: "Our private key (fingerprint of its public key)"},
	supplier.SharedKey:   {ZH: "共享密钥", EN: "Shared key"},
}

var changeWords = map[string]text.Text{
	"created":  {ZH: "新建", EN: "created"},
	"changed":  {ZH: "修改", EN: "changed"},
	"disabled": {ZH: "停用", EN: "disabled"},
}

func supplierBreaker(r *breaker.Row) string {
	if r == nil {
		return string(breaker.Closed)
	}
	return string(r.State)
}

func yesOrNo(p *ui.Page, yes bool) string {
	if yes {
		return p.T(text.Yes)
	}
	return p.T(text.No)
}

// failedClasses are how the calls that failed went.
func failedClasses(c report.Calls) string {
	var all []string
	for _, class := range slices.Sorted(maps.Keys(c.Classes)) {
		if !supplier.Class(class).Healthy() {
			all = append(all, fmt.Sprintf("%s %s", class, ui.Count(c.Classes[class])))
		}
	}
	return strings.Join(all, ", ")
}

// Texts of this page.
var (
	tItsWaiting  = text.Text{ZH: "等待结果的订单", EN: "Orders waiting for a result"}
	tPlayground  = text.Text{ZH: "回调试验台", EN: "Playground"}
	tUnusableHow = text.Text{
		ZH: "这个渠道的配置在此无法使用：它的回调会被要求重发，直到修复。原因见日志和就绪检查 settings。",
		EN: "The settings of this supplier cannot be used here. Its callbacks are refused, so that the supplier repeats them, until the settings are repaired. The log and the check settings say why.",
	}
	tLastHour      = text.Text{ZH: "近一小时", EN: "Last hour"}
	tRefusals      = text.Text{ZH: "24 小时内被拒绝的回调", EN: "Rejected callbacks within 24 h"}
	tNoRefusals    = text.Text{ZH: "没有被拒绝的回调", EN: "No rejected callbacks"}
	tNoRefusalsHow = text.Text{
		ZH: "来源地址或签名不通过的回调按检查项列在这里。",
		EN: "Callbacks from a wrong address or with an invalid signature are listed here by check.",
	}
	tRefusedN      = text.Text{ZH: "条数", EN: "Callbacks"}
	tNewest        = text.Text{ZH: "最近一条", EN: "Newest"}
	tNewestFailed  = text.Text{ZH: "最近一条未通过", EN: "Latest failure"}
	tCallsTitle    = text.Text{ZH: "近一小时的调用", EN: "Calls within the last hour"}
	tNoCalls       = text.Text{ZH: "没有调用", EN: "No calls"}
	tNoCallsHow    = text.Text{ZH: "查单、关单、退款等调用会按类型列在这里。", EN: "Queries, closes, refunds and other calls appear here by kind."}
	tCallsN        = text.Text{ZH: "次数", EN: "Calls"}
	tCallsAnswered = text.Text{ZH: "成功率", EN: "Success"}
	tCallsFailed   = text.Text{ZH: "失败", EN: "Failures"}
	tKeys          = text.Text{ZH: "密钥与证书", EN: "Keys and certificates"}
	tNoKeys        = text.Text{ZH: "没有密钥", EN: "No keys"}
	tNoKeysHow     = text.Text{ZH: "配置可用后，密钥的指纹会列在这里。", EN: "Fingerprints of keys appear here once the settings can be used."}
	tKeyField      = text.Text{ZH: "配置项", EN: "Field"}
	tFingerprint   = text.Text{ZH: "SHA-256 指纹", EN: "SHA-256 fingerprint"}
	tNoFingerprint = text.Text{ZH: "不显示", EN: "not shown"}
	tSerial        = text.Text{ZH: "序列号 %s", EN: "serial %s"}
	tKeyEnds       = text.Text{ZH: "有效期", EN: "Expires"}
	tNeverEnds     = text.Text{ZH: "无期限", EN: "never"}
	tChanges       = text.Text{ZH: "配置变更", EN: "Changes of settings"}
	tNoChanges     = text.Text{ZH: "没有记录的变更", EN: "No recorded changes"}
	tNoChangesHow  = text.Text{
		ZH: "backstop apply 的变更会列在这里：谁、何时、改了哪些项。",
		EN: "Changes by backstop apply appear here: who, when, and which fields.",
	}
	tChangedFields   = text.Text{ZH: "配置项", EN: "Fields"}
	tChangesSearched = text.Text{
		ZH: "只在最近 500 次配置变更中查找；更早的见审计日志。",
		EN: "Only the newest 500 changes of settings were searched; older ones are in the audit.",
	}
	tSupplierSettings = text.Text{ZH: "配置", EN: "Settings"}
	tCallbackURL      = text.Text{ZH: "回调地址", EN: "Callback URL"}
	tAllowlist        = text.Text{ZH: "来源白名单", EN: "Allowlist"}
	tAnyAddress       = text.Text{ZH: "任何地址", EN: "any address"}
	tNewOrders        = text.Text{ZH: "接受新订单", EN: "New orders"}
	tAccountOf        = text.Text{ZH: "渠道账户", EN: "Account"}
	tQueryAfter       = text.Text{ZH: "查无此单视为未付", EN: "“Not found” means unpaid after"}
	tQueryRate        = text.Text{ZH: "调用速率上限", EN: "Max. call rate"}
	tQueryPending     = text.Text{ZH: "关单前查单", EN: "Queried before closing"}
	tUncallable       = text.Text{ZH: "无法调用", EN: "Cannot be called"}
)
