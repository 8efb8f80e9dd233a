package payment

import "context"

// PassNow lets the next Expire read from the watermark on.
func PassNow(p *Processor) {
	p.due.mu.Lock()
	defer p.due.mu.Unlock()
	p.due.passedAt = 0
}

// ExpireFound closes orders as a process does that has found them due.
func (p *Processor) ExpireFound(ctx context.Context, ids ...int64) (int, error) {
	return p.expire(ctx, ids)
}
