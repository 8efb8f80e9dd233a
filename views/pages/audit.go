package pages

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"backstop/internal/audit"
	"backstop/internal/base/text"
	"backstop/internal/bulk"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// AuditData is one page of the audit.
type AuditData struct {
	Rows []audit.Row
	// Checked says that the chain was checked as far as Extent: the first wrong row is
	// Broken, and KeyNeeded the first whose key is not here; 0 = none.
	Checked           bool
	Extent            audit.Extent
	Broken, KeyNeeded int64
}

// auditTexts is what the audit says.
var auditTexts = ui.ListTexts{
	Title: text.Audit, Icon: "scroll-text", None: tAuditNone, NoneHow: tAuditNoneHow,
	Fields: map[string]ui.Field{"actor": {Label: text.Actor}, "object": {Label: text.Kind, Value: ui.ObjectText}, "id": {Label: text.Object}},
}

// reasonOf is what somebody gave as the reason of an act.
func reasonOf(r audit.Row) string {
	var params map[string]any
	if json.Unmarshal([]byte(r.Params), &params) != nil {
		return ""
	}
	text, _ := params["reason"].(string)
	return text
}

// paramsOf is what else is known of an act, in one line. Acts of earlier versions
// name an address whole.
func paramsOf(p *ui.Page, r audit.Row) string {
	var params map[string]any
	if json.Unmarshal([]byte(r.Params), &params) != nil {
		return ""
	}
	delete(params, "reason")
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(params)) {
		label := name // such as a field of a rule, or sha256
		if w, ok := details[name]; ok {
			label = p.T(w)
		}
		parts = append(parts, label+p.T(text.Colon)+paramOf(p, name, fmt.Sprint(params[name])))
	}
	return strings.Join(parts, " · ")
}

// paramOf is one of them: codes of ours in words.
func paramOf(p *ui.Page, name, value string) string {
	switch name {
	case "outcome":
		return p.T(outcomeWord(exception.Outcome(value)))
	case "kind":
		return p.T(ui.KindText(value))
	case "state":
		return p.T(planStates[value].Label)
	}
	return notify.Shown(value)
}

// maxDetail is how much of it, in bytes, a row shows unfolded.
const maxDetail = 160

// whoOf is an actor without its kind.
func whoOf(actor string) string {
	_, name, found := strings.Cut(actor, ":")
	if !found {
		return actor
	}
	return name
}

func objectLink(r audit.Row) templ.SafeURL {
	if r.Object == "order" {
		return orderLink(r.ObjectID)
	}
	return ""
}

// acts are the words of what people do, by the code that the audit keeps.
var acts = map[string]text.Text{
	notify.ResendAct:           tActResend,
	"order.note":               tActNote,
	"order.unmask":             tActUnmask,
	"order.evidence":           tActExport,
	"session.start":            tActSignIn,
	"password.change":          tActPassword,
	"alert.test":               tActAlertTest,
	"alert.rule":               tActAlertRule,
	"merchant.ping":            tActPing,
	"merchant.enable_address":  tActEnable,
	"breaker.open":             tActBreakerOpen,
	"breaker.close":            tActBreakerShut,
	"breaker.probe":            tActBreakerTry,
	"exception.note":           tActNote,
	"exception.assign":         tActAssign,
	"exception.settle":         tActSettle,
	"exception.ignore":         tActIgnore,
	"exception.reopen":         tActReopen,
	"notification.resend_many": tActMany,
	bulk.EndAct:                tActManyEnd,
	"session.end_others":       tActEndOthers,
	"settings.apply":           tActApply,
	"orders.import":            tActImport,
	"secrets.reseal":           tActReseal,
	"token.add":                tActTokenAdd,
	"token.revoke":             tActTokenEnd,
	"operator.add":             tActOpAdd,
	"audit.sealed":             tActSealed,
	"operator.disable":         tActOpDisable,
	"operator.reset_password":  tActOpReset,
}

// details are the words of what is known of an act, by the names that the audit keeps.
var details = map[string]text.Text{
	"role": tKeyRole, "scope": tKeyScope, "created": tKeyCreated, "changed": tKeyChanged, "opened": tKeyOpened,
	"disabled": tKeyDisabled, "orders": tKeyOrders, "targets": tKeyTargets, "ended": tKeyEnded, "format": tKeyFormat,
	"key_id": tKeyKey, "endpoint": tKeyEndpoint, "class": tKeyClass, "notification": tKeyNotified, "filter": tKeyFilter,
	"notifications": tKeyCount, "number": text.Number, "hash": tKeyHash, "amounts": tKeyAmounts, "to": tKeyTo, "delivery": tKeyDelivery, "how": tKeyHow, "outcome": tKeyOutcome, "state": tKeyState, "reference": tKeyProof, "amount": tKeyAmount, "kind": tKeyKind,
}

func actWord(action string) text.Text {
	if w, ok := acts[action]; ok {
		return w
	}
	return text.Text{ZH: action, EN: action}
}

