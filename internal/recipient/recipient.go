// Package recipient identifies whom we call: recipients of notifications, and suppliers.
package recipient

// Kind of a recipient.
type Kind string

// Kinds of recipients.
const (
	Merchant   Kind = "merchant"
	Subscriber Kind = "subscriber" // one of our own systems that follows merchants' events
	Supplier   Kind = "supplier"   // has a breaker like the others, but gets no notifications
)

// Recipient owns a breaker, a rate, and endpoints with their health. An id belongs to one
// recipient of any kind, so a row may store only the id.
type Recipient struct {
	Kind Kind
	ID   int64
}

// Of returns the recipient of a row that stores whether it is a subscriber.
func Of(id int64, subscriber bool) Recipient {
	if subscriber {
		return Recipient{Subscriber, id}
	}
	return OfMerchant(id)
}

// OfSupplier returns a supplier.
func OfSupplier(id int64) Recipient { return Recipient{Supplier, id} }

// OfMerchant returns a merchant.
func OfMerchant(id int64) Recipient { return Recipient{Merchant, id} }

// IsSubscriber reports whether it is a subscriber: it has no orders of its own, and the
// contract owes it no notification; its events are those of merchants.
func (r Recipient) IsSubscriber() bool { return r.Kind == Subscriber }
