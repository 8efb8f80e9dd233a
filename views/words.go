package views

// word is one text in every language that the console speaks. The catalog is
// checked by the compiler (a key that is missing does not compile) and by tests:
// no key unused, the same placeholders, nothing empty.
type word struct{ zh, en string }

// Languages are named in themselves.
const (
	nameZH = "中文"
	nameEN = "English"
)

// The frame of every page.
var (
	tProduct       = word{"兜底 Backstop", "Backstop"}
	tSkip          = word{"跳到正文", "Skip to content"}
	tMainMenu      = word{"主导航", "Main"}
	tMonitor       = word{"监控", "Monitor"}
	tSystem        = word{"系统", "System"}
	tOverview      = word{"概览", "Overview"}
	tOrders        = word{"订单", "Orders"}
	tCallbacks     = word{"回调", "Callbacks"}
	tNotifications = word{"商户通知", "Notifications"}
	tExceptions    = word{"异常", "Exceptions"}
	tQueues        = word{"队列 Asynqmon", "Queues (Asynqmon)"}
	tAccount       = word{"我的设置", "My settings"}
	tSignOut       = word{"退出", "Sign out"}
	tFind          = word{"查找订单、通知或商户", "Find an order, a notification or a merchant"}
	tFindHint      = word{"单号、流水号、末尾 6 位、ntf_…、商户代码、金额", "Any number or its last 6 digits, ntf_…, merchant, amount"}
	tLight         = word{"浅色", "Light"}
	tDark          = word{"深色", "Dark"}
	tOtherTongue   = word{"English", "中文"}
	tCopy          = word{"复制 %s", "Copy %s"}
	tVersion       = word{"版本 %s", "Version %s"}
	tKeys          = word{"键盘快捷键", "Keyboard shortcuts"}
	tKeyRows       = word{"上一行 / 下一行", "Previous / next row"}
	tKeyOpen       = word{"选中 / 打开 / 复制编号", "Select / open / copy the id"}
	tKeyGo         = word{"概览 · 订单 · 回调 · 通知 · 异常", "Overview · orders · callbacks · notifications · exceptions"}
	tKeyPages      = word{"更新一页 / 更早一页", "Newer / older page"}
	tClose         = word{"关闭", "Close"}
	tAgo           = word{"%s前", "%s ago"}
	tIn            = word{"%s后", "in %s"}
	tNone          = word{"–", "–"}
	tColon         = word{"：", ": "}
)

// Signing in.
var (
	tSignIn       = word{"登录", "Sign in"}
	tSignInLong   = word{"登录控制台", "Sign in to the console"}
	tName         = word{"用户名", "Name"}
	tPassword     = word{"密码", "Password"}
	tWrongLogin   = word{"用户名或密码不对。", "The name or the password is wrong."}
	tExpired      = word{"一次性密码已过期，请管理员用 backstop operator reset-password 重新生成。", "The one-time password has expired: ask an administrator for a new one (backstop operator reset-password)."}
	tTooMany      = word{"尝试太多次，请 %s后再试。", "Too many tries: wait %s and try again."}
	tForeign      = word{"请求来自别的网站，已拒绝。请在本页重试。", "The request came from another site and was refused. Try again on this page."}
	tFirstHint    = word{"首次启动时，一次性密码会打印在服务的输出里：admin one-time password。", "At the first start the one-time password is printed by the server: admin one-time password."}
	tNewPassword  = word{"设置新密码", "Set a new password"}
	tMustChange   = word{"这是一次性密码。请先设置您自己的密码，才能继续。", "This is a one-time password. Set one of your own to go on."}
	tOldPassword  = word{"现在的密码", "Current password"}
	tNewPassword1 = word{"新密码", "New password"}
	tNewPassword2 = word{"再输一遍新密码", "New password again"}
	tPasswordRule = word{"12 到 256 个字符。", "12 to 256 characters."}
	tOldWrong     = word{"现在的密码不对。", "The current password is wrong."}
	tNewBad       = word{"新密码需要 12 到 256 个字符，且不能与旧密码相同。", "The new password needs 12 to 256 characters and must differ from the old one."}
	tNotSame      = word{"两次输入的新密码不同。", "The two new passwords differ."}
	tSave         = word{"保存", "Save"}
	tSaved        = word{"已保存。", "Saved."}
	tEndsOthers   = word{"修改密码会结束您的其他登录。", "A new password ends your other sessions."}
)

// One's own settings.
var (
	tLanguage  = word{"语言", "Language"}
	tTheme     = word{"主题", "Theme"}
	tZone      = word{"时区", "Time zone"}
	tByBrowser = word{"跟随浏览器", "As the browser"}
	tByDefault = word{"默认（%s）", "Default (%s)"}
	tZoneHint  = word{"IANA 名称，例如 Asia/Shanghai；留空用默认。", "IANA name such as Asia/Shanghai; empty for the default."}
	tBadChoice = word{"没有这个选项：请检查时区的名称。", "There is no such choice: check the name of the time zone."}
	tRole      = word{"角色", "Role"}
)

