package notify

import (
	"time"

	"backstop/internal/report"
)

// counted is what a batch of results adds to the figures. Only results that the
// rows took count: a batch that is committed again after a broken connection
// must not count twice.
func counted(now int64, batch []*outcome, won map[int64]bool) *report.Delta {
	x := report.NewDelta(now)
	for _, o := range batch {
		if !won[o.claimed.ID] {
			continue
		}
		result := report.Retried
		switch o.status {
		case Delivered:
			result = report.OK
		case Exhausted:
			result = report.Failed
		}
		x.Attempt(o.claimed.MerchantID, result, time.Duration(o.attempt.TookUS)*time.Microsecond)
		if o.claimed.Attempts == 1 {
			x.Lag(o.claimed.MerchantID, time.Duration(o.attempt.StartedAt-o.claimed.CreatedAt)*time.Microsecond)
		}
		if o.status != RetryWait && !o.claimed.Shared { // of those that share see settle
			x.Untold(o.claimed.MerchantID, o.claimed.Currency, -1, -o.claimed.Amount)
			if o.status == Delivered {
				o.claimed.notified(x)
			}
		}
	}
	return x
}

// notified counts the order as one that its merchant knows of. What is delivered a
// second time is about no money any more, and counts no more.
func (c *claimed) notified(x *report.Delta) {
	if c.Counted && c.Currency != "" {
		x.Notified(c.CreatedAt, c.Currency, c.Amount)
	}
}
