package views

import (
	"backstop/internal/audit"
	"backstop/internal/breaker"
	"backstop/internal/console"
	"backstop/internal/notify"
)

// What becomes of a notification that a breaker holds back, as the form sends it.
const (
	ResendQueue = "queue"
	ResendProbe = "probe"
	ResendClose = "close"
)

// heldText says what a notification would wait for.
func heldText(p *Page, r *console.Resend) string {
	b := r.Breaker
	switch now := p.Now.UnixMicro(); {
	case b.ByHand:
		return p.T(tHeldByHand, r.Merchant)
	case b.State == breaker.HalfOpen && b.ProbeUntil > now:
		return p.T(tHeldProbing, r.Merchant, p.short(b.ProbeUntil))
	case b.State == breaker.Open && b.OpenUntil > now:
		return p.T(tHeldUntil, r.Merchant, p.short(b.OpenUntil))
	}
	return p.T(tHeldDue, r.Merchant)
}

// mayProbe says whether the form offers to send the notification as the probe. A breaker
// that was opened by hand is moved only by who may.
func mayProbe(p *Page, b *breaker.Row, controls bool) bool {
	return (controls || !b.ByHand) && (b.State == breaker.Open || b.ProbeUntil <= p.Now.UnixMicro())
}

// resentText says how that stands which somebody has sent again.
func resentText(p *Page, r *console.Resent) string {
	x, now := r.Delivery, p.Now.UnixMicro()
	switch b := r.Breaker; {
	case b != nil && b.State == breaker.HalfOpen && b.ProbeDelivery == x.ID:
		return p.T(tResentProbe)
	case b != nil && b.ByHand:
		return p.T(tResentByHand)
	case b != nil && b.State == breaker.HalfOpen && b.ProbeUntil > now:
		return p.T(tResentProbing)
	case b != nil && b.State == breaker.Open && b.OpenUntil > now:
		return p.T(tResentUntil, p.short(b.OpenUntil))
	case b != nil:
		return p.T(tResentDue)
	}
	switch {
	case x.Status == notify.Sending:
		return p.T(tResentSending)
	case x.Status == notify.Delivered && x.FinishedAt != nil:
		return p.T(tResentDelivered, p.short(*x.FinishedAt))
	case x.NextAt == nil:
		return p.T(tResentExhausted, p.T(classWord(x.LastClass)))
	case *x.NextAt > now && *x.NextAt > r.Act.At: // who sends again makes it due at once: it was tried since
		return p.T(tResentFailed, p.T(classWord(x.LastClass)), p.short(*x.NextAt))
	}
	return p.T(tResentQueued, p.short(*x.NextAt))
}

// didText is one act in a line.
func didText(p *Page, r audit.Row) string {
	text := p.T(tDid, p.short(r.At), whoOf(r.Actor), p.T(actWord(r.Action)))
	if more := paramsOf(p, r); more != "" {
		text += " · " + more
	}
	return text
}
