package jobs

import (
	"context"

	"backstop/internal/report"
)

// report adds up what the last second left for the figures, and now and then
// writes down what is at risk.
func (j *Jobs) report(ctx context.Context) error {
	for range maxFold {
		n, err := report.Fold(ctx, j.o.DB)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
	}
	return report.Sample(ctx, j.o.DB)
}
