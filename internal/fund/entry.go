// Package fund says how money is booked. Its table has every fact of money that Backstop
// knows, with the two accounts and the reference of its entry, and nothing else posts: a
// fact that is not in the table cannot be booked, and none can be booked twice, since
// references are unique.
package fund

import (
	"fmt"
	"strings"

	"backstop/internal/ledger"
)

// Fact is one kind of thing that happened to money.
type Fact string

// The facts (docs/funds.md has them with their accounts).
const (
	Paid      Fact = "paid"
	Corrected Fact = "corrected"
	Held      Fact = "held"
	Elsewhere Fact = "elsewhere"
	Opening   Fact = "opening"
	Fee       Fact = "fee"
	Cost      Fact = "cost"

	RefundHeld     Fact = "refund_held"
	RefundDone     Fact = "refund_done"
	RefundBack     Fact = "refund_back"
	RefundReturned Fact = "refund_returned"
	RefundFee      Fact = "refund_fee"
	RefundFeeAgain Fact = "refund_fee_again"
	RefundCost     Fact = "refund_cost"
	RefundAdopted  Fact = "refund_adopted"

	PayoutDebit    Fact = "payout_debit"
	PayoutCredit   Fact = "payout_credit"
	PayoutReversal Fact = "payout_reversal"
	PayoutFee      Fact = "payout_fee"
	PayoutFeeBack  Fact = "payout_fee_back"
	PayoutLate     Fact = "payout_late"
	PayoutReturned Fact = "payout_returned"

	DisputeHeld       Fact = "dispute_held"
	DisputeWithdrawn  Fact = "dispute_withdrawn"
	DisputeReinstated Fact = "dispute_reinstated"
	DisputeReleased   Fact = "dispute_released"
	DisputeFee        Fact = "dispute_fee"
	DisputeFeeBack    Fact = "dispute_fee_back"

	Freeze   Fact = "freeze"
	Unfreeze Fact = "unfreeze"
	Adjust   Fact = "adjust"
)

// Kind is what a statement calls an entry (contract §8, /statement).
type Kind string

// Kinds of lines on a statement; "" = none of the merchant's.
const (
	KindPayment        Kind = "payment"
	KindFee            Kind = "fee"
	KindRefund         Kind = "refund"
	KindRefundFailed   Kind = "refund_failed"
	KindPayout         Kind = "payout"
	KindPayoutReversed Kind = "payout_reversed"
	KindDispute        Kind = "dispute"
	KindDisputeWon     Kind = "dispute_won"
	KindFreeze         Kind = "freeze"
	KindUnfreeze       Kind = "unfreeze"
	KindAdjustment     Kind = "adjustment"
	KindOpening        Kind = "opening"
)

// Row is one line of the table. Debit, Credit and Ref are patterns: {S} is the code of the
// supplier, {M} of the merchant, {id} of what it is about, {currency} its currency, {from} and {to} are
// whole accounts, where the fact leaves the choice.
type Row struct {
	Fact               Fact
	Debit, Credit, Ref string
	Kind               Kind   // on the merchant's statement
	Meaning            string // a sentence for docs/funds.md
	// Once: several processes may book the fact at the same time; the first entry stays.
	Once bool
}

