package pages

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/audit"
	"backstop/internal/base/text"
	"backstop/internal/bulk"
	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/list"
	"backstop/internal/notify"
	"backstop/internal/pause"
	"backstop/internal/sandbox"
	"backstop/internal/view"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// AuditData is one page of the audit.
type AuditData struct {
	// Acts and Actors count the rows of the whole filter, by what is done and by who did it; More:
	// there are more rows than were counted.
	Acts, Actors         []list.Group
	MoreActs, MoreActors bool
	// Checked says that the chain of Length rows was checked: the first wrong row is Broken, and
	// KeyNeeded the first whose key is not here; 0 = none.
	Checked                   bool
	Length, Broken, KeyNeeded int64
}

// auditTexts is what the audit says.
var auditTexts = ui.ListTexts{
	Title: text.Audit, Icon: "scroll-text", None: tAuditNone, NoneHow: tAuditNoneHow,
	Fields: map[string]ui.Field{
		"actor": {Label: text.Actor}, "object": {Label: text.Kind, Value: ui.ObjectText},
		"action": {Label: text.Act, Value: actWord}, "id": {Label: text.Object},
	},
}

// ActColumns are those of the audit.
var ActColumns = []ui.Column[audit.Row]{
	ui.Col("number", text.Number, ui.CountKind, func(_ *ui.Page, r audit.Row) ui.Cell {
		return ui.Cell{Minor: r.Number, Show: strconv.FormatInt(r.Number, 10)}
	}).InFiles(text.Text{ZH: "#", EN: "#"}),
	ui.TimeCol("at", text.Time, func(r audit.Row) *int64 { return &r.At }),
	ui.Col("actor", text.Actor, ui.TextKind, func(_ *ui.Page, r audit.Row) ui.Cell {
		return ui.Cell{Text: r.Actor, Show: whoOf(r.Actor)}
	}).As("nowrap strong"),
	ui.Col("action", text.Act, ui.TextKind, func(p *ui.Page, r audit.Row) ui.Cell {
		return ui.Cell{Text: r.Action, Show: p.T(actWord(r.Action))}
	}).InFiles(tAction),
	ui.TextCol("object", text.Object, func(r audit.Row) string { return r.Object + ":" + r.ObjectID }).InFiles(tBatchRow).As("").
		With(actObject),
	ui.NoteCol("reason", text.Reason, func(_ *ui.Page, r audit.Row) string { return reasonOf(r) }).As("wrap"),
	ui.TextCol("params", text.Detail, func(r audit.Row) string { return r.Params }).As("small wrap").With(actDetail),
	ui.NoteCol("from", text.Address, func(_ *ui.Page, r audit.Row) string { return r.RemoteAddr }).InFiles(text.From).
		As("nowrap mono small"),
	ui.TextCol("hash", tAprHash, func(r audit.Row) string { return r.Hash }).ExportOnly(),
}

// reasonOf is the reason of an act, as its operator wrote it.
func reasonOf(r audit.Row) string {
	var params map[string]any
	if json.Unmarshal([]byte(r.Params), &params) != nil {
		return ""
	}
	text, _ := params["reason"].(string)
	return text
}

// paramsOf is the rest of an act's detail, in one line.
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
	case "action":
		return p.T(actionText(value))
	case "live":
		return p.T(ui.TextFor(ui.SaidTexts, value))
	case "outcome":
		return p.T(outcomeWord(exception.Outcome(value)))
	case "kind":
		return p.T(ui.KindText(value))
	case "state":
		return p.T(batchStates[value].Label)
	}
	return notify.Shown(value)
}

// maxDetail is the number of bytes that a row shows of it before it is collapsed.
const maxDetail = 160

// whoOf is the name of an actor, without its kind.
func whoOf(actor string) string {
	_, name, found := strings.Cut(actor, ":")
	if !found {
		return actor
	}
	return name
}

func objectLink(r audit.Row) templ.SafeURL {
	switch r.Object {
	case "order":
		return orderLink(r.ObjectID)
	case "dispute":
		return disputeLink(r.ObjectID)
	case pause.ActObject:
		return queuePath(r.ObjectID)
	}
	return ""
}