// Lists.
var (
	tFilter      = word{"筛选", "Filter"}
	tApply       = word{"应用", "Apply"}
	tClear       = word{"清除", "Clear"}
	tAny         = word{"全部", "Any"}
	tNewest      = word{"最新", "Newest"}
	tOlder       = word{"更早", "Older"}
	tPerPage     = word{"每页 %d 条，新的在前", "%d a page, newest first"}
	tNoMatch     = word{"没有符合条件的记录", "Nothing matches"}
	tNoMatchHow  = word{"去掉一个筛选条件再试：", "Drop a filter and try again:"}
	tNoMore      = word{"到头了", "This is the end"}
	tNoMoreHow   = word{"没有更早的记录。", "There is nothing older."}
	tTime        = word{"时间", "Time"}
	tOrder       = word{"订单", "Order"}
	tOrderNo     = word{"订单号", "Order number"}
	tAnyNo       = word{"订单号或商户单号", "Order or merchant's number"}
	tMerchant    = word{"商户", "Merchant"}
	tSupplier    = word{"供应商", "Supplier"}
	tAmount      = word{"金额", "Amount"}
	tState       = word{"状态", "State"}
	tTold        = word{"通知商户", "Merchant told"}
	tOutTradeNo  = word{"商户单号", "Merchant's number"}
	tSubject     = word{"内容", "Subject"}
	tOutcome     = word{"结果", "Outcome"}
	tReason      = word{"原因", "Reason"}
	tFrom        = word{"来源", "From"}
	tShow        = word{"显示", "Show"}
	tTaken       = word{"已收下的", "Taken"}
	tWithRefused = word{"含被拒绝的", "Refused ones too"}
	tType        = word{"类型", "Type"}
	tTries       = word{"次数", "Tries"}
	tNext        = word{"下次", "Next"}
	tSeen        = word{"次数", "Seen"}
	tKind        = word{"类型", "Kind"}
	tDetail      = word{"详情", "Detail"}
	tChecks      = word{"验证", "Checks"}
	tChecksOf    = word{"通过 %d/%d", "%d of %d passed"}
)

// What an empty list says.
var (
	tNoOrders      = word{"还没有订单", "No orders yet"}
	tNoOrdersHow   = word{"先用 backstop apply 声明供应商和商户，再让商户调用 POST /api/v1/orders；或运行 backstop serve --demo 看它动起来。", "Declare suppliers and merchants with backstop apply, then let a merchant call POST /api/v1/orders; or run backstop serve --demo to see it alive."}
	tNoCallbacks   = word{"还没有回调", "No callbacks yet"}
	tNoCallbackHow = word{"供应商的通知地址是 %s，末尾换成供应商代码。", "Give suppliers the address %s with their code at its end."}
	tNoNotifs      = word{"还没有通知", "No notifications yet"}
	tNoNotifsHow   = word{"订单付款、失败或关闭后，这里会出现给商户的通知。", "Once an order is paid, fails or closes, the merchant's notification stands here."}
	tAllClear      = word{"没有异常", "All clear"}
	tAllClearHow   = word{"金额不符、迟到付款、未知订单、通知用尽都会列在这里。", "Wrong amounts, late money, unknown orders and used-up notifications would stand here."}
)

// Errors.
var (
	tErrNotFound  = word{"没有这个页面或记录", "There is no such page or record"}
	tErrForbidden = word{"您的角色（%s）不能打开这里", "Your role (%s) may not open this"}
	tErrBusy      = word{"服务正忙，请稍后再试", "The server is busy: try again in a moment"}
	tRoleViewer   = word{"只读 viewer", "viewer"}
	tRoleSupport  = word{"客服 support", "support"}
	tRoleOps      = word{"运营 ops", "ops"}
	tRoleFinance  = word{"财务 finance", "finance"}
	tRoleLead     = word{"财务主管 lead", "lead"}
	tRoleAdmin    = word{"管理员 admin", "admin"}
	tRoleAuditor  = word{"审计员 auditor", "auditor"}
	tErrRoles     = word{"可以操作的角色：%s", "Roles that may: %s"}
	tErrField     = word{"有问题的一项：%s", "The field at fault: %s"}
	tErrForm      = word{"表单里有一项不对：请返回检查后再提交", "A field of the form is wrong: go back, check it and send it again"}
	tErrInput     = word{"地址里的筛选条件不对", "A filter in the address is wrong"}
	tErrOurs      = word{"出错了，是我们的问题", "Something went wrong, and it is our fault"}
	tErrRequest   = word{"请求号", "Request id"}
	tErrBack      = word{"回到概览", "Back to the overview"}
)

