package orders

import (
	"backstop/internal/base/text"
	"backstop/internal/breaker"
	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/views/ui"
)

// heldText says what a notification would wait for.
func heldText(p *ui.Page, r *console.Resend) string {
	b := r.Breaker
	switch now := p.Now.UnixMicro(); {
	case b.ByHand:
		return p.T(tHeldByHand, r.Merchant)
	case b.State == breaker.HalfOpen && b.ProbeUntil > now:
		return p.T(tHeldProbing, r.Merchant, p.Short(b.ProbeUntil))
	case b.State == breaker.Open && b.OpenUntil > now:
		return p.T(tHeldUntil, r.Merchant, p.Short(b.OpenUntil))
	}
	return p.T(tHeldDue, r.Merchant)
}

// mayProbe says whether the form offers to send the notification as the probe. A breaker
// that was opened by hand needs the permission to control breakers.
func mayProbe(p *ui.Page, b *breaker.Row, controls bool) bool {
	return (controls || !b.ByHand) && (b.State == breaker.Open || b.ProbeUntil <= p.Now.UnixMicro())
}

// resentText is the result so far of what was sent again.
func resentText(p *ui.Page, r *console.Resent) string {
	x, now := r.Delivery, p.Now.UnixMicro()
	switch b := r.Breaker; {
	case b != nil && b.State == breaker.HalfOpen && b.ProbeDelivery == x.ID:
		return p.T(tResentProbe)
	case b != nil && b.ByHand:
		return p.T(tResentByHand)
	case b != nil && b.State == breaker.HalfOpen && b.ProbeUntil > now:
		return p.T(tResentProbing)
	case b != nil && b.State == breaker.Open && b.OpenUntil > now:
		return p.T(tResentUntil, p.Short(b.OpenUntil))
	case b != nil:
		return p.T(tResentDue)
	}
	switch {
	case x.Status == notify.Sending:
		return p.T(tResentSending)
	case x.Status == notify.Delivered && x.FinishedAt != nil:
		return p.T(tResentDelivered, p.Short(*x.FinishedAt))
	case x.NextAt == nil:
		return p.T(tResentExhausted, p.T(ui.ClassText(x.LastClass)))
	case *x.NextAt > now && *x.NextAt > r.Act.At: // who sends again makes it due at once: it was tried since
		return p.T(tResentFailed, p.T(ui.ClassText(x.LastClass)), p.Short(*x.NextAt))
	}
	return p.T(tResentQueued, p.Short(*x.NextAt))
}

// Texts of this page.
var (
	tResendGo  = text.Text{ZH: "补发 1 笔", EN: "Send 1 again"}
	tHeldUntil = text.Text{
		ZH: "商户 %s 已熔断：这条通知要等到 %s 的探测，探测成功后才会发出。",
		EN: "The breaker of %s is open: this notification waits for the probe at %s and is sent once the probe is delivered.",
	}
	tHeldDue = text.Text{
		ZH: "商户 %s 已熔断，探测即将进行：这条通知要等探测成功后才会发出。",
		EN: "The breaker of %s is open and its probe is due: this notification waits until the probe is delivered.",
	}
	tHeldProbing = text.Text{
		ZH: "商户 %s 已熔断，正在探测，最迟 %s 有结果：这条通知要等探测成功后才会发出。",
		EN: "The breaker of %s is open and a probe is under way, until %s at the latest: this notification waits until the probe is delivered.",
	}
	tHeldByHand = text.Text{
		ZH: "商户 %s 已被手动熔断：这条通知会一直等到有人解除熔断。",
		EN: "An operator opened the breaker of %s: this notification waits until an operator closes it.",
	}
	tHowQueue     = text.Text{ZH: "排队等待", EN: "Queue it"}
	tHowQueueHint = text.Text{ZH: "熔断恢复后自动发出。", EN: "It is sent automatically once the breaker has closed."}
	tHowProbe     = text.Text{ZH: "立即用这一条探测", EN: "Send this one as the probe now"}
	tHowProbeHint = text.Text{
		ZH: "成功则恢复，其余挂起的通知陆续发出；失败则再熔断一轮。",
		EN: "If it is delivered, the breaker closes and the waiting notifications follow; if not, it stays open for another round.",
	}
	tHowCloseHint    = text.Text{ZH: "该商户所有挂起的通知都会陆续发出，先慢后快。", EN: "All waiting notifications of this merchant are sent, slowly at first."}
	tResentBy        = text.Text{ZH: "%s 由 %s 补发：", EN: "Resent at %s by %s:"}
	tResentUntil     = text.Text{ZH: "已排队，等待熔断恢复，下一次探测在 %s。", EN: "queued, waiting for the breaker; the next probe is at %s."}
	tResentDue       = text.Text{ZH: "已排队，等待熔断恢复，探测即将进行。", EN: "queued, waiting for the breaker; its probe is due."}
	tResentProbing   = text.Text{ZH: "已排队，等待正在进行的探测。", EN: "queued, waiting for the probe that is under way."}
	tResentProbe     = text.Text{ZH: "这一条就是探测，正在发出，结果未到。", EN: "this is the probe; no result yet."}
	tResentByHand    = text.Text{ZH: "已排队，等待有人解除手动熔断。", EN: "queued, waiting until the manually opened breaker is closed."}
	tResentQueued    = text.Text{ZH: "已排队，%s 起可以发出。", EN: "queued, due since %s."}
	tResentSending   = text.Text{ZH: "正在发送。", EN: "being sent."}
	tResentDelivered = text.Text{ZH: "%s 已送达。", EN: "delivered at %s."}
	tResentFailed    = text.Text{ZH: "未成功（%s），下一次在 %s。", EN: "failed (%s); the next attempt is at %s."}
	tResentExhausted = text.Text{ZH: "未成功（%s），重试耗尽。", EN: "failed (%s), and all attempts are used up."}
)