// Table is every entry that can be posted.
var Table = []Row{
	{Fact: Paid, Debit: "{from}", Credit: "merchant:{M}", Ref: "paid:{id}", Kind: KindPayment, Meaning: "A buyer paid an order: the supplier owes us, we owe the merchant. `{from}` is `supplier:{S}`, or `suspense:{S}` where the money was held."},
	{Fact: Corrected, Debit: "{from}", Credit: "{to}", Ref: "corrected:{id}", Meaning: "What was held of an order's payment had another amount: the difference between `supplier:{S}` and `suspense:{S}`."},
	{Fact: Held, Debit: "supplier:{S}", Credit: "suspense:{S}", Ref: "held:{id}", Meaning: "Money came that fits no order. `{id}` is the account's id and the trade number.", Once: true},
	{Fact: Elsewhere, Debit: "suspense:{S}", Credit: "{to}", Ref: "elsewhere:{id}", Kind: KindAdjustment, Meaning: "Held money was settled outside of Backstop: refunded (`supplier:{S}`) or kept (`merchant:{M}`)."},
	{Fact: Opening, Debit: "opening", Credit: "merchant:{M}", Ref: "opening:{M}:{currency}", Kind: KindOpening, Meaning: "A balance taken over from elsewhere."},
	{Fact: Fee, Debit: "merchant:{M}", Credit: "income:fees", Ref: "fee:{id}", Kind: KindFee, Meaning: "What the merchant pays for an order."},
	{Fact: Cost, Debit: "cost:{S}", Credit: "supplier:{S}", Ref: "cost:{id}", Meaning: "What the supplier keeps of an order."},

	{Fact: RefundHeld, Debit: "{from}", Credit: "refund:{S}", Ref: "refund:{id}:D", Kind: KindRefund, Meaning: "A refund was asked for: its money is held. `{from}` is `merchant:{M}`, or `suspense:{S}` for money without an order."},
	{Fact: RefundDone, Debit: "refund:{S}", Credit: "supplier:{S}", Ref: "refund:{id}:C", Meaning: "The refund succeeded: the supplier paid it out of what it owes us."},
	{Fact: RefundBack, Debit: "refund:{S}", Credit: "{to}", Ref: "refund:{id}:R", Kind: KindRefundFailed, Meaning: "The refund failed, was rejected, cancelled or returned: its money goes back where it came from."},
	{Fact: RefundReturned, Debit: "supplier:{S}", Credit: "refund:{S}", Ref: "refund:{id}:X", Meaning: "The money of a refund came back after its success; `R` follows in the same journal."},
	{Fact: RefundFee, Debit: "income:fees", Credit: "merchant:{M}", Ref: "refund:{id}:F", Kind: KindFee, Meaning: "The merchant's fee is returned with a refund (`refund: return`)."},
	{Fact: RefundFeeAgain, Debit: "merchant:{M}", Credit: "income:fees", Ref: "refund:{id}:FR", Kind: KindFee, Meaning: "The returned fee is taken again, for the refund was returned."},
	{Fact: RefundCost, Debit: "supplier:{S}", Credit: "cost:{S}", Ref: "refund:{id}:K", Meaning: "The supplier returns its cost with a refund (`refund: return`)."},
	{Fact: RefundAdopted, Debit: "{from}", Credit: "supplier:{S}", Ref: "refund:{id}:A", Kind: KindRefund, Meaning: "Somebody refunded at the supplier itself. `{from}` is `merchant:{M}`, or `suspense:{S}` for money without an order."},

	{Fact: PayoutDebit, Debit: "merchant:{M}", Credit: "payout:{S}", Ref: "payout:{id}:D", Kind: KindPayout, Meaning: "A payout was approved: its money is on its way out."},
	{Fact: PayoutCredit, Debit: "payout:{S}", Credit: "supplier:{S}", Ref: "payout:{id}:C", Meaning: "The supplier paid it out."},
	{Fact: PayoutReversal, Debit: "payout:{S}", Credit: "merchant:{M}", Ref: "payout:{id}:R", Kind: KindPayoutReversed, Meaning: "It definitely failed, or came back: the merchant has its money again."},
	{Fact: PayoutFee, Debit: "merchant:{M}", Credit: "income:fees", Ref: "payout:{id}:F", Kind: KindFee, Meaning: "What the merchant pays for a payout."},
	{Fact: PayoutFeeBack, Debit: "income:fees", Credit: "merchant:{M}", Ref: "payout:{id}:FR", Kind: KindFee, Meaning: "The fee is given back by the reversal."},
	{Fact: PayoutLate, Debit: "merchant:{M}", Credit: "supplier:{S}", Ref: "payout:{id}:L", Kind: KindPayout, Meaning: "It arrived after its reversal: the merchant is debited again."},
	{Fact: PayoutReturned, Debit: "supplier:{S}", Credit: "payout:{S}", Ref: "payout:{id}:X", Meaning: "The money came back after its success; `R` follows in the same journal."},

	{Fact: DisputeHeld, Debit: "merchant:{M}", Credit: "merchant:{M}:reserved", Ref: "dispute:{id}:H", Kind: KindDispute, Meaning: "A buyer disputes a payment: its money is reserved."},
	{Fact: DisputeWithdrawn, Debit: "merchant:{M}:reserved", Credit: "supplier:{S}", Ref: "dispute:{id}:W", Meaning: "The supplier took the money."},
	{Fact: DisputeReinstated, Debit: "supplier:{S}", Credit: "merchant:{M}", Ref: "dispute:{id}:B", Kind: KindDisputeWon, Meaning: "Won after it was taken: the money is back."},
	{Fact: DisputeReleased, Debit: "merchant:{M}:reserved", Credit: "merchant:{M}", Ref: "dispute:{id}:U", Kind: KindDisputeWon, Meaning: "Won, and never taken: the reserve is free again."},
	{Fact: DisputeFee, Debit: "merchant:{M}", Credit: "supplier:{S}", Ref: "dispute:{id}:F", Kind: KindFee, Meaning: "What the supplier takes for the dispute."},
	{Fact: DisputeFeeBack, Debit: "supplier:{S}", Credit: "merchant:{M}", Ref: "dispute:{id}:FB", Kind: KindFee, Meaning: "The fee of a dispute, given back."},

	{Fact: Freeze, Debit: "merchant:{M}", Credit: "merchant:{M}:frozen", Ref: "freeze:{id}", Kind: KindFreeze, Meaning: "Two people froze money of a merchant."},
	{Fact: Unfreeze, Debit: "merchant:{M}:frozen", Credit: "merchant:{M}", Ref: "freeze:{id}", Kind: KindUnfreeze, Meaning: "Two people freed it again."},
	{Fact: Adjust, Debit: "{from}", Credit: "{to}", Ref: "adjust:{id}", Kind: KindAdjustment, Meaning: "Two people moved money between a pair of accounts that is allowed."},
}

