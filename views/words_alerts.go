package views

// Alerts.
var (
	tAlerts        = word{"告警", "Alerts"}
	tRules         = word{"规则", "Rules"}
	tRule          = word{"规则", "Rule"}
	tLimit         = word{"触发", "Fires at"}
	tClears        = word{"恢复", "Ends at"}
	tWindow        = word{"统计窗口", "Measured over"}
	tHold          = word{"持续", "For at least"}
	tQuietFor      = word{"静默", "Quiet for"}
	tEnabled       = word{"启用", "On"}
	tDisabled      = word{"停用", "Off"}
	tChange        = word{"修改", "Change"}
	tChangeRule    = word{"修改规则：%s", "Change the rule: %s"}
	tLimitHow      = word{"超过触发值并持续一段时间才告警；回到恢复值才结束，中间的间隔避免来回响。", "An alert fires beyond the first level and ends at the second; the gap keeps it from ringing back and forth."}
	tWindowHow     = word{"秒，整分钟，最多 3600。", "Seconds, whole minutes, at most 3600."}
	tQuietHow      = word{"秒。同一对象在这段时间内不重复告警。", "Seconds. The same subject does not ring again within them."}
	tHoldHow       = word{"秒。0 表示立即。", "Seconds. 0 is at once."}
	tAbove         = word{"高于 %s", "above %s"}
	tBelow         = word{"低于 %s", "below %s"}
	tFiringNow     = word{"告警中", "Firing"}
	tFiringCount   = word{"正在告警：%s 条", "Firing now: %s"}
	tOver          = word{"已恢复", "Over"}
	tHappened      = word{"已发生", "Happened"}
	tAlertSubject  = word{"对象", "Subject"}
	tWorst         = word{"最差值", "Worst"}
	tTimes         = word{"次数", "Times"}
	tEnded         = word{"结束", "Ended"}
	tAlertsNone    = word{"没有告警", "No alerts"}
	tAlertsNoneHow = word{"队列过长、成功率过低、数据库或 Redis 故障、新的异常都会列在这里。", "Long queues, low success rates, trouble with the database or Redis and new exceptions would stand here."}
	tMessages      = word{"发出的消息", "Messages"}
	tTarget        = word{"目标", "Target"}
	tMessage       = word{"内容", "Text"}
	tMsgNone       = word{"还没有发过消息", "No message was sent yet"}
	tMsgNoneHow    = word{"点“发送测试告警”检查目标是否可用。", "Send a test alert to see whether the targets work."}
	tMsgWaiting    = word{"待发送", "Waiting"}
	tMsgSent       = word{"已送达", "Sent"}
	tMsgFailed     = word{"已放弃", "Given up"}
	tNoTargets     = word{"没有告警目标：设置 BACKSTOP_ALERT_URLS 后才会有人收到。", "Nobody is told: set BACKSTOP_ALERT_URLS."}
	tTargets       = word{"目标：%s", "Targets: %s"}
	tTestAlert     = word{"发送测试告警", "Send a test alert"}
	tTestAlertHow  = word{"会发给每个目标一条测试消息，走与真实告警相同的路。", "Each target gets one message, on the way that real alerts take."}
	tDoneTest      = word{"测试告警已排队，几秒内发出；结果见下方“发出的消息”。", "The test goes out within seconds; see Messages below for what became of it."}
	tDoneRule      = word{"规则已保存，10 秒内生效。", "The rule is kept and counts within 10 seconds."}
	tBadRule       = word{"规则没有保存：恢复值要在触发值的另一侧，数值不能为负，窗口要是整分钟且不超过 3600 秒，时间不超过 7 天。", "The rule was not kept: it must end on the other side of where it fires, nothing may be negative, the window is whole minutes up to 3600 seconds, and times are 7 days at most."}
	tActAlertTest  = word{"发送测试告警", "sent a test alert"}
	tActAlertRule  = word{"修改告警规则", "changed an alert rule"}

	tActBreakerOpen = word{"手动熔断", "opened a breaker"}
	tActBreakerShut = word{"解除熔断", "closed a breaker"}
	tActBreakerTry  = word{"发起探测", "probed a merchant"}
)