// acts are the words of what people do, by the code that the audit keeps.
var acts = map[string]text.Text{
	notify.ResendAct:           {ZH: "补发通知", EN: "resent a notification"},
	"order.note":               tActNote,
	"order.query":              {ZH: "查单", EN: "queried the supplier"},
	console.UnmaskOrder:        tActUnmask,
	console.UnmaskCallback:     tActUnmask,
	console.UnmaskNotification: tActUnmask,
	console.UnmaskException:    tActUnmask,
	"order.evidence":           {ZH: "导出了证据", EN: "exported the evidence"},
	"incident.acknowledge":     {ZH: "认领了告警事件", EN: "acknowledged an incident"},
	"incident.assign":          {ZH: "指派了告警事件", EN: "assigned an incident"},
	"incident.snooze":          {ZH: "暂缓了告警事件", EN: "snoozed an incident"},
	"incident.resume":          {ZH: "恢复了告警消息", EN: "resumed an incident's messages"},
	"incident.close":           {ZH: "关闭了告警事件", EN: "closed an incident"},
	"list.export":              {ZH: "导出了列表", EN: "exported a list"},
	"session.start":            {ZH: "登录", EN: "signed in"},
	"password.change":          {ZH: "修改了密码", EN: "changed the password"},
	"alert.test":               {ZH: "发送测试告警", EN: "sent a test alert"},
	"alert.resend":             {ZH: "重发告警", EN: "resent an alert"},
	"alert.rule":               {ZH: "修改告警规则", EN: "changed an alert rule"},
	"merchant.ping":            {ZH: "发送测试通知", EN: "sent a ping"},
	"merchant.enable_address":  {ZH: "恢复通知地址", EN: "enabled an endpoint"},
	pause.PauseAct:             {ZH: "暂停队列", EN: "paused a queue"},
	pause.ResumeAct:            {ZH: "恢复队列", EN: "resumed a queue"},
	"breaker.open":             {ZH: "手动熔断", EN: "opened a breaker"},
	"breaker.close":            {ZH: "解除熔断", EN: "closed a breaker"},
	"breaker.probe":            {ZH: "发起探测", EN: "probed a merchant"},
	"exception.note":           tActNote,
	"dispute.evidence":         {ZH: "登记举证材料", EN: "recorded evidence"},
	"exception.assign":         {ZH: "指派", EN: "assigned it"},
	"approval.propose":         {ZH: "提交复核", EN: "proposed it"},
	"approval.approve":         {ZH: "复核通过", EN: "approved it"},
	"approval.withdraw":        {ZH: "撤回", EN: "withdrew the proposal"},
	"approval.expire":          {ZH: "过期未复核", EN: "expired: nobody decided in time"},
	"approval.query":           {ZH: "再次查单", EN: "queried the supplier about it"},
	"approval.again":           {ZH: "再次执行", EN: "ran it again"},
	"approval.done":            {ZH: "已生效", EN: "it took effect"},
	"approval.fail":            {ZH: "执行失败", EN: "it could not be carried out"},
	"operator.role":            {ZH: "更改角色", EN: "changed a role"},
	"operator.token":           {ZH: "创建个人令牌", EN: "created a personal token"},
	"operator.revoke_tokens":   {ZH: "吊销个人令牌", EN: "revoked the personal tokens"},
	"exception.ignore":         {ZH: "忽略", EN: "ignored it"},
	"exception.reopen":         {ZH: "重新打开", EN: "reopened it"},
	"notification.resend_many": {ZH: "批量补单", EN: "resent notifications in bulk"},
	compensation.RunAct:        {ZH: "立即执行补偿任务", EN: "ran a compensation again"},
	compensation.CancelAct:     {ZH: "取消补偿任务", EN: "cancelled a compensation"},
	compensation.RedriveAct:    {ZH: "批量重新执行补偿任务", EN: "ran compensations again in bulk"},
	bulk.PlanEndAct:            {ZH: "批量补单结束", EN: "a bulk resend ended"},
	bulk.StartAct:              {ZH: "开始执行批次", EN: "started a batch"},
	bulk.PauseAct:              {ZH: "暂停批次", EN: "paused a batch"},
	bulk.ResumeAct:             {ZH: "继续批次", EN: "resumed a batch"},
	bulk.StopAct:               {ZH: "停止批次", EN: "stopped a batch"},
	bulk.RateAct:               {ZH: "修改批次速度", EN: "changed the rate of a batch"},
	bulk.EndAct:                {ZH: "批次结束", EN: "a batch ended"},
	"session.end_others":       {ZH: "结束了其他登录", EN: "ended the other sessions"},
	sandbox.MakeAct:            {ZH: "创建了沙箱或其新密钥", EN: "created the sandbox, or a new key for it"},
	sandbox.OrderAct:           {ZH: "创建了沙箱订单", EN: "created a sandbox order"},
	sandbox.CallbackAct:        {ZH: "发送了沙箱回调", EN: "sent a sandbox callback"},
	sandbox.DismissAct:         {ZH: "收起了入门引导", EN: "dismissed the guide"},
	"settings.apply":           {ZH: "应用了配置文件", EN: "applied a file"},
	"settings.change":          {ZH: "变更了配置（双人复核）", EN: "changed settings as approved"},
	"orders.import":            {ZH: "导入了订单", EN: "imported orders"},
	"secrets.reseal":           {ZH: "用当前主密钥重新加密了密钥", EN: "resealed the secrets"},
	"token.add":                {ZH: "新建了令牌", EN: "created a token"},
	"token.revoke":             {ZH: "作废了令牌", EN: "revoked a token"},
	"operator.add":             {ZH: "新建了操作员", EN: "added an operator"},
	"operator.disable":         {ZH: "停用了操作员", EN: "disabled an operator"},
	view.SaveAct:               {ZH: "保存了共享视图", EN: "saved a shared view"},
	view.ChangeAct:             {ZH: "修改了共享视图", EN: "changed a shared view"},
	view.DeleteAct:             {ZH: "删除了共享视图", EN: "deleted a shared view"},
	view.RestoreAct:            {ZH: "恢复了共享视图", EN: "restored a shared view"},
	view.WatchAct:              {ZH: "修改了视图提醒", EN: "changed the alert of a view"},
	"operator.reset_password":  {ZH: "重置了密码", EN: "reset a password"},
}

