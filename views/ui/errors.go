package ui

import "backstop/internal/base/text"

// Texts of this page.
var (
	tErrNotFound   = text.Text{ZH: "没有这个页面或记录", EN: "There is no such page or record"}
	tErrForbidden  = text.Text{ZH: "您的角色（%s）不能打开这里", EN: "Your role (%s) may not open this"}
	tErrBusy       = text.Text{ZH: "服务正忙，请稍后再试", EN: "The server is busy: try again in a moment"}
	tRoleViewer    = text.Text{ZH: "只读 viewer", EN: "viewer"}
	tRoleSupport   = text.Text{ZH: "客服 support", EN: "support"}
	tRoleOps       = text.Text{ZH: "运营 ops", EN: "ops"}
	tRoleFinance   = text.Text{ZH: "财务 finance", EN: "finance"}
	tRoleLead      = text.Text{ZH: "财务主管 lead", EN: "lead"}
	tRoleAdmin     = text.Text{ZH: "管理员 admin", EN: "admin"}
	tRoleAuditor   = text.Text{ZH: "审计员 auditor", EN: "auditor"}
	tErrRoles      = text.Text{ZH: "可以操作的角色：%s", EN: "Roles that may: %s"}
	tErrField      = text.Text{ZH: "有问题的一项：%s", EN: "The field at fault: %s"}
	tErrForm       = text.Text{ZH: "提交内容有误，请返回检查后再提交", EN: "A field of the form is wrong: go back, check it and send it again"}
	tErrInput      = text.Text{ZH: "地址里的筛选条件不对", EN: "A filter in the address is wrong"}
	tErrOurs       = text.Text{ZH: "系统异常，请稍后重试", EN: "Something went wrong, and it is our fault"}
	tErrRequest    = text.Text{ZH: "请求号", EN: "Request id"}
	tErrBack       = text.Text{ZH: "回到概览", EN: "Back to the overview"}
	tTooWide       = text.Text{ZH: "查得太久了：请缩小筛选条件或时间范围", EN: "This takes too long: narrow the filter or the time"}
	tBadCursor     = text.Text{ZH: "翻页地址被改过，或属于另一个筛选：请从最新一页开始", EN: "This page's address was changed or belongs to another filter: begin at the newest page"}
	tErrProbing    = text.Text{ZH: "正在用另一条通知探测这个商户：等结果出来再试，或者排队等待", EN: "Another notification is the probe just now: wait for its result, or queue this one"}
	tErrAlready    = text.Text{ZH: "熔断器已处于这个状态，没有改动", EN: "The breaker is in that state already: nothing was changed"}
	tErrSending    = text.Text{ZH: "这条通知正在发送：等这一次结束再补发", EN: "This notification is being sent just now: wait for the end of the attempt"}
	tTooManyMatch  = text.Text{ZH: "符合的通知太多：一次最多 5,000 条，请缩小筛选条件", EN: "Too many match: at most 5,000 at once. Narrow the filter"}
	tNothingPicked = text.Text{ZH: "没有选中或符合的通知", EN: "Nothing is selected, or nothing matches"}
	tConflict      = text.Text{ZH: "它已被改变或过期：请返回重新查看", EN: "It was changed or is too old: go back and look again"}
	tActionsOff    = text.Text{ZH: "操作暂停：Redis 或数据库有故障", EN: "Actions are off: Redis or the database is in trouble"}
)
