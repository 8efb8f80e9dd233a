package views

// One order's story.
var (
	tStory        = word{"全过程", "The whole story"}
	tWhy          = word{"现在怎样，为什么", "Where it stands, and why"}
	tPhasePayment = word{"收款", "Payment"}
	tPhaseDeliver = word{"通知", "Delivery"}
	tPhasePlan    = word{"计划", "Planned"}
	tCreated      = word{"创建", "Created"}
	tExpires      = word{"到期", "Expires"}
	tOrderMade    = word{"下单", "Order created"}
	tBecame       = word{"状态", "Status"}
	tByActor      = word{"由 %s", "by %s"}
	tVersionN     = word{"版本 %d", "version %d"}
	tCallbackFrom = word{"收到回调", "Callback received"}
	tFromAddr     = word{"来自 %s", "from %s"}
	tVerified     = word{"验证通过 %d/%d", "%d of %d checks passed"}
	tRaw          = word{"原始请求，%d 字节", "Raw request, %d bytes"}
	tMaskedNote   = word{"个人信息已遮盖", "personal data is masked"}
	tSameAs       = word{"与第 1 次的差异：%d 行", "Lines that differ from the first: %d"}
	tCompare      = word{"并排比较", "Compare in full"}
	tWholeRaw     = word{"查看全部", "See all of it"}
	tFrozenBody   = word{"发给商户的正文", "What the merchant is sent"}
	tExpected     = word{"期望与实际", "Expected and got"}
	tExpectText   = word{"2xx，且正文为 %s", "2xx and the body %s"}
	tExpectStatus = word{"2xx", "2xx"}
	tGotText      = word{"HTTP %d，正文 %s", "HTTP %d, body %s"}
	tGotStatus    = word{"HTTP %d", "HTTP %d"}
	tStep         = word{"第 %d 步", "Step %d"}
	tExcSettled   = word{"异常结束", "Exception settled"}
	tPlanLast     = word{"若都失败：最后第 %d 次，之后进入异常，需要人", "If all fail: attempt %d is the last; then a person is needed"}
	tNotifMade    = word{"写入通知", "Notification written"}
	tNotifSkipped = word{"不通知：没有接收此类事件的地址，或商户已关闭此类事件", "Not sent: no address takes events of this type, or the merchant has switched them off"}
	tAttemptN     = word{"通知第 %d 次", "Attempt %d"}
	tReqRes       = word{"请求与应答", "Request and answer"}
	tNode         = word{"节点 %s", "node %s"}
	tExcOpened    = word{"登记异常", "Exception opened"}
	tPlanAttempt  = word{"计划：通知第 %d 次（共 %d 次）", "Planned: attempt %d of %d"}
	tPlanExpire   = word{"计划：付款时限到", "Planned: the time to pay ends"}
	tPlanClose    = word{"计划：关单确认结束", "Planned: closing ends"}
	tPlanReclaim  = word{"若第 %d 次没有结果，届时收回重发", "If attempt %d never ends, it is taken over"}
	tMoneyCheck   = word{"资金核对", "Money check"}
	tMatch        = word{"相符", "Match"}
	tDiffers      = word{"不符", "Differs"}
	tUnpaid       = word{"未付", "Unpaid"}
	tPayable      = word{"应付", "Payable"}
	tPaidSum      = word{"实付", "Paid"}
	tDifference   = word{"差额", "Difference"}
	tHeldMore     = word{"渠道有未入账款", "Not all is booked"}
	tTakenMore    = word{"有退款或争议", "Refund or dispute"}
	tHeldTitle    = word{"渠道有、账上没有", "At the supplier, not in the books"}
	tTakenTitle   = word{"账上有、渠道已退或在争议", "In the books, refunded or disputed at the supplier"}
	tItems        = word{"商品", "Items"}
	tIDs          = word{"编号", "Identifiers"}
	tTradeNo      = word{"供应商流水号", "Supplier's number"}
	tNotifyURL    = word{"通知地址", "Notify address"}
	tOfMerchant   = word{"商户设置的地址", "the merchant's"}
	tCloseReason  = word{"关闭原因", "Close reason"}
	tCallbacksCut = word{"最早和最近各 100 条回调之间，另有 %s%s 条未显示。", "%s%s callbacks between the oldest 100 and the newest 100 are not shown."}
	tBodiesCut    = word{"另有 %s 条回调未显示原文（共 %s 字节），可单独打开。", "The bodies of %s callbacks (%s bytes) are left out here; open each one to read it."}
	tSeenAgain    = word{"同一消息又收到 %s 次，最近一次", "The same message came again %s times, last"}
	tTextCut      = word{"此处只显示前 %s 字节：页面已满。", "These are its first %s bytes: the page is full."}
	tDiffCut      = word{"比较太长，只显示一部分。", "The comparison is long: this is a part of it."}
	tBigFile      = word{"文件共 %s 字节，请下载查看。", "The file has %s bytes: download it to read it."}
	tStoryCut     = word{"每类最多显示 %d 条，此订单还有更多。", "A story shows %d events of a kind; this order has more."}
	tAttemptsList = word{"通知", "Notifications"}
)

