package exception

// Names of the kinds of exceptions.
const (
	UnknownOrder     = "unknown_order"
	AmountMismatch   = "amount_mismatch" // over or under; the difference is in the detail
	CurrencyMismatch = "currency_mismatch"
	AccountMismatch  = "account_mismatch"
	LatePayment      = "late_payment"
	DuplicatePayment = "duplicate_payment"
	UnknownRefund    = "unknown_refund"
	DisputeOpened    = "dispute_opened"
	UnknownEvent     = "unknown_event" // an authentic message of a type that the adapter does not know
	DecryptFailed    = "decrypt_failed"
	Malformed        = "malformed"
	NotifyExhausted  = "notify_exhausted"
	StuckPaying      = "stuck_paying"
	// SubscriptionExhausted: a subscriber was not notified. The merchant's money is
	// not at risk by that.
	SubscriptionExhausted = "subscription_exhausted"
)

// Kind is one kind of exception.
type Kind struct {
	Name string
	// Money: how it ends decides about an amount that a supplier holds or demands.
	Money bool
	// Held: the supplier holds the amount, and no order has taken it.
	Held bool
}

// kinds are all of them, those about money first.
var kinds = []Kind{
	{Name: AmountMismatch, Money: true, Held: true},
	{Name: CurrencyMismatch, Money: true, Held: true},
	{Name: AccountMismatch, Money: true, Held: true},
	{Name: DuplicatePayment, Money: true, Held: true},
	{Name: LatePayment, Money: true, Held: true},
	{Name: UnknownOrder, Money: true, Held: true},
	{Name: DisputeOpened, Money: true},
	{Name: UnknownRefund, Money: true},
	{Name: NotifyExhausted},
	{Name: StuckPaying},
	{Name: UnknownEvent},
	{Name: SubscriptionExhausted},
	{Name: DecryptFailed},
	{Name: Malformed},
}

// Kinds are the names of all kinds, those about money first.
var Kinds = func() (names []string) {
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return names
}()

// HeldKinds are the kinds whose amount a supplier holds and no order has taken.
var HeldKinds = func() (names []string) {
	for _, k := range kinds {
		if k.Held {
			names = append(names, k.Name)
		}
	}
	return names
}()

// CarriesMoney says whether ending an exception of the kind decides about money.
func CarriesMoney(kind string) bool { return kindOf(kind).Money }

// IsHeld says whether the supplier holds the amount of an exception of the kind.
func IsHeld(kind string) bool { return kindOf(kind).Held }

func kindOf(name string) Kind {
	for _, k := range kinds {
		if k.Name == name {
			return k
		}
	}
	return Kind{Name: name}
}