// Values are what the patterns of a row stand for; only those that it names are used.
type Values struct {
	Supplier, Merchant string // codes
	ID                 string
	From, To           string // whole accounts
	Amount             int64  // minor units, above 0
	Currency           string
}

// Entries are what one transaction posts.
type Entries []ledger.Entry

// Add adds the entry of a fact, see Entry.
func (e *Entries) Add(f Fact, v Values) { *e = append(*e, Entry(f, v)) }

// Entry is the entry of a fact. It panics for one that is not in the table, or whose row
// names a value that is empty, and without an amount: that is a bug of the caller, and a
// wrong entry is worse.
func Entry(f Fact, v Values) ledger.Entry {
	row := RowOf(f)
	e := ledger.Entry{
		Debit: v.fill(f, row.Debit), Credit: v.fill(f, row.Credit), Ref: v.fill(f, row.Ref),
		Amount: v.Amount, Currency: v.Currency, Once: row.Once,
	}
	if e.Amount <= 0 || e.Currency == "" || e.Debit == e.Credit {
		panic(fmt.Sprintf("fund: %s cannot be %+v", f, e))
	}
	return e
}

// Ref is the reference of a fact's entry; it needs the values that the reference names.
func Ref(f Fact, v Values) string { return v.fill(f, RowOf(f).Ref) }

// RowOf is the row of a fact; it panics where there is none.
func RowOf(f Fact) *Row {
	row, ok := rows[f]
	if !ok {
		panic(fmt.Sprintf("fund: no row for %q", f))
	}
	return row
}

var rows = func() map[Fact]*Row {
	all := make(map[Fact]*Row, len(Table))
	for i := range Table {
		all[Table[i].Fact] = &Table[i]
	}
	return all
}()

// fill replaces the names in a pattern, in one pass: a value that looks like a name stays
// as it is.
func (v *Values) fill(f Fact, pattern string) string {
	before, rest, named := strings.Cut(pattern, "{")
	if !named {
		return pattern
	}
	name, after, _ := strings.Cut(rest, "}")
	value := v.named(name)
	if value == "" {
		panic(fmt.Sprintf("fund: {%s} of %s is empty", name, f))
	}
	return before + value + v.fill(f, after)
}

func (v *Values) named(name string) string {
	switch name {
	case "S":
		return v.Supplier
	case "M":
		return v.Merchant
	case "id":
		return v.ID
	case "from":
		return v.From
	case "to":
		return v.To
	case "currency":
		return v.Currency
	}
	panic(fmt.Sprintf("fund: the table names {%s}, which has no value", name))
}
