// Package fact defines how money is booked. Its table lists every kind of entry with its two
// accounts and its reference. All postings go through the table, so a fact that is not in it
// cannot be booked, and as references are unique, none is booked twice.
package fact

import (
	"fmt"
	"strings"

	"backstop/internal/ledger"
)

// Name names a kind of event that moves money between accounts.
type Name string

// The facts; docs/funds.md lists them with their accounts.
const (
	Paid      Name = "paid"
	Corrected Name = "corrected"
	Held      Name = "held"
	Elsewhere Name = "elsewhere"
	Opening   Name = "opening"
	Fee       Name = "fee"
	Cost      Name = "cost"

	RefundHeld     Name = "refund_held"
	RefundDone     Name = "refund_done"
	RefundBack     Name = "refund_back"
	RefundReturned Name = "refund_returned"
	RefundFee      Name = "refund_fee"
	RefundFeeAgain Name = "refund_fee_again"
	RefundCost     Name = "refund_cost"
	RefundAdopted  Name = "refund_adopted"
	RefundMoved    Name = "refund_moved"

	PayoutDebit    Name = "payout_debit"
	PayoutCredit   Name = "payout_credit"
	PayoutReversal Name = "payout_reversal"
	PayoutFee      Name = "payout_fee"
	PayoutFeeBack  Name = "payout_fee_back"
	PayoutLate     Name = "payout_late"
	PayoutReturned Name = "payout_returned"

	DisputeHeld       Name = "dispute_held"
	DisputeWithdrawn  Name = "dispute_withdrawn"
	DisputeReinstated Name = "dispute_reinstated"
	DisputeReleased   Name = "dispute_released"
	DisputeFee        Name = "dispute_fee"
	DisputeFeeBack    Name = "dispute_fee_back"

	Freeze   Name = "freeze"
	Unfreeze Name = "unfreeze"
	Adjust   Name = "adjust"
)

// Kind is what a statement calls an entry (contract §8, /statement).
type Kind string

// Kinds of lines on a statement; "" = not on a merchant's statement.
const (
	KindPayment        Kind = "payment"
	KindFee            Kind = "fee"
	KindRefund         Kind = "refund"
	KindRefundFailed   Kind = "refund_failed"
	KindPayout         Kind = "payout"
	KindPayoutReversed Kind = "payout_reversed"
	KindDispute        Kind = "dispute"
	KindDisputeWon     Kind = "dispute_won"
	KindDisputeTaken   Kind = "dispute_taken"
	KindFreeze         Kind = "freeze"
	KindUnfreeze       Kind = "unfreeze"
	KindAdjustment     Kind = "adjustment"
	KindOpening        Kind = "opening"
)

// Row is one row of the table. Debit, Credit and Ref are patterns: {S} stands for the
// supplier's code, {M} for the merchant's, {id} for the id of the order, refund or other object,
// {currency} for its currency; {from} and {to} are whole account codes that the caller chooses.
type Row struct {
	Fact               Name
	Debit, Credit, Ref string
	Kind               Kind   // on the merchant's statement
	Meaning            string // a sentence for docs/funds.md
	// Once: several processes may book the fact concurrently; the first entry is kept.
	Once bool
}