// The sentence of why.
var (
	tWhyException    = word{"有一条异常等人决定：%s", "An exception waits for a decision: %s"}
	tWhyExceptionHow = word{"它不会自己消失；订单的状态不会因此改变。", "It does not go away by itself, and the order does not change because of it."}
	tWhyExhausted    = word{"商户没有收到通知，%d 次尝试全部用完", "The merchant was not told, and all %d attempts are used up"}
	tWhyExhaustedHow = word{"不会再自动发送。最后一次的原因：%s。请联系商户，修好后重发。", "Nothing more is sent by itself. The last reason: %s. Talk to the merchant and send again once it is mended."}
	tWhyOverdue      = word{"本应在 %s 继续，但没有", "It should have gone on at %s and has not"}
	tWhyOverdueHow   = word{"工作进程可能没有运行，或该商户的并发已占满。请查看 /readyz 和队列。", "The workers may be down, or this merchant's places are taken. Look at /readyz and at the queues."}
	tWhyQueued       = word{"通知已写入，等待第 1 次发送", "The notification is written; the first attempt has not begun"}
	tWhyQueuedHow    = word{"%s 起随时发送，共 %d 次；若都失败，约在 %s 用尽，那时才需要人。", "It goes out at %s or right after, %d attempts in all. If all fail, they are used up at about %s; only then is a person needed."}
	tWhyDisabled     = word{"商户已停用：每次通知都会失败，不会真的发出", "The merchant is disabled: each attempt fails and nothing is sent"}
	tWhyDisabledHow  = word{"%s 自动再试第 %d 次，共 %d 次，约在 %s 用尽。需要人：启用商户，或让它用尽后再处理。", "Attempt %[2]d of %[3]d comes at %[1]s by itself; they are used up at about %[4]s. A person is needed: enable the merchant, or settle it once they are used up."}
	tWhyOurFault     = word{"系统自身原因，通知未发出：%s", "Not sent through a fault of ours: %s"}
	tWhyOurFaultHow  = word{"不计入重试次数，每 30 秒自动再试；其他节点能发送时由其发出。需要人：按告警 our_fault 的提示排除原因。", "No attempt is counted. It is tried again every 30 seconds, and any node that can send it does. A person is needed: remove the cause, as the alert our_fault says."}
	tWhyNoURL        = word{"商户已没有可用的通知地址：每次通知都会失败", "No address of the merchant is left to be told: each attempt fails"}
	tWhyRetrying     = word{"商户还没有确认：第 %d 次失败（%s）", "The merchant has not confirmed: attempt %d failed (%s)"}
	tWhyRetryingHow  = word{"%s 自动发第 %d 次，共 %d 次；若都失败，约在 %s 用尽，那时才需要人。", "Attempt %[2]d of %[3]d goes out at %[1]s by itself. If all fail, they are used up at about %[4]s; only then is a person needed."}
	tWhySending      = word{"正在通知商户", "The merchant is being told now"}
	tWhySendingHow   = word{"第 %d 次正在进行；若到 %s 没有结果，就收回重发。不需要做什么。", "Attempt %d is running. If it has no end by %s, it is taken over and sent again. Nothing needs to be done."}
	tWhyPending      = word{"等待付款", "Waiting for payment"}
	tWhyPendingHow   = word{"到 %s 仍未付款就自动关闭，释放库存。", "If nobody has paid by %s, it closes by itself and its stock is free."}
	tWhyPaying       = word{"已发起支付，等待供应商回调", "A payment was started; the supplier's callback is awaited"}
	tWhyPayingHow    = word{"到 %s 仍无消息就转为关单中。", "If there is no news by %s, it starts to close."}
	tWhyClosing      = word{"关单中：钱仍可能到账", "Closing: money may still come"}
	tWhyClosingHow   = word{"到 %s 仍无消息就关闭。", "If there is no news by %s, it is closed."}
	tWhyNoAddress    = word{"已结束；没有接收此类事件的地址，或商户已关闭此类事件，所以没有通知", "It is over; no address takes events of this type, or the merchant switched them off"}
	tWhyNoAddressHow = word{"商户可以用 API 查询订单。", "The merchant can ask for the order with the API."}
	tWhyDone         = word{"一切正常：已结束，商户已确认", "All is well: it is over, and the merchant knows"}
	tWhyDoneHow      = word{"不需要做什么。", "Nothing needs to be done."}
)

// What is said of an exception that waits.
var (
	tWhyAmount       = word{"供应商收到的金额不对：应付 %s，实付 %s", "The supplier took a wrong amount: %[2]s instead of %[1]s"}
	tWhyLate         = word{"钱来晚了：订单已经%s，才收到 %s", "The money came late: the order was %s when %s arrived"}
	tWhyDuplicate    = word{"付了两次：订单已支付，又收到 %s", "It was paid twice: the order was paid already when %s arrived"}
	tWhyExceptionNow = word{"不会自动处理，订单的状态不变。现在需要人：决定这笔钱退回还是接受。", "Nothing happens by itself and the order does not change. A person is needed now: to give the money back or to accept it."}
	tWhyNext         = word{"下一步", "Next"}
)

