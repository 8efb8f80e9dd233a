package wording

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"backstop/internal/approval"
	"backstop/internal/audit"
	"backstop/internal/base/text"
	"backstop/internal/batch"
	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/internal/orderquery"
	"backstop/internal/pause"
	"backstop/internal/sandbox"
	"backstop/internal/savedview"
	"backstop/internal/settings/apply"
	"backstop/internal/sweep"
	"backstop/views/ui"
)

func Act(action string) text.Text {
	if w, ok := Acts[action]; ok {
		return w
	}
	return text.Text{ZH: action, EN: action}
}

// Acts are the words of what people do, by the code that the audit keeps.
var Acts = map[string]text.Text{
	notify.ResendAct:           {ZH: "补发通知", EN: "resent a notification"},
	"order.note":               tActNote,
	"order.query":              {ZH: "查单", EN: "queried the supplier"},
	orderquery.TryAct:          {ZH: "试查渠道", EN: "tried a supplier's query"},
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
	"session.break_glass":      {ZH: "紧急登录（用密码）", EN: "signed in for an emergency, by password"},
	"operator.link":            {ZH: "改为通过身份提供方登录", EN: "moved an operator to the provider"},
	"operator.join":            {ZH: "首次通过身份提供方登录", EN: "signed in at the provider for the first time"},
	"session.start":            {ZH: "登录", EN: "signed in"},
	"password.change":          {ZH: "修改了密码", EN: "changed the password"},
	"alert.test":               {ZH: "发送测试告警", EN: "sent a test alert"},
	"alert.resend":             {ZH: "重发告警", EN: "resent an alert"},
	"alert.rule":               {ZH: "修改告警规则", EN: "changed an alert rule"},
	"merchant.ping":            {ZH: "发送测试通知", EN: "sent a ping"},
	"merchant.rotate_secret":   {ZH: "轮换签名密钥", EN: "rotated the signing secret"},
	"merchant.test_key":        {ZH: "生成测试模式密钥", EN: "made a key of test mode"},
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
	approval.ManyAct:           {ZH: "批量复核", EN: "approved several proposals"},
	"approval.withdraw":        {ZH: "撤回", EN: "withdrew the proposal"},
	"approval.expire":          {ZH: "过期未复核", EN: "expired: nobody decided in time"},
	"approval.query":           {ZH: "再次查单", EN: "queried the supplier about it"},
	"approval.again":           {ZH: "再次执行", EN: "ran it again"},
	"approval.done":            {ZH: "已生效", EN: "it took effect"},
	"approval.fail":            {ZH: "执行失败", EN: "it could not be carried out"},
	"operator.role":            {ZH: "更改角色", EN: "changed a role"},
	"operator.merchants":       {ZH: "限定商户", EN: "limited somebody to merchants"},
	"operator.token":           {ZH: "创建个人令牌", EN: "created a personal token"},
	"operator.revoke_tokens":   {ZH: "吊销个人令牌", EN: "revoked the personal tokens"},
	"exception.ignore":         {ZH: "忽略", EN: "ignored it"},
	"exception.reopen":         {ZH: "重新打开", EN: "reopened it"},
	"notification.resend_many": {ZH: "批量补单", EN: "resent notifications in bulk"},
	compensation.RunAct:        {ZH: "立即执行补偿任务", EN: "ran a compensation again"},
	compensation.CancelAct:     {ZH: "取消补偿任务", EN: "cancelled a compensation"},
	compensation.RedriveAct:    {ZH: "批量重新执行补偿任务", EN: "ran compensations again in bulk"},
	batch.StartAct:             {ZH: "开始执行批次", EN: "started a batch"},
	batch.PauseAct:             {ZH: "暂停批次", EN: "paused a batch"},
	batch.ResumeAct:            {ZH: "继续批次", EN: "resumed a batch"},
	batch.StopAct:              {ZH: "停止批次", EN: "stopped a batch"},
	batch.RateAct:              {ZH: "修改批次速度", EN: "changed the rate of a batch"},
	batch.EndAct:               {ZH: "批次结束", EN: "a batch ended"},
	"session.end":              {ZH: "结束了一个登录", EN: "ended a session"},
	"session.end_others":       {ZH: "结束了其他登录", EN: "ended the other sessions"},
	sandbox.MakeAct:            {ZH: "创建了沙箱或其新密钥", EN: "created the sandbox, or a new key for it"},
	sandbox.OrderAct:           {ZH: "创建了沙箱订单", EN: "created a sandbox order"},
	sandbox.CallbackAct:        {ZH: "发送了沙箱回调", EN: "sent a sandbox callback"},
	sandbox.DismissAct:         {ZH: "收起了入门引导", EN: "dismissed the guide"},
	"settings.apply":           {ZH: "应用了配置文件", EN: "applied a file"},
	apply.EditAct:              {ZH: "修改了配置", EN: "changed settings"},
	"settings.change":          {ZH: "变更了配置（双人复核）", EN: "changed settings as approved"},
	"orders.import":            {ZH: "导入了订单", EN: "imported orders"},
	"secrets.reseal":           {ZH: "用当前主密钥重新加密了密钥", EN: "resealed the secrets"},
	"token.add":                {ZH: "新建了令牌", EN: "created a token"},
	"token.revoke":             {ZH: "作废了令牌", EN: "revoked a token"},
	"operator.add":             {ZH: "新建了操作员", EN: "added an operator"},
	"operator.disable":         {ZH: "停用了操作员", EN: "disabled an operator"},
	"operator.enable":          {ZH: "启用了操作员", EN: "enabled an operator"},
	"operator.invite":          {ZH: "邀请了操作员", EN: "invited an operator"},
	"operator.mail_invitation": {ZH: "把邀请链接发到邮箱", EN: "mailed an invitation"},
	"operator.accept":          {ZH: "接受邀请并设置了密码", EN: "accepted an invitation and set a password"},
	"operator.reset_second":    {ZH: "重置了两步验证", EN: "reset a second factor"},
	"second.set_up":            {ZH: "设置了两步验证", EN: "set up a second factor"},
	"second.remove":            {ZH: "取消了两步验证", EN: "removed the second factor"},
	"second.add_passkey":       {ZH: "添加了通行密钥", EN: "added a passkey"},
	"second.remove_passkey":    {ZH: "删除了通行密钥", EN: "removed a passkey"},
	"second.renew":             {ZH: "更换了恢复码", EN: "replaced the recovery codes"},
	"second.recover":           {ZH: "用恢复码登录", EN: "signed in by a recovery code"},
	"operator.end_sessions":    {ZH: "结束了登录", EN: "ended the sessions"},
	savedview.SaveAct:          {ZH: "保存了共享视图", EN: "saved a shared view"},
	savedview.ChangeAct:        {ZH: "修改了共享视图", EN: "changed a shared view"},
	savedview.DeleteAct:        {ZH: "删除了共享视图", EN: "deleted a shared view"},
	savedview.RestoreAct:       {ZH: "恢复了共享视图", EN: "restored a shared view"},
	savedview.WatchAct:         {ZH: "修改了视图提醒", EN: "changed the alert of a view"},
	"operator.reset_password":  {ZH: "重置了密码", EN: "reset a password"},
}