// Table lists every entry that can be posted.
var Table = []Row{
	{
		Fact: Paid, Debit: "{from}", Credit: "merchant:{M}", Ref: "paid:{id}", Kind: KindPayment,
		Meaning: "A buyer paid an order: the supplier owes us, we owe the merchant. `{from}` is `supplier:{S}`, or `suspense:{S}` where the money was held.",
	},
	{
		Fact: Corrected, Debit: "{from}", Credit: "{to}", Ref: "corrected:{id}",
		Meaning: "The payment of an order was held with a different amount: the difference, between `supplier:{S}` and `suspense:{S}`.",
	},
	{
		Fact: Held, Debit: "supplier:{S}", Credit: "suspense:{S}", Ref: "held:{id}",
		Meaning: "Money arrived that matches no order. `{id}` is the id of the account at the supplier and the trade number.", Once: true,
	},
	{
		Fact: Elsewhere, Debit: "suspense:{S}", Credit: "{to}", Ref: "elsewhere:{id}", Kind: KindAdjustment,
		Meaning: "Held money was settled outside of Backstop: refunded (`supplier:{S}`) or kept (`merchant:{M}`).",
	},
	{
		Fact: Opening, Debit: "opening", Credit: "merchant:{M}", Ref: "opening:{M}:{currency}", Kind: KindOpening,
		Meaning: "A balance brought over from another system.",
	},
	{Fact: Fee, Debit: "merchant:{M}", Credit: "income:fees", Ref: "fee:{id}", Kind: KindFee, Meaning: "The merchant's fee for an order."},
	{Fact: Cost, Debit: "cost:{S}", Credit: "supplier:{S}", Ref: "cost:{id}", Meaning: "The supplier's fee for an order: our cost."},

	{
		Fact: RefundHeld, Debit: "{from}", Credit: "refund:{S}", Ref: "refund:{id}:D", Kind: KindRefund,
		Meaning: "A refund was requested: its money is held. `{from}` is `merchant:{M}`, or `suspense:{S}` for money without an order.",
	},
	{
		Fact: RefundDone, Debit: "refund:{S}", Credit: "supplier:{S}", Ref: "refund:{id}:C",
		Meaning: "The refund succeeded: the supplier paid it from what it owes us.",
	},
	{
		Fact: RefundBack, Debit: "refund:{S}", Credit: "{to}", Ref: "refund:{id}:R", Kind: KindRefundFailed,
		Meaning: "The refund failed, or was rejected, cancelled or returned: its money goes back to where it came from.",
	},
	{
		Fact: RefundReturned, Debit: "supplier:{S}", Credit: "refund:{S}", Ref: "refund:{id}:X",
		Meaning: "The refund succeeded, but its money came back later; `R` follows in the same journal.",
	},
	{
		Fact: RefundFee, Debit: "income:fees", Credit: "merchant:{M}", Ref: "refund:{id}:F", Kind: KindFee,
		Meaning: "The merchant's fee is returned with a refund (`refund: return`).",
	},
	{
		Fact: RefundFeeAgain, Debit: "merchant:{M}", Credit: "income:fees", Ref: "refund:{id}:FR", Kind: KindFee,
		Meaning: "The fee is charged again because the refund was returned.",
	},
	{
		Fact: RefundCost, Debit: "supplier:{S}", Credit: "cost:{S}", Ref: "refund:{id}:K",
		Meaning: "The supplier returns its cost with a refund (`refund: return`).",
	},
	{
		Fact: RefundAdopted, Debit: "{from}", Credit: "supplier:{S}", Ref: "refund:{id}:A", Kind: KindRefund,
		Meaning: "A refund made directly at the supplier, outside of Backstop. `{from}` is `merchant:{M}`, or `suspense:{S}` for money without an order.",
	},
	{
		Fact: RefundMoved, Debit: "merchant:{M}", Credit: "{from}", Ref: "refund:{id}:M", Kind: KindRefund,
		Meaning: "Money that was refunded from suspense (`{from}`) is accepted for an order: the refund becomes the merchant's.",
	},

	{
		Fact: PayoutDebit, Debit: "merchant:{M}", Credit: "payout:{S}", Ref: "payout:{id}:D", Kind: KindPayout,
		Meaning: "A payout was approved: its money is in transit.",
	},
	{Fact: PayoutCredit, Debit: "payout:{S}", Credit: "supplier:{S}", Ref: "payout:{id}:C", Meaning: "The supplier made the payout."},
	{
		Fact: PayoutReversal, Debit: "payout:{S}", Credit: "merchant:{M}", Ref: "payout:{id}:R", Kind: KindPayoutReversed,
		Meaning: "The payout failed for certain, or was returned: the money goes back to the merchant.",
	},
	{
		Fact: PayoutFee, Debit: "merchant:{M}", Credit: "income:fees", Ref: "payout:{id}:F", Kind: KindFee,
		Meaning: "The merchant's fee for a payout.",
	},
	{
		Fact: PayoutFeeBack, Debit: "income:fees", Credit: "merchant:{M}", Ref: "payout:{id}:FR", Kind: KindFee,
		Meaning: "The fee is returned with the reversal.",
	},
	{
		Fact: PayoutLate, Debit: "merchant:{M}", Credit: "supplier:{S}", Ref: "payout:{id}:L", Kind: KindPayout,
		Meaning: "The payout arrived after its reversal: the merchant is debited again.",
	},
	{
		Fact: PayoutReturned, Debit: "supplier:{S}", Credit: "payout:{S}", Ref: "payout:{id}:X",
		Meaning: "The payout succeeded, but its money came back later; `R` follows in the same journal.",
	},

	{
		Fact: DisputeHeld, Debit: "merchant:{M}", Credit: "merchant:{M}:reserved", Ref: "dispute:{id}:H", Kind: KindDispute,
		Meaning: "A buyer disputes a payment: its money is reserved.",
	},
	{
		Fact: DisputeWithdrawn, Debit: "{from}", Credit: "supplier:{S}", Ref: "dispute:{id}:W", Kind: KindDisputeTaken,
		Meaning: "The supplier took the money. `{from}` is `merchant:{M}:reserved`, or `suspense:{S}` for money without an order.",
	},
	{
		Fact: DisputeReinstated, Debit: "supplier:{S}", Credit: "{to}", Ref: "dispute:{id}:B", Kind: KindDisputeWon,
		Meaning: "Money that was taken for the dispute is back: at `merchant:{M}`, or at `suspense:{S}` where it came from there.",
	},
	{
		Fact: DisputeReleased, Debit: "merchant:{M}:reserved", Credit: "merchant:{M}", Ref: "dispute:{id}:U", Kind: KindDisputeWon,
		Meaning: "The dispute was won before the money was taken: the reserve is released.",
	},
	{
		Fact: DisputeFee, Debit: "{from}", Credit: "supplier:{S}", Ref: "dispute:{id}:F", Kind: KindFee,
		Meaning: "The supplier's fee for the dispute. `{from}` is `merchant:{M}`, or `cost:{S}` for money without an order.",
	},
	{
		Fact: DisputeFeeBack, Debit: "supplier:{S}", Credit: "{to}", Ref: "dispute:{id}:FB", Kind: KindFee,
		Meaning: "The supplier returned the fee for the dispute, to where it came from.",
	},

	{
		Fact: Freeze, Debit: "merchant:{M}", Credit: "merchant:{M}:frozen", Ref: "freeze:{id}", Kind: KindFreeze,
		Meaning: "Money of a merchant was frozen, by a decision of two people.",
	},
	{
		Fact: Unfreeze, Debit: "merchant:{M}:frozen", Credit: "merchant:{M}", Ref: "freeze:{id}", Kind: KindUnfreeze,
		Meaning: "Frozen money was released, by a decision of two people.",
	},
	{
		Fact: Adjust, Debit: "{from}", Credit: "{to}", Ref: "adjust:{id}", Kind: KindAdjustment,
		Meaning: "Money was moved between an allowed pair of accounts, by a decision of two people.",
	},
}