// The waterfall.
var (
	tWaterfall     = word{"真实耗时", "Real durations"}
	tWaterfallSays = word{"从 %s 起共 %s：%d 次回调，%d 次通知。灰色窄条是省略的等待。", "%[2]s from %[1]s on: callbacks %[3]d, attempts %[4]d. Grey bands are waits that were cut out."}
	tSpanVerify    = word{"回调验证", "Verification"}
	tSpanCommit    = word{"入账提交", "Commit"}
	tSpanQueue     = word{"排队", "Queue"}
	tSpanAttempt   = word{"通知商户", "Attempts"}
	tSpanWait      = word{"等待重试", "Wait"}
	tSpanStep      = word{"步骤", "Step"}
	tSpanBegan     = word{"开始", "Began"}
	tSpanOffset    = word{"相对", "Offset"}
	tSpanPlanned   = word{"计划中", "planned"}
)

// Money in the ledger.
var (
	tLedger      = word{"账本", "Ledger"}
	tLedgerNone  = word{"这笔订单还没有记账。", "Nothing is booked for this order."}
	tDebit       = word{"借", "Debit"}
	tCredit      = word{"贷", "Credit"}
	tJournal     = word{"凭证", "Journal"}
	tRef         = word{"依据", "Reference"}
	tLedgerSum   = word{"合计", "Sum"}
	tLedgerRight = word{"等于实付", "Equals what was paid"}
	tLedgerWrong = word{"与实付不符", "Differs from what was paid"}
)

// Comparing callbacks.
var (
	tDiffPage    = word{"比较回调", "Compare callbacks"}
	tDiffTitle   = word{"不同的行：%d", "Lines that differ: %d"}
	tDiffNone    = word{"没有不同。", "They do not differ."}
	tDiffHow     = word{"每个字段一行，空白和写法的差异不算。", "A field a line; spaces and other ways to write the same do not count."}
	tEvidenceGet = word{"导出证据", "Export evidence"}

	tEvidence      = word{"证据", "Evidence"}
	tEvidenceHow   = word{"一笔订单的全部记录，已签名。导出已写入审计。", "All that is recorded of one order, signed. The export is kept in the audit."}
	tEvidenceJSON  = word{"下载签名文件 JSON", "Download the signed file (JSON)"}
	tEvidenceSeal  = word{"签名", "Seal"}
	tEvidenceBy    = word{"导出人", "Exported by"}
	tEvidenceAt    = word{"导出时间", "Exported at"}
	tEvidenceSign  = word{"签名值", "Signature"}
	tEvidenceKey   = word{"公钥", "Public key"}
	tEvidenceChain = word{"审计链末端", "Head of the audit chain"}
	tEvidenceFile  = word{"签名文件", "The signed file"}
	tEvidenceCheck = word{"存成文件后，任何人都可以离线核对：backstop verify-evidence FILE。公钥在控制台地址的 /evidence-keys。", "Saved as a file, anybody can check it offline: backstop verify-evidence FILE. Our public keys are at /evidence-keys of the address of this console."}
)

// The merchant's breaker.
var (
	tParked           = word{"熔断等待", "Parked"}
	tStoryBreaker     = word{"熔断", "Breaker"}
	tStoryFlows       = word{"已合上", "Closed"}
	tStoryParks       = word{"已断开", "Open"}
	tStoryProbes      = word{"探测中", "Half-open"}
	tCauseInARow      = word{"连续失败 %d 次", "failures in a row: %d"}
	tCauseRate        = word{"失败率过高", "too many of its attempts failed"}
	tCauseProbeDue    = word{"放行一笔探测", "one notification goes as a probe"}
	tCauseProbeTaken  = word{"探测成功", "the probe was taken"}
	tCauseProbeFailed = word{"探测失败", "the probe failed"}
	tCauseByHand      = word{"人工操作", "by a person"}
	tPlanProbe        = word{"计划：放行一笔探测", "Planned: one notification goes as a probe"}
	tWhyBreaker       = word{"商户的熔断器已断开（%s），通知在等待", "The merchant's breaker is open (%s), and the notification waits"}
	tWhyBreakerHow    = word{"%s 自动放行一笔探测：成功就陆续补发，失败就再等一轮。等待不消耗次数，现在不需要人。", "At %s one notification goes as a probe by itself. If it is taken, the others follow; if not, they wait another round. Waiting uses no attempt, and no person is needed."}
	tWhyByHand        = word{"有人在 %s 断开了这个商户的熔断器，通知在等待", "A person opened this merchant's breaker at %s, and the notification waits"}
	tWhyByHandHow     = word{"不会自动恢复：需要人把它合上。等待不消耗次数。", "It does not go on by itself: a person must close the breaker. Waiting uses no attempt."}
)
