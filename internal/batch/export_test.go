package batch

import "context"

// RunNow runs a batch like a Runner, and returns once it has ended or is paused.
func (b *Batches) RunNow(ctx context.Context, id int64) error { return NewRunner(b).run(ctx, id) }

// StepNow claims a batch and does one step of at most n rows.
func (b *Batches) StepNow(ctx context.Context, id int64, n int) (int, error) {
	if _, err := b.claim(ctx, id); err != nil {
		return 0, err
	}
	return b.step(ctx, id, n)
}