// Values fill the patterns of a row; those that the row does not name are ignored.
type Values struct {
	Supplier, Merchant string // codes
	ID                 string
	From, To           string // whole accounts
	Amount             int64  // minor units, above 0
	Currency           string
}

// Entries are the entries that one transaction posts.
type Entries []ledger.Entry

// Add appends the entry for a fact, see Entry.
func (e *Entries) Add(f Name, v Values) { *e = append(*e, Entry(f, v)) }

// Entry returns the entry for a fact. It panics if the fact is not in the table, a value that
// its row names is empty, or the amount is not above 0: these are bugs in the caller, and a
// wrong entry would be worse.
func Entry(f Name, v Values) ledger.Entry {
	row := RowOf(f)
	e := ledger.Entry{
		Debit: v.fill(f, row.Debit), Credit: v.fill(f, row.Credit), Ref: v.fill(f, row.Ref),
		Amount: v.Amount, Currency: v.Currency, Once: row.Once,
	}
	if e.Amount <= 0 || e.Currency == "" || e.Debit == e.Credit {
		panic(fmt.Sprintf("fact: %s cannot be %+v", f, e))
	}
	return e
}

// Ref returns the reference of a fact's entry. It panics if a value that it names is empty.
func Ref(f Name, v Values) string { return v.fill(f, RowOf(f).Ref) }

// RowOf returns the row of a fact. It panics if there is none.
func RowOf(f Name) *Row {
	row, ok := rows[f]
	if !ok {
		panic(fmt.Sprintf("fact: no row for %q", f))
	}
	return row
}

// Of returns the row that an entry's reference belongs to and the {id} in it; false if no
// row matches. Freeze and Unfreeze have the same reference: credited = it is an Unfreeze.
func Of(ref string, credited bool) (row *Row, id string, ok bool) {
	suffix := ""
	for i := range Table {
		r := &Table[i]
		before, rest, _ := strings.Cut(r.Ref, "{")
		_, after, _ := strings.Cut(rest, "}")
		if strings.Contains(after, "{") {
			after = "" // opening: the rest is its id
		}
		if len(ref) <= len(before)+len(after) || !strings.HasPrefix(ref, before) || !strings.HasSuffix(ref, after) || ok &&
			len(after) <= len(suffix) {
			continue
		}
		if r.Fact == Freeze && credited {
			r = rows[Unfreeze]
		}
		row, id, suffix, ok = r, ref[len(before):len(ref)-len(after)], after, true
	}
	return row, id, ok
}

// KindSQL is the kind of an entry by its reference, an expression on t: that of Of, but a release of
// frozen money is a freeze.
var KindSQL = func() string {
	cases := "CASE"
	for _, r := range Table {
		if r.Kind != "" {
			cases += " WHEN t.ref LIKE '" + anyValue(r.Ref) + "' THEN '" + string(r.Kind) + "'"
		}
	}
	return cases + " ELSE '' END"
}()

// anyValue is a pattern of LIKE for a reference.
func anyValue(ref string) string {
	before, rest, named := strings.Cut(ref, "{")
	if !named {
		return before
	}
	_, after, _ := strings.Cut(rest, "}")
	return before + "%" + anyValue(after)
}

var rows = func() map[Name]*Row {
	all := make(map[Name]*Row, len(Table))
	for i := range Table {
		all[Table[i].Fact] = &Table[i]
	}
	return all
}()

// fill replaces the names in a pattern in one pass, so that a value that looks like a name is
// not replaced itself.
func (v *Values) fill(f Name, pattern string) string {
	before, rest, named := strings.Cut(pattern, "{")
	if !named {
		return pattern
	}
	name, after, _ := strings.Cut(rest, "}")
	value := v.named(name)
	if value == "" {
		panic(fmt.Sprintf("fact: {%s} of %s is empty", name, f))
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
	panic(fmt.Sprintf("fact: the table names {%s}, which has no value", name))
}