// details are the words of what is known of an act, by the names that the audit keeps.
var details = map[string]text.Text{
	"role":          {ZH: "角色", EN: "role"},
	"scope":         {ZH: "权限范围", EN: "scope"},
	"created":       {ZH: "新建", EN: "created"},
	"changed":       {ZH: "修改", EN: "changed"},
	"opened":        {ZH: "开户", EN: "opened"},
	"disabled":      {ZH: "停用", EN: "disabled"},
	"orders":        {ZH: "订单数", EN: "orders"},
	"targets":       {ZH: "发送目标数", EN: "targets"},
	"ended":         {ZH: "结束的会话数", EN: "sessions ended"},
	"format":        {ZH: "格式", EN: "format"},
	"key_id":        {ZH: "签名密钥", EN: "key"},
	"endpoint":      {ZH: "地址", EN: "address"},
	"class":         {ZH: "结果", EN: "result"},
	"notification":  {ZH: "通知", EN: "notification"},
	"filter":        {ZH: "筛选条件", EN: "filter"},
	"notifications": {ZH: "通知数", EN: "notifications"},
	"number":        text.Number,
	"hash":          {ZH: "哈希", EN: "hash"},
	"amounts":       {ZH: "金额", EN: "amounts"},
	"to":            {ZH: "指派给", EN: "to"},
	"delivery":      {ZH: "投递", EN: "delivery"},
	"how":           {ZH: "方式", EN: "how"},
	"outcome":       {ZH: "处理结果", EN: "outcome"},
	"state":         {ZH: "状态", EN: "state"},
	"reference":     {ZH: "凭证号", EN: "reference"},
	"amount":        {ZH: "金额", EN: "amount"},
	"kind":          {ZH: "类型", EN: "kind"},
	"cause":         {ZH: "原因", EN: "cause"},
	"was":           {ZH: "原状态", EN: "was"},
	"order_no":      {ZH: "订单号", EN: "order"},
	"matched":       {ZH: "匹配", EN: "matched"},
	"queued":        {ZH: "已安排", EN: "run again"},
	"skipped":       {ZH: "跳过", EN: "skipped"},
	"ids":           {ZH: "编号", EN: "ids"},
	"action":        {ZH: "事项", EN: "decision"},
	"live":          {ZH: "渠道查询结果", EN: "the supplier says"},
	"alone":         {ZH: "一人决定", EN: "decided by one person"},
	"exception":     {ZH: "异常", EN: "exception"},
	"order":         {ZH: "订单", EN: "order"},
	"batch":         {ZH: "批次", EN: "batch"},
	"accounts":      {ZH: "账户", EN: "accounts"},
	"funds":         {ZH: "商户资金", EN: "money"},
	"frozen":        {ZH: "冻结资金", EN: "frozen money"},
	"error":         {ZH: "错误", EN: "error"},
	"list":          {ZH: "列表", EN: "list"},
	"name":          {ZH: "名称", EN: "name"},
	"shared":        {ZH: "共享", EN: "shared"},
	"text":          {ZH: "材料", EN: "text"},
	"url":           {ZH: "链接", EN: "link"},
}

func actWord(action string) text.Text {
	if w, ok := acts[action]; ok {
		return w
	}
	return text.Text{ZH: action, EN: action}
}

// Texts of this page.
var (
	tActNote      = text.Text{ZH: "备注", EN: "wrote a note"}
	tActUnmask    = text.Text{ZH: "查看了原文", EN: "looked at unmasked data"}
	tAuditNone    = text.Text{ZH: "暂无操作记录", EN: "No activity yet"}
	tAuditNoneHow = text.Text{ZH: "登录、补发、备注和管理命令都会记在这里。", EN: "Sign-ins, resends, notes and changes by commands are recorded here."}
	tByAct        = text.Text{ZH: "按操作", EN: "By act"}
	tByPerson     = text.Text{ZH: "按人", EN: "By person"}
	tAuditCheck   = text.Text{ZH: "校验链条", EN: "Check the chain"}
	tAuditWhole   = text.Text{ZH: "校验通过：%s 条记录，未发现篡改或删除。", EN: "Chain verified: %s rows, none changed or deleted."}
	tAuditBroken  = text.Text{
		ZH: "校验未通过：第 %s 条断开，这条或前面的记录被改过或删过，或没有密钥。",
		EN: "The chain breaks at row %s: this row or one before it was changed or deleted, or it has no key. backstop verify lists the rows.",
	}
	tAuditKey = text.Text{
		ZH: "无法校验：从第 %s 条起的记录需要另一把主密钥，当前节点没有。",
		EN: "Key needed: rows from %s on were written under a master key that this node does not have.",
	}
)