// details are the words of what is known of an act, by the names that the audit keeps.
var details = map[string]text.Text{
	"role":          {ZH: "角色", EN: "role"},
	"mailed_to":     {ZH: "邮箱", EN: "mailed to"},
	"issuer":        {ZH: "身份提供方", EN: "provider"},
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
	"refund":        {ZH: "退款", EN: "refund"},
	"payout":        {ZH: "出款", EN: "payout"},
	"dispute":       {ZH: "拒付争议", EN: "dispute"},
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
	"approved":      {ZH: "已复核", EN: "approved"},
	"refused":       {ZH: "未复核", EN: "not approved"},
}

// ActParams is the rest of an act's detail, in one line.
func ActParams(p *ui.Page, r audit.Row) string {
	var params map[string]any
	if json.Unmarshal([]byte(r.Params), &params) != nil {
		return ""
	}
	delete(params, "reason")
	delete(params, "results")
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

// ActReason is the reason of an act, as its operator wrote it.
func ActReason(r audit.Row) string {
	var params map[string]any
	if json.Unmarshal([]byte(r.Params), &params) != nil {
		return ""
	}
	text, _ := params["reason"].(string)
	return text
}

// Actor is who acted: an operator by name alone, anything else by its kind too.
func Actor(p *ui.Page, actor string) string {
	kind, name, found := strings.Cut(actor, ":")
	t, known := actors[kind]
	switch {
	case known && found:
		return p.T(t, name)
	case known:
		return p.T(t)
	case found:
		return name
	}
	return actor
}

// actors are what acts, besides operators.
var actors = map[string]text.Text{
	"supplier":  {ZH: "渠道 %s", EN: "supplier %s"},
	"merchant":  {ZH: "商户 %s", EN: "merchant %s"},
	"command":   {ZH: "命令 %s", EN: "command %s"},
	"token":     {ZH: "令牌 %s", EN: "token %s"},
	"backstop":  {ZH: "系统", EN: "the system"},
	sweep.Clock: {ZH: "系统定时", EN: "schedule"},
}

// ActLine is one act in a line.
func ActLine(p *ui.Page, r audit.Row) string {
	text := p.T(tDid, p.Short(r.At), Actor(p, r.Actor), p.T(Act(r.Action)))
	if more := ActParams(p, r); more != "" {
		text += " · " + more
	}
	return text
}

// paramOf is one of them: codes of ours in words.
func paramOf(p *ui.Page, name, value string) string {
	switch name {
	case "action":
		return p.T(Action(value))
	case "live":
		return p.T(ui.TextFor(ui.SaidTexts, value))
	case "outcome":
		return p.T(ExceptionOutcome(exception.Outcome(value)))
	case "kind":
		return p.T(ui.KindText(value))
	case "state":
		return p.T(BatchStates[value].Label)
	}
	return notify.Shown(value)
}

var tActNote = text.Text{ZH: "备注", EN: "wrote a note"}

var tActUnmask = text.Text{ZH: "查看了原文", EN: "looked at unmasked data"}

var tDid = text.Text{ZH: "%s %s：%s", EN: "%s · %s %s"}
