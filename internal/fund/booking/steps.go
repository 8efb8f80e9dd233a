package booking

import (
	"time"

	"backstop/internal/compensation"
	"backstop/internal/supplier"
)

// Steps are the waits between queries about money on its way out. After the last one it is
// queried daily, and an operator must look at it.
var Steps = []time.Duration{
	10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour,
	12 * time.Hour,
}

// Daily is the wait after the last step. If our account at the supplier has insufficient funds,
// the call is tried each ShortWait for ShortFor: the next payments fill the account again.
const (
	Daily     = 24 * time.Hour
	ShortWait = 30 * time.Minute
	ShortFor  = 72 * time.Hour
)

// WaitAfter returns how long to wait after so many tries; last = the steps are used up.
func WaitAfter(tries int64) (d time.Duration, last bool) {
	if tries > int64(len(Steps)) {
		return Daily, true
	}
	return Steps[max(tries, 1)-1], false
}

// WaitSince returns how long to wait if the last call was made so long ago; last = the steps are
// used up. Unlike WaitAfter it does not depend on how often somebody had it queried.
func WaitSince(call time.Duration) (d time.Duration, last bool) {
	var due time.Duration
	for _, step := range Steps {
		if due += step; call < due {
			return due - call, false
		}
	}
	return Daily, true
}

// CauseOf returns the cause of a compensation after a call of this class.
func CauseOf(c supplier.Class) compensation.Cause {
	switch c {
	case supplier.ClassRefused:
		return compensation.SupplierRefused
	case supplier.ClassTimeout, supplier.ClassConnect, supplier.ClassTLS:
		return compensation.SupplierTimeout
	case supplier.ClassBadSignature:
		return compensation.SupplierSignature
	}
	return compensation.SupplierUnknown
}
