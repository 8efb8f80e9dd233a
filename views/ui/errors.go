package ui

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"backstop/internal/access"
	"backstop/internal/base/text"
)

// ErrorKind is what went wrong, as far as it concerns the person.
type ErrorKind string

// Kinds of errors.
const (
	NotFound  ErrorKind = "not_found"
	Forbidden ErrorKind = "forbidden"
	Busy      ErrorKind = "busy"
	BadInput  ErrorKind = "input"
	BadForm   ErrorKind = "form"
	Ours      ErrorKind = "ours"
	TooWide   ErrorKind = "too_wide"
	BadPage   ErrorKind = "bad_page"
	TooMuch   ErrorKind = "too_many"
	NoneFound ErrorKind = "nothing"
	Changed   ErrorKind = "changed"
	Probing   ErrorKind = "probe_running"
	Already   ErrorKind = "already"
	Sending   ErrorKind = "sending"
	Off       ErrorKind = "off"

	OwnProposal ErrorKind = "own_proposal"
	WrongRole   ErrorKind = "role"
	Proposed    ErrorKind = "proposed"
	OtherHash   ErrorKind = "hash"
	LiveSays    ErrorKind = "live_says"
	LiveUnclear ErrorKind = "live_unclear"
	NoSecond    ErrorKind = "no_second_person"
	NotAskable  ErrorKind = "cannot_be_asked"
	NoSupplier  ErrorKind = "supplier_unreachable"
	Gone        ErrorKind = "gone"
	ViewsFull   ErrorKind = "views_full"
	ViewTaken   ErrorKind = "view_taken"
	// Said errors say themselves what is the matter: see Failure.Says.
	Said    ErrorKind = "said"
	BadRule ErrorKind = "invalid_rule"
)

// explained are the codes of errors that have a page of their own.
var explained = []ErrorKind{
	Probing, Already, Sending, OwnProposal, WrongRole, Proposed, OtherHash, LiveSays, NoSecond, NotAskable,
	NoSupplier, Gone, ViewsFull, ViewTaken, BadRule,
}

// Explains reports whether a page says more of an error's code than its status does.
func Explains(code string) bool { return slices.Contains(explained, ErrorKind(code)) }

// errorTexts are what each kind says; Forbidden names the person's role.
var errorTexts = map[ErrorKind]text.Text{
	NotFound:  {ZH: "没有这个页面或记录", EN: "Page or record not found"},
	Forbidden: {ZH: "您的角色（%s）不能打开这里", EN: "Your role (%s) may not open this"},
	Busy:      {ZH: "服务正忙，请稍后再试", EN: "The server is busy: try again in a moment"},
	BadInput:  {ZH: "网址中的筛选条件有误", EN: "A filter in the URL is invalid"},
	BadForm:   {ZH: "提交内容有误，请返回检查后再提交", EN: "A field of the form is invalid: go back, correct it and submit again"},
	TooWide:   {ZH: "查询超时：请缩小筛选条件或时间范围", EN: "The query takes too long: narrow the filter or the time range"},
	BadPage:   {ZH: "翻页链接已失效，或属于另一个筛选：请从第一页开始", EN: "This page link was changed or belongs to another filter: start at the newest page"},
	TooMuch:   {ZH: "符合的通知太多：一次最多 5,000 条，请缩小筛选条件", EN: "Too many notifications match: at most 5,000 at once. Narrow the filter"},
	NoneFound: {ZH: "没有选中或符合的通知", EN: "No rows are selected, or none match"},
	Changed:   {ZH: "内容已变更或已过期：请返回重新查看", EN: "It has changed or expired: go back and look again"},
	Probing: {
		ZH: "正在用另一条通知探测该商户：请等待结果后再试，或选择排队等待",
		EN: "Another notification is being sent as the probe: wait for its result, or queue this one",
	},
	Already:     {ZH: "熔断器已处于这个状态，没有改动", EN: "The breaker is already in that state: nothing changed"},
	Sending:     {ZH: "这条通知正在发送：请等本次结束后再补发", EN: "This notification is being sent: wait for the attempt to end"},
	Off:         {ZH: "暂时不能执行操作：Redis 或数据库有故障", EN: "Actions are disabled: Redis or the database is failing"},
	OwnProposal: {ZH: "这是您自己的提议：需要另一个人复核", EN: "This is your own proposal: another person must approve it"},
	WrongRole:   {ZH: "您的角色不能复核这份提议", EN: "Your role may not decide this proposal"},
	Proposed:    {ZH: "这个对象已有一份待复核的提议", EN: "There is already an open proposal about this"},
	OtherHash:   {ZH: "提议的内容与页面上显示的不同：请重新查看", EN: "The proposal is not what your page showed: look again"},
	LiveSays: {
		ZH: "渠道查询结果与提议相反：没有生效，财务主管也不能越过",
		EN: "The supplier's answer contradicts the proposal: nothing took effect, and not even a finance lead may overrule it",
	},
	LiveUnclear: {
		ZH: "渠道无法查询或没有给出明确结果：没有生效。请稍后再试，或勾选“未经渠道证实”后由财务主管复核",
		EN: "The supplier could not be reached or gave no clear answer: nothing took effect. Try again later, or select “Unverified” for a finance lead to approve",
	},
	NoSecond: {
		ZH: "没有第二个人可以复核：先用 backstop operator add NAME --role lead 新增操作员",
		EN: "Nobody else may approve this: add an operator with backstop operator add NAME --role lead",
	},
	NotAskable: {ZH: "这个渠道不支持查单", EN: "This supplier cannot be queried"},
	NoSupplier: {ZH: "渠道暂时无法访问：没有任何改动", EN: "The supplier cannot be reached at the moment: nothing changed"},
	Gone: {
		ZH: "异常不能再由一人核销：请在异常的页面上提出处理方式，由另一个人复核",
		EN: "One person can no longer close an exception: propose a decision on its page, and another person approves it",
	},
	ViewsFull: {
		ZH: "这个列表的视图已满：每人 20 个、共享 50 个，请先删除一个",
		EN: "This list has no room for more views (20 per person, 50 shared): delete one first",
	},
	ViewTaken: {ZH: "这个列表已有同名视图：请换一个名称", EN: "This list already has a view of that name: choose another name"},
	BadRule: {
		ZH: "规则没有保存：恢复值要在触发值的另一侧，数值不能为负，窗口要是整分钟且不超过 3600 秒，时间不超过 7 天。",
		EN: "The rule was not saved. The end level must lie on the other side of the firing level, no value may be negative, the window must be whole minutes up to 3600 seconds, and times may be at most 7 days.",
	},
	Ours: {ZH: "系统异常，请稍后重试", EN: "Internal error: try again later"},
}