// Texts of this page.
var (
	tActResend      = text.Text{ZH: "补发通知", EN: "sent a notification again"}
	tActNote        = text.Text{ZH: "备注", EN: "wrote a note"}
	tActSignIn      = text.Text{ZH: "登录", EN: "signed in"}
	tActPassword    = text.Text{ZH: "修改了密码", EN: "changed the password"}
	tActUnmask      = text.Text{ZH: "查看了个人信息", EN: "looked at personal data"}
	tActExport      = text.Text{ZH: "导出了证据", EN: "exported the evidence"}
	tActApply       = text.Text{ZH: "应用了配置文件", EN: "applied a file"}
	tActImport      = text.Text{ZH: "接管了订单", EN: "took over orders"}
	tActReseal      = text.Text{ZH: "用当前主密钥重新加密了密钥", EN: "sealed the secrets again"}
	tActSealed      = text.Text{ZH: "封存了无密钥的审计记录", EN: "sealed the rows without a key"}
	tActTokenAdd    = text.Text{ZH: "新建了令牌", EN: "made a token"}
	tActTokenEnd    = text.Text{ZH: "作废了令牌", EN: "ended a token"}
	tActOpAdd       = text.Text{ZH: "新建了操作员", EN: "added an operator"}
	tActOpDisable   = text.Text{ZH: "停用了操作员", EN: "disabled an operator"}
	tActOpReset     = text.Text{ZH: "重置了密码", EN: "gave a new one-time password"}
	tAuditNone      = text.Text{ZH: "还没有人做过什么", EN: "No activity yet"}
	tAuditNoneHow   = text.Text{ZH: "登录、补发、备注和管理命令都会记在这里。", EN: "Sign-ins, resends, notes and what commands change are kept here."}
	tAuditCheck     = text.Text{ZH: "校验链条", EN: "Check the chain"}
	tAuditWhole     = text.Text{ZH: "校验通过：%s 条记录，未发现篡改或删除。", EN: "Chain verified: %s rows, none changed or deleted."}
	tAuditBroken    = text.Text{ZH: "校验未通过：第 %s 条断开，这条或前面的记录被改过或删过，或没有密钥。", EN: "The chain breaks at row %s: it or one before it was changed or deleted, or it has no key. backstop verify names the rows."}
	tAuditKey       = text.Text{ZH: "无法校验：从第 %s 条起的记录需要另一把主密钥，当前节点没有。", EN: "Key needed: rows from %s on were written under a master key that this node does not have."}
	tAuditUnkeyed   = text.Text{ZH: "第 %s 条及以前的记录写于启用密钥之前，已于 %s 封存；封存之前的改动查不出来。", EN: "Rows up to No. %s were written before the audit had a key and were sealed at %s: what was changed in them before then is not found."}
	tAuditBeside    = text.Text{ZH: "其后有 %s 条由升级期间并行的旧版本写入，也已封存。", EN: "Written after that by an older build during the upgrade, and sealed too: %s rows."}
	tKeyRole        = text.Text{ZH: "角色", EN: "role"}
	tKeyScope       = text.Text{ZH: "权限范围", EN: "scope"}
	tKeyCreated     = text.Text{ZH: "新建", EN: "created"}
	tKeyChanged     = text.Text{ZH: "修改", EN: "changed"}
	tKeyOpened      = text.Text{ZH: "开户", EN: "opened"}
	tKeyDisabled    = text.Text{ZH: "停用", EN: "disabled"}
	tKeyOrders      = text.Text{ZH: "订单数", EN: "orders"}
	tKeyTargets     = text.Text{ZH: "发送目标数", EN: "targets"}
	tKeyEnded       = text.Text{ZH: "结束的会话数", EN: "sessions ended"}
	tKeyFormat      = text.Text{ZH: "格式", EN: "format"}
	tKeyHash        = text.Text{ZH: "哈希", EN: "hash"}
	tKeyKey         = text.Text{ZH: "签名密钥", EN: "key"}
	tKeyEndpoint    = text.Text{ZH: "地址", EN: "address"}
	tKeyClass       = text.Text{ZH: "结果", EN: "result"}
	tKeyNotified    = text.Text{ZH: "通知", EN: "notification"}
	tKeyFilter      = text.Text{ZH: "筛选条件", EN: "filter"}
	tKeyCount       = text.Text{ZH: "通知数", EN: "notifications"}
	tKeyAmounts     = text.Text{ZH: "金额", EN: "amounts"}
	tActManyEnd     = text.Text{ZH: "批量补单结束", EN: "a resend of many ended"}
	tKeyState       = text.Text{ZH: "状态", EN: "state"}
	tKeyOutcome     = text.Text{ZH: "处理结果", EN: "outcome"}
	tKeyProof       = text.Text{ZH: "凭证号", EN: "reference"}
	tKeyAmount      = text.Text{ZH: "金额", EN: "amount"}
	tKeyKind        = text.Text{ZH: "类型", EN: "kind"}
	tKeyTo          = text.Text{ZH: "指派给", EN: "to"}
	tActAlertTest   = text.Text{ZH: "发送测试告警", EN: "sent a test alert"}
	tActAlertRule   = text.Text{ZH: "修改告警规则", EN: "changed an alert rule"}
	tActBreakerOpen = text.Text{ZH: "手动熔断", EN: "opened a breaker"}
	tActBreakerShut = text.Text{ZH: "解除熔断", EN: "closed a breaker"}
	tActBreakerTry  = text.Text{ZH: "发起探测", EN: "probed a merchant"}
	tActEndOthers   = text.Text{ZH: "结束了其他登录", EN: "ended the other sessions"}
	tActPing        = text.Text{ZH: "发送测试通知", EN: "sent a ping"}
	tActEnable      = text.Text{ZH: "恢复通知地址", EN: "enabled an address"}
	tKeyDelivery    = text.Text{ZH: "投递", EN: "delivery"}
	tKeyHow         = text.Text{ZH: "方式", EN: "how"}
	tActAssign      = text.Text{ZH: "指派", EN: "assigned it"}
	tActSettle      = text.Text{ZH: "核销", EN: "resolved it"}
	tActIgnore      = text.Text{ZH: "忽略", EN: "ignored it"}
	tActReopen      = text.Text{ZH: "重新打开", EN: "opened it again"}
	tActMany        = text.Text{ZH: "批量补单", EN: "sent notifications again together"}
)