// States.
var (
	tPending          = word{"待支付", "Pending"}
	tPaying           = word{"支付中", "Paying"}
	tClosing          = word{"关单中", "Closing"}
	tPaid             = word{"已支付", "Paid"}
	tFailed           = word{"失败", "Failed"}
	tClosed           = word{"已关闭", "Closed"}
	tToldNone         = word{"无通知", "None"}
	tQueued           = word{"排队中", "Queued"}
	tSending          = word{"发送中", "Sending"}
	tRetrying         = word{"重试中", "Retrying"}
	tDelivered        = word{"已确认", "Delivered"}
	tExhausted        = word{"次数用尽", "Exhausted"}
	tSkipped          = word{"未发送", "Not sent"}
	tOpen             = word{"待处理", "Open"}
	tAssigned         = word{"已分派", "Assigned"}
	tProposed         = word{"待审批", "Proposed"}
	tApproved         = word{"已批准", "Approved"}
	tExecuting        = word{"补偿中", "Executing"}
	tResolved         = word{"已解决", "Resolved"}
	tIgnored          = word{"已忽略", "Ignored"}
	tRepeat           = word{"重复", "Repeat"}
	tNothingToDo      = word{"无需处理", "Nothing to do"}
	tFailedTry        = word{"本次未成", "Failed try"}
	tUnknownSupplier  = word{"未知供应商", "Unknown supplier"}
	tDisabledSupplier = word{"供应商已停用", "Supplier disabled"}
	tWrongAddress     = word{"地址不在白名单", "Address not allowed"}
	tBadSignature     = word{"签名不对", "Bad signature"}
	tUnparsable       = word{"无法解析", "Unreadable"}
	tAdapterFailed    = word{"适配器出错", "Adapter failed"}
	tUnavailable      = word{"暂不可用", "Unavailable"}
	tUnknownOrder     = word{"未知订单", "Unknown order"}
	tAmountMismatch   = word{"金额不符", "Amount mismatch"}
	tCurrencyMismatch = word{"币种不符", "Currency mismatch"}
	tAccountMismatch  = word{"收款账户不符", "Account mismatch"}
	tLatePayment      = word{"迟到付款", "Late payment"}
	tDuplicatePayment = word{"重复付款", "Duplicate payment"}
	tUnknownRefund    = word{"未知退款", "Unknown refund"}
	tDecryptFailed    = word{"解密失败", "Decryption failed"}
	tDisputeOpened    = word{"拒付争议", "Dispute opened"}
	tUnknownEvent     = word{"未知类型消息", "Unknown event"}
	tMalformed        = word{"内容不完整", "Malformed"}
	tNotifyExhausted  = word{"通知次数用尽", "Notification exhausted"}
	tStuckPaying      = word{"支付卡住", "Stuck paying"}
	tSubExhausted     = word{"内部系统通知用尽", "Subscription exhausted"}
	tCauseCreated     = word{"下单", "created"}
	tCausePay         = word{"发起支付", "payment started"}
	tCauseCallback    = word{"供应商回调", "supplier's callback"}
	tCauseTimeout     = word{"超时", "timeout"}
	tCauseCancel      = word{"商户取消", "cancelled by the merchant"}
	tCauseGrace       = word{"等待期满", "grace over"}
	tCauseImported    = word{"迁入", "imported"}
	tCauseSupplier    = word{"渠道已关单", "closed by the supplier"}
	tClassOK          = word{"成功", "success"}
	tClassBadStatus   = word{"应答不是 2xx", "answer is not 2xx"}
	tClassBadText     = word{"应答内容不符", "answer has another text"}
	tClassTimeout     = word{"超时无应答", "no answer in time"}
	tClassCancelled   = word{"我方停止", "stopped by us"}
	tClassDNS         = word{"域名解析失败", "name does not resolve"}
	tClassConnect     = word{"连接失败", "no connection"}
	tClassTLS         = word{"TLS 握手或证书失败", "TLS handshake or certificate"}
	tClassBroken      = word{"连接中断", "connection broke"}
	tClassBlocked     = word{"地址不允许访问", "address may not be reached"}
	tClassBadAddress  = word{"地址不可用", "address cannot be used"}
	tClassInternal    = word{"我方故障", "our fault"}
	tClassRefused     = word{"对方拒绝", "refused by the other side"}

	tClassNotConnected = word{"商户未连接", "merchant is not connected"}
	tClassLocked       = word{"密钥无法解开", "secrets do not open"}
	tClassNoChannel    = word{"程序版本缺少该通道", "this version lacks the channel"}
	tClassBlockedHere  = word{"仅本节点禁止访问该地址", "blocked on this node alone"}
)