// Failure is why a page could not be shown, or an act not be done.
type Failure struct {
	Kind      ErrorKind
	Field     string    // of the form, where one is at fault
	Says      text.Text // what is the matter, of Said
	Roles     []string  // that may do what the person may not
	Answer    string    // of the supplier, of LiveSays
	RequestID string
}

// fieldWords are the labels of forms' fields.
var fieldWords = map[string]text.Text{
	"amount": text.Amount, "outcome": text.End, "reference": text.Proof, "reason": text.Reason, "to": text.AssignTo, "ignore": tIgnored,
	"action": text.Act, "params.amount": text.Amount, "params.order_no": text.OrderNo, "params.trade_no": text.TradeNo,
	"params.outcome": text.End,
	"name":           tViewName, "query": text.Filter,
	"params.reference": text.Proof, "params.evidence": text.Evidence, "params.unverified": tUnverified,
}

// title says what went wrong.
func (e Failure) title(p *Page) string {
	switch t, ok := errorTexts[e.Kind]; {
	case e.Kind == Said:
		said := p.T(e.Says)
		first, size := utf8.DecodeRuneInString(said)
		return string(unicode.ToUpper(first)) + said[size:]
	case e.Kind == Forbidden:
		return p.T(t, p.OwnRoles())
	case ok:
		return p.T(t)
	}
	return p.T(errorTexts[Ours])
}

// about names the field at fault, the roles that may, or what the supplier said; "" = none.
func (e Failure) about(p *Page) string {
	switch {
	case e.Kind == LiveSays:
		return p.T(tErrAnswer, p.T(TextFor(SaidTexts, e.Answer)))
	case len(e.Roles) > 0:
		return p.T(tErrRoles, p.RoleNames(e.Roles))
	case e.Kind == BadForm || e.Kind == Said:
		if label, ok := fieldWords[e.Field]; ok {
			return p.T(tErrField, p.T(label))
		}
	}
	return ""
}

// Problem is what a form says that was refused.
func (e Failure) Problem(p *Page) string {
	if e.Kind == BadForm && e.Field == "reason" {
		return p.T(text.ReasonRule)
	}
	about := e.about(p)
	switch {
	case about == "" || e.Kind == Said:
		return e.title(p)
	case e.Kind == BadForm:
		return about
	}
	return e.title(p) + " · " + about
}

var roleWords = map[string]text.Text{
	access.Viewer:  {ZH: "只读", EN: "Viewer"},
	access.Support: {ZH: "客服", EN: "Support"},
	access.Ops:     {ZH: "运营", EN: "Operations"},
	access.Finance: {ZH: "财务", EN: "Finance"},
	access.Lead:    {ZH: "财务主管", EN: "Finance lead"},
	access.Admin:   {ZH: "管理员", EN: "Administrator"},
	access.Auditor: {ZH: "审计员", EN: "Auditor"},

	access.Merchant: {ZH: "商户", EN: "Merchant"},
}

// RoleText names a role.
func RoleText(role string) text.Text { return TextFor(roleWords, role) }

// OwnRoles names the roles of who is signed in.
func (p *Page) OwnRoles() string { return p.RoleNames(p.Roles.Names()) }

// RoleNames names roles in the user's language.
func (p *Page) RoleNames(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = p.T(RoleText(name))
	}
	return strings.Join(all, " · ")
}

// Texts of this page.
var (
	tUnverified = text.Text{
		ZH: "未经渠道证实（渠道没有给出结果，需勾选后由财务主管复核）",
		EN: "Unverified (the supplier gave no answer: select this, and a finance lead must approve)",
	}
	tErrAnswer  = text.Text{ZH: "渠道查询结果：%s", EN: "The supplier said: %s"}
	tErrRoles   = text.Text{ZH: "可以操作的角色：%s", EN: "Roles that may do this: %s"}
	tErrField   = text.Text{ZH: "有问题的一项：%s", EN: "Invalid field: %s"}
	tErrRequest = text.Text{ZH: "请求号", EN: "Request ID"}
	tErrBack    = text.Text{ZH: "回到今天", EN: "Back to today"}
)
