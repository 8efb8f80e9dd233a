// Package recipient names whom notifications are for.
package recipient

// Kind of a recipient.
type Kind string

// Kinds of recipients.
const (
	Merchant   Kind = "merchant"
	Subscriber Kind = "subscriber" // a system of our own that follows merchants' events
)

// Recipient is one merchant or one subscriber. Their ids are of one space: rows that
// keep an id alone are about one of them only.
type Recipient struct {
	Kind Kind
	ID   int64
}

// Of is the recipient whose row says whether it is a subscriber.
func Of(id int64, subscriber bool) Recipient {
	if subscriber {
		return Recipient{Subscriber, id}
	}
	return Recipient{Merchant, id}
}

// IsSubscriber says whether it is a subscriber: one that sells nothing, is owed no
// notification by the contract, and whose events are a merchant's.
func (r Recipient) IsSubscriber() bool { return r.Kind == Subscriber }
