package booking

import (
	"time"

	"backstop/internal/compensation"
	"backstop/internal/supplier"
)

// Daily is the wait for what only a person can end. If our account at the supplier has
// insufficient funds, the call is tried each ShortWait for ShortFor: the next payments fill the
// account again.
const (
	Daily     = compensation.Daily
	ShortWait = 30 * time.Minute
	ShortFor  = 72 * time.Hour
)

// Calls are the moments of the calls that may have moved money (Unix µs; nil = never).
type Calls struct {
	First, Last *int64
	Short       *int64 // since when our account at the supplier is short of funds
}

// Age returns how long money has been on its way: since the first call or, if our account was
// short of funds, the last one, because the supplier refused those before. Without a call, and
// for what had ended when the item was opened, it counts from the item.
func (c Calls) Age(x compensation.Item, open bool, now int64) time.Duration {
	switch {
	case !open || c.First == nil:
		return x.Age(now)
	case c.Short != nil && c.Last != nil:
		return time.Duration(now-*c.Last) * time.Microsecond
	}
	return time.Duration(now-*c.First) * time.Microsecond
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
