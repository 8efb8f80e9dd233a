package decision

import (
	"backstop/internal/access"
	"backstop/internal/approval"
	"backstop/internal/compensation"
	"backstop/internal/exception"
)

// Acts that one person does at once, without a proposal.
const (
	Query    = "query"     // query the supplier about the order
	Resend   = "resend"    // resend the order's notification
	Rerun    = "rerun"     // run the compensation that queries the order
	RetryNow = "retry_now" // run any other compensation
)

// OneByOne are the names of these acts.
var OneByOne = []string{Query, Resend, Rerun, RetryNow}

// AtOnce returns the acts that apply to an exception in its current state. askable = its
// order's supplier can be queried. waiting counts its runnable compensations, of one kind or
// ("") of all.
func AtOnce(x *exception.Item, queryable bool, waiting func(kind string) int, may func(access.Permission) bool) (offers []approval.Offer) {
	rerun := waiting(compensation.Rerun)
	for _, a := range []struct {
		name  string
		fits  bool
		needs access.Permission
	}{
		{Query, queryable, access.QueryOrders},
		{Resend, x.Kind == exception.NotifyExhausted && x.OrderNo != "", access.Resend},
		{Rerun, rerun > 0, access.RunCompensations},
		{RetryNow, waiting("") > rerun, access.RunCompensations},
	} {
		if x.State.Open() && a.fits && may(a.needs) {
			offers = append(offers, approval.Offer{Action: a.name, Params: map[string]string{}})
		}
	}
	return offers
}
