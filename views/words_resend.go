package views

// Sending again, and what a breaker makes of it. The first word of the texts of what
// was sent again follows tResentBy.
var (
	tHeldUntil   = word{"商户 %s 已熔断：这条通知要等到 %s 的探测，探测成功后才会发出。", "The breaker of %s is open: this notification will wait until the probe at %s, and goes out once that is taken."}
	tHeldDue     = word{"商户 %s 已熔断，探测即将进行：这条通知要等探测成功后才会发出。", "The breaker of %s is open and its probe is due: this notification will wait until that is taken."}
	tHeldProbing = word{"商户 %s 已熔断，正在探测，最迟 %s 有结果：这条通知要等探测成功后才会发出。", "The breaker of %s is open and a probe is under way, until %s at the latest: this notification will wait until that is taken."}
	tHeldByHand  = word{"商户 %s 已被手动熔断：这条通知会一直等到有人解除熔断。", "The breaker of %s was opened by hand: this notification will wait until somebody closes it."}

	tHowQueue     = word{"排队等待", "Queue it"}
	tHowQueueHint = word{"熔断恢复后自动发出。", "It goes out by itself once the breaker has closed."}
	tHowProbe     = word{"立即用这一条探测", "Send this one as the probe now"}
	tHowProbeHint = word{"成功则恢复，其余挂起的通知陆续发出；失败则再熔断一轮。", "If it is taken, the breaker closes and what waits follows; if not, it stays open for another round."}
	tHowCloseHint = word{"该商户所有挂起的通知都会陆续发出，先慢后快。", "Everything that waits for this merchant goes out, slowly at first."}

	tResentBy        = word{"%s 由 %s 补发：", "Resent at %s by %s:"}
	tResentUntil     = word{"已排队，等待熔断恢复，下一次探测在 %s。", "queued, waits for the breaker, whose next probe is at %s."}
	tResentDue       = word{"已排队，等待熔断恢复，探测即将进行。", "queued, waits for the breaker, whose probe is due."}
	tResentProbing   = word{"已排队，等待正在进行的探测。", "queued, waits for the probe that is under way."}
	tResentProbe     = word{"这一条就是探测，正在发出，结果未到。", "this one is the probe; its result is not there yet."}
	tResentByHand    = word{"已排队，等待有人解除手动熔断。", "queued, waits until somebody closes the breaker, which was opened by hand."}
	tResentQueued    = word{"已排队，%s 起可以发出。", "queued, due since %s."}
	tResentSending   = word{"正在发送。", "being sent."}
	tResentDelivered = word{"%s 已送达。", "delivered at %s."}
	tResentFailed    = word{"未成功（%s），下一次在 %s。", "not taken (%s); the next attempt is at %s."}
	tResentExhausted = word{"未成功（%s），重试耗尽。", "not taken (%s), and all attempts are used up."}

	tPlanCount      = word{"条数", "Count"}
	tWaitsBreaker   = word{"熔断挂起", "Waits for the breaker"}
	tPlanWaits      = word{"其中 %s 条的商户已熔断：现在不会发出，熔断恢复后自动发出。", "%s of them wait for a breaker: they do not go out now, but when it closes."}
	tPlanResultHead = word{"执行结果，截至", "Result as of"}
	tPlanNotified   = word{"已送达", "Notified"}
	tPlanRefused    = word{"未成功", "Refused"}
	tPlanWaiting    = word{"仍在等待", "Still waiting"}
	tPlanResult     = word{"全部已处理：%s 条已送达，%s 条未成功，%s 条仍在等待。", "All were taken up: %s notified, %s refused, %s still waiting."}

	tWhyProbing  = word{"正在用一条通知探测，最迟 %s 有结果：成功就陆续补发，失败就再等一轮。等待不消耗次数，现在不需要人。", "A probe is under way, until %s at the latest. If it is taken, the others follow; if not, they wait another round. Waiting uses no attempt, and no person is needed."}
	tErrProbing  = word{"正在用另一条通知探测这个商户：等结果出来再试，或者排队等待", "Another notification is the probe just now: wait for its result, or queue this one"}
	tErrAlready  = word{"熔断器已处于这个状态，没有改动", "The breaker is in that state already: nothing was changed"}
	tErrSending  = word{"这条通知正在发送：等这一次结束再补发", "This notification is being sent just now: wait for the end of the attempt"}
	tDid         = word{"%s %s：%s", "%s · %s %s"}
	tKeyDelivery = word{"投递", "delivery"}
	tKeyHow      = word{"方式", "how"}
)
