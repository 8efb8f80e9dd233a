package views

// Details of one thing, and what people do about it.
var (
	tCallback     = word{"供应商回调", "Callback"}
	tPassed       = word{"通过", "passed"}
	tNotPassed    = word{"未通过", "not passed"}
	tRefusedNote  = word{"这个回调在门口被拒绝：没有改变任何订单，只留下一份有限的记录。", "This callback was refused at the door: it changed no order, and only a bounded record of it is kept."}
	tAttemptsHead = word{"每次尝试", "Attempts"}
	tAttemptsCut  = word{"只显示最早的 %s 次。", "Only the first %s are shown."}
	tNotTried     = word{"还没有尝试", "Not tried yet"}
	tNotTriedHow  = word{"到了时间会自动发送；没有地址的通知不会发送。", "It goes out by itself when its time comes; one without an address never does."}
	tSays         = word{"通知内容", "What it says"}
	tSeenN        = word{"报告 %s 次", "times reported: %s"}
	tWhatIsWrong  = word{"问题", "What is wrong"}
	tReference    = word{"流水号或通知编号", "Supplier's number or notification"}
	tEventType    = word{"事件", "Event"}
	tItsCallbacks = word{"这个编号的全部回调", "All callbacks of this number"}
	tPeopleSaid   = word{"人工处理记录", "What people said and did"}
	tNobodyYet    = word{"还没有人处理", "Nobody did anything yet"}
	tNobodyYetHow = word{"备注、分派和解决都会记在这里。", "Notes, assignments and the end of it stand here."}
	tInHand       = word{"负责人", "In whose hands"}
	tInNobodys    = word{"没有人", "Nobody"}
	tAssign       = word{"分派", "Assign"}
	tAssignTo     = word{"分派给", "Assign to"}
	tSettle       = word{"处理完成（核销）", "Resolve"}
	tSettleHow    = word{"只记录已经处理好，不会改变订单，也不会动钱。同一事实再次出现时会重新打开。", "It records that the matter is settled. It changes no order and moves no money. Reported again, it is open again."}
	tSettleMoney  = word{"此处不会动钱：请先在渠道或银行处理好，再记录结果和凭证。", "No money moves here: settle it with the supplier or the bank first, then record the outcome and what proves it."}
	tEnd          = word{"处理结果", "Outcome"}
	tOutRefunded  = word{"已在别处退款", "Refunded elsewhere"}
	tOutAccepted  = word{"已在别处入账", "Accepted elsewhere"}
	tOutNone      = word{"无资金影响", "No effect on money"}
	tProof        = word{"凭证号", "Reference"}
	tProofRule    = word{"例如渠道退款单号，最多 200 个字符；无资金影响时可不填", "Such as the supplier's refund number, at most 200 characters; optional where there was no effect"}
	tIgnore       = word{"忽略：再次出现时不重新打开，也不告警", "Ignore: reported again, it stays closed and does not alert"}
	tReopen       = word{"重新打开", "Open again"}
	tReopenHow    = word{"异常回到待处理并再次告警；之前的结果留在审计中。", "The exception waits again and alerts again; how it ended stays in the audit."}
	tOnlyRoles    = word{"涉及资金：只有 %s 可以核销或重新打开。", "This is about money: only %s may resolve it or open it again."}
	tActAssign    = word{"指派", "assigned it"}
	tActSettle    = word{"核销", "resolved it"}
	tActIgnore    = word{"忽略", "ignored it"}
	tActReopen    = word{"重新打开", "opened it again"}
	tActMany      = word{"批量重发通知", "sent notifications again together"}
)

// Many notifications together.
var (
	tPickAll       = word{"选中本页", "Select the page"}
	tPickRow       = word{"选中 %s", "Select %s"}
	tPickedN       = word{"已选", "Selected"}
	tDryPicked     = word{"预检：选中的", "Dry run: selected"}
	tDryAll        = word{"预检：全部 %s%s 条", "Dry run: all %s%s"}
	tTook          = word{"耗时", "Took"}
	tBulk          = word{"批量操作", "Bulk actions"}
	tPlanTitle     = word{"批量补单", "Send notifications again"}
	tDryRun        = word{"预检结果（不发送）", "Dry run"}
	tFrozenFilter  = word{"冻结时的列表", "The list that was frozen"}
	tNothingSent   = word{"还没有发送任何通知。", "Nothing was sent yet."}
	tTakenUp       = word{"已处理 %s / %s", "%s of %s taken up"}
	tPlanned       = word{"待执行", "Planned"}
	tPlanRunning   = word{"进行中", "Running"}
	tPlanDone      = word{"已完成", "Done"}
	tPlanStopped   = word{"已停止", "Stopped"}
	tWillSend      = word{"会发送", "Will send"}
	tSkipFinal     = word{"跳过：已有结果", "Skip: final"}
	tSkipBlocked   = word{"跳过：正在进行", "Skip: on its way"}
	tPlanUntil     = word{"有效至", "good until"}
	tPlanDrifted   = word{"金额与预检相差超过 1%，已停止。已发送的保留，其余没有发送。请重新预检。", "The amount differs from the dry run by more than 1 %, so it stopped. What was sent stays sent, the rest was not. Make a new dry run."}
	tPlanEmpty     = word{"没有可以补发的通知。", "There is nothing to send."}
	tPlanNotYours  = word{"只有 %s 能执行这个计划。", "Only %s may run this plan."}
	tPlanExpired   = word{"这个预检已过期，请重新做一次。", "This dry run is too old: make a new one."}
	tPlanGoOn      = word{"执行被中断，可以继续：已发送的不会再发。", "The run was interrupted and can go on: nothing is sent twice."}
	tTypeAmount    = word{"输入金额 %s（%s）以确认", "Type the amount %s (%s) to confirm"}
	tSendN         = word{"补发 %s 条", "Send %s again"}
	tTooManyMatch  = word{"符合的通知太多：一次最多 5,000 条，请缩小筛选条件", "Too many match: at most 5,000 at once. Narrow the filter"}
	tNothingPicked = word{"没有选中或符合的通知", "Nothing is selected, or nothing matches"}
	tConflict      = word{"它已被改变或过期：请返回重新查看", "It was changed or is too old: go back and look again"}
)

// What is broken, on every page.
var (
	tBannerRedis = word{"Redis 连不上：通知改由数据库每秒推进，会慢一些；操作暂停。", "Redis cannot be reached: notifications go on from the database, more slowly. Actions are off."}
	tBannerStuck = word{"数据库只读或连不上：回调会被拒收并由供应商重试；操作暂停。", "The database is read-only or cannot be reached: callbacks are not taken, and suppliers repeat them. Actions are off."}
	tActionsOff  = word{"操作暂停：Redis 或数据库有故障", "Actions are off: Redis or the database is in trouble"}
)
