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
// supplier, {M} of the merchant, {id} of what it is about, {from} and {to} are whole
// accounts, where the fact leaves the choice.
type Row struct {
	Fact               Fact
	Debit, Credit, Ref string
	Kind               Kind   // on the merchant's statement
	Meaning            string // a sentence for docs/funds.md
}

// Table is every entry that can be posted.
var Table = []Row{
	{Paid, "{from}", "merchant:{M}", "paid:{id}", KindPayment, "A buyer paid an order: the supplier owes us, we owe the merchant. `{from}` is `supplier:{S}`, or `suspense:{S}` where the money was held."},
	{Corrected, "{from}", "{to}", "corrected:{id}", "", "What was held of an order's payment had another amount: the difference between `supplier:{S}` and `suspense:{S}`."},
	{Held, "supplier:{S}", "suspense:{S}", "held:{id}", "", "Money came that fits no order. `{id}` is the account's id and the trade number."},
	{Elsewhere, "suspense:{S}", "{to}", "elsewhere:{id}", KindAdjustment, "Held money was settled outside of Backstop: refunded (`supplier:{S}`) or kept (`merchant:{M}`)."},
	{Opening, "opening", "merchant:{M}", "{id}", KindOpening, "A balance taken over from elsewhere."},
	{Fee, "merchant:{M}", "income:fees", "fee:{id}", KindFee, "What the merchant pays for an order."},
	{Cost, "cost:{S}", "supplier:{S}", "cost:{id}", "", "What the supplier keeps of an order."},

	{RefundHeld, "{from}", "refund:{S}", "refund:{id}:D", KindRefund, "A refund was asked for: its money is held. `{from}` is `merchant:{M}`, or `suspense:{S}` for money without an order."},
	{RefundDone, "refund:{S}", "supplier:{S}", "refund:{id}:C", "", "The refund succeeded: the supplier paid it out of what it owes us."},
	{RefundBack, "refund:{S}", "{to}", "refund:{id}:R", KindRefundFailed, "The refund failed, was rejected, cancelled or returned: its money goes back where it came from."},
	{RefundReturned, "supplier:{S}", "refund:{S}", "refund:{id}:X", "", "The money of a refund came back after its success; `R` follows in the same journal."},
	{RefundFee, "income:fees", "merchant:{M}", "refund:{id}:F", KindFee, "The merchant's fee is returned with a refund (`refund: return`)."},
	{RefundFeeAgain, "merchant:{M}", "income:fees", "refund:{id}:FR", KindFee, "The returned fee is taken again, for the refund was returned."},
	{RefundCost, "supplier:{S}", "cost:{S}", "refund:{id}:K", "", "The supplier returns its cost with a refund (`refund: return`)."},
	{RefundAdopted, "merchant:{M}", "supplier:{S}", "refund:{id}:A", KindRefund, "Somebody refunded at the supplier itself."},

	{PayoutDebit, "merchant:{M}", "payout:{S}", "payout:{id}:D", KindPayout, "A payout was approved: its money is on its way out."},
	{PayoutCredit, "payout:{S}", "supplier:{S}", "payout:{id}:C", "", "The supplier paid it out."},
	{PayoutReversal, "payout:{S}", "merchant:{M}", "payout:{id}:R", KindPayoutReversed, "It definitely failed, or came back: the merchant has its money again."},
	{PayoutFee, "merchant:{M}", "income:fees", "payout:{id}:F", KindFee, "What the merchant pays for a payout."},
	{PayoutFeeBack, "income:fees", "merchant:{M}", "payout:{id}:FR", KindFee, "The fee is given back by the reversal."},
	{PayoutLate, "merchant:{M}", "supplier:{S}", "payout:{id}:L", KindPayout, "It arrived after its reversal: the merchant is debited again."},
	{PayoutReturned, "supplier:{S}", "payout:{S}", "payout:{id}:X", "", "The money came back after its success; `R` follows in the same journal."},

	{DisputeHeld, "merchant:{M}", "merchant:{M}:reserved", "dispute:{id}:H", KindDispute, "A buyer disputes a payment: its money is reserved."},
	{DisputeWithdrawn, "merchant:{M}:reserved", "supplier:{S}", "dispute:{id}:W", "", "The supplier took the money."},
	{DisputeReinstated, "supplier:{S}", "merchant:{M}", "dispute:{id}:B", KindDisputeWon, "Won after it was taken: the money is back."},
	{DisputeReleased, "merchant:{M}:reserved", "merchant:{M}", "dispute:{id}:U", KindDisputeWon, "Won, and never taken: the reserve is free again."},
	{DisputeFee, "merchant:{M}", "supplier:{S}", "dispute:{id}:F", KindFee, "What the supplier takes for the dispute."},
	{DisputeFeeBack, "supplier:{S}", "merchant:{M}", "dispute:{id}:FB", KindFee, "The fee of a dispute, given back."},

	{Freeze, "merchant:{M}", "merchant:{M}:frozen", "freeze:{id}", KindFreeze, "Two people froze money of a merchant."},
	{Unfreeze, "merchant:{M}:frozen", "merchant:{M}", "freeze:{id}", KindUnfreeze, "Two people freed it again."},
	{Adjust, "{from}", "{to}", "adjust:{id}", KindAdjustment, "Two people moved money between a pair of accounts that is allowed."},
}

// Values are what the patterns of a row stand for; only those that it names are used.
type Values struct {
	Supplier, Merchant string // codes
	ID                 string
	From, To           string // whole accounts
	Amount             int64  // minor units, above 0
	Currency           string
}

// Entry is the entry of a fact. It panics for one that is not in the table, or whose row
// names a value that is empty: that is a bug of the caller, and a wrong account is worse.
func Entry(f Fact, v Values) ledger.Entry {
	row := RowOf(f)
	names := []string{"{S}", v.Supplier, "{M}", v.Merchant, "{id}", v.ID, "{from}", v.From, "{to}", v.To}
	for i := 0; i < len(names); i += 2 {
		if names[i+1] == "" && strings.Contains(row.Debit+row.Credit+row.Ref, names[i]) {
			panic(fmt.Sprintf("fund: %s of %s is empty", names[i], f))
		}
	}
	fill := strings.NewReplacer(names...).Replace // one pass: a value that looks like a name stays as it is
	return ledger.Entry{Debit: fill(row.Debit), Credit: fill(row.Credit), Ref: fill(row.Ref), Amount: v.Amount, Currency: v.Currency}
}

// RowOf is the row of a fact; it panics where there is none.
func RowOf(f Fact) Row {
	for _, r := range Table {
		if r.Fact == f {
			return r
		}
	}
	panic(fmt.Sprintf("fund: no row for %q", f))
}
