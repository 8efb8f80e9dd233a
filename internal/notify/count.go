package notify

import (
	"time"

	"backstop/internal/report"
)

// counted returns what results add to the figures. Only those that changed their rows count: a
// batch that is committed again after a broken connection must not count twice.
func counted(now int64, won []*outcome) *report.Delta {
	x := report.NewDelta(now)
	for _, o := range won {
		result := report.Retried
		switch o.status {
		case Delivered:
			result = report.OK
		case Exhausted:
			result = report.Failed
		}
		x.Attempt(o.claimed.RecipientID, result, time.Duration(o.attempt.TookUS)*time.Microsecond)
		if o.status != Delivered {
			x.Failure(string(o.attempt.Class), o.claimed.Currency, o.claimed.Amount, o.isFirst())
		}
		if o.claimed.Attempts == 1 {
			x.Lag(o.claimed.RecipientID, time.Duration(o.attempt.StartedAt-o.claimed.CreatedAt)*time.Microsecond)
		}
		if o.status != RetryWait && !o.claimed.Shared { // shared ones are counted in settleShared
			x.Unnotified(o.claimed.RecipientID, o.claimed.Currency, -1, -o.claimed.Amount)
			if o.status == Delivered {
				o.claimed.notified(x)
			}
		}
	}
	return x
}

// notified counts the order as notified. A second delivery carries no money and does not count.
func (c *claimed) notified(x *report.Delta) {
	if c.Counted && c.Currency != "" {
		x.Notified(c.CreatedAt, c.Currency, c.Amount)
	}
}
