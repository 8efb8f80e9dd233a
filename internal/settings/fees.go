package settings

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"backstop/internal/base/textlimit"
	"backstop/internal/fee"
	"backstop/internal/merchant"

	"github.com/uptrace/bun"
)

// Fee is how a fee is computed, as declared in the apply file.
type Fee struct {
	Charge
	Refund string `apply:"refund" oneof:"keep return" default:"keep" example:"return" doc:"What happens to the fee when the payment is refunded: keep, or return in proportion."`
}

// Charge is how the amount of a fee is computed.
type Charge struct {
	Rate  fee.PPM `apply:"rate" default:"0%" example:"0.6%" doc:"A percentage of the amount: below 100%, at most four decimals. The result is rounded half up to a minor unit."`
	Fixed int64   `apply:"fixed" min:"0" max:"1000000000000000" default:"0" example:"10" doc:"A fixed amount in addition to rate, in minor units."`
	Min   int64   `apply:"min" min:"0" max:"1000000000000000" default:"0" example:"1" doc:"The minimum fee, in minor units. A fee is never more than the amount it is charged for."`
	Max   int64   `apply:"max" min:"0" max:"1000000000000000" default:"0" example:"5000" doc:"The maximum fee, in minor units; 0 = no maximum."`
}

// MerchantFee is a merchant's fee for orders that were paid through one supplier.
type MerchantFee struct {
	Supplier string `apply:"supplier" default:"*" example:"'*'" doc:"The supplier's code; * = all suppliers without a rule of their own."`
	Fee
}

// PayoutFee is a merchant's fee for payouts through one supplier. A reversal returns it.
type PayoutFee struct {
	Supplier string `apply:"supplier" default:"*" example:"'*'" doc:"The supplier's code; * = all suppliers without a rule of their own."`
	Charge
}

// Limit is a merchant's limits in one currency.
type Limit struct {
	Currency      string `apply:"currency" need:"missing" example:"CNY" doc:"ISO 4217."`
	PayoutEach    int64  `apply:"payout_each" min:"0" max:"1000000000000000" default:"0" example:"5000000" doc:"The largest payout, in minor units; 0 = no limit."`
	PayoutDay     int64  `apply:"payout_day" min:"0" max:"1000000000000000" default:"0" example:"20000000" doc:"The daily total of payouts, in minor units; 0 = no limit."`
	PayoutAuto    int64  `apply:"payout_auto" min:"0" max:"1000000000000000" default:"0" example:"0" doc:"The largest payout that needs no approval, in minor units; 0 = every payout needs one."`
	RefundAuto    int64  `apply:"refund_auto" min:"0" max:"1000000000000000" default:"100000" example:"100000" doc:"The largest refund that needs no approval, in minor units; 0 = every refund needs one."`
	RefundAutoDay int64  `apply:"refund_auto_day" min:"0" max:"1000000000000000" default:"1000000" example:"1000000" doc:"The daily total of refunds without approval, in minor units."`
	Overdraft     int64  `apply:"overdraft" min:"0" max:"1000000000000000" default:"0" example:"0" doc:"How far below zero refunds and payouts may take its balance, in minor units."`
}

// NewFee, NewMerchantFee, NewPayoutFee and NewLimit return entries with their defaults.
func NewFee() Fee { return Fee{Refund: refundKeep} }

func NewMerchantFee() MerchantFee { return MerchantFee{Supplier: fee.Any, Fee: NewFee()} }

func NewPayoutFee() PayoutFee { return PayoutFee{Supplier: fee.Any} }

func NewLimit() Limit { return limitOf("", merchant.DefaultLimit) }

const (
	refundKeep   = "keep"
	refundReturn = "return"
)

func (c Charge) rule() fee.Rule {
	return fee.Rule{Rate: c.Rate, Fixed: c.Fixed, Min: c.Min, Max: c.Max}
}

func (f Fee) rule() fee.Rule {
	r := f.Charge.rule()
	r.Return = f.Refund == refundReturn
	return r
}

func chargeOf(r fee.Rule) Charge { return Charge{Rate: r.Rate, Fixed: r.Fixed, Min: r.Min, Max: r.Max} }

func feeOf(r fee.Rule) Fee {
	f := Fee{Charge: chargeOf(r), Refund: refundKeep}
	if r.Return {
		f.Refund = refundReturn
	}
	return f
}

// rulesOf returns the rules of an object: a merchant's fees, or a supplier's cost under fee.Any.
func rulesOf(object any) fee.Rules {
	rules := fee.Rules{}
	switch v := object.(type) {
	case *Supplier:
		if r := v.Fees.rule(); r != (fee.Rule{}) {
			rules[fee.Any] = r
		}
	case *Merchant:
		for _, f := range v.Fees {
			rules[f.Supplier] = f.rule()
		}
	}
	return rules
}

func feesOf(rules fee.Rules) []MerchantFee {
	all := []MerchantFee{}
	for _, supplier := range sortedKeys(rules) { // * is first
		all = append(all, MerchantFee{Supplier: supplier, Fee: feeOf(rules[supplier])})
	}
	return all
}

// storedPayoutFees returns the stored form of a merchant's fees for payouts. A payout keeps the
// fee that it was requested with, so only the rules of now are stored.
func storedPayoutFees(fees []PayoutFee) string {
	if len(fees) == 0 {
		return ""
	}
	rules := fee.Rules{}
	for _, f := range fees {
		rules[f.Supplier] = f.rule()
	}
	text, _ := json.Marshal(rules) // strings and integers only: cannot fail
	return string(text)
}

func readPayoutFees(text string) (rules fee.Rules, err error) {
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &rules); err != nil {
		return nil, fmt.Errorf("payout_fees: %w", err)
	}
	return rules, nil
}

func payoutFeesOf(rules fee.Rules) []PayoutFee {
	all := []PayoutFee{}
	for _, supplier := range sortedKeys(rules) { // * is first
		all = append(all, PayoutFee{Supplier: supplier, Charge: chargeOf(rules[supplier])})
	}
	return all
}

func limitOf(currency string, l merchant.Limit) Limit {
	return Limit{
		Currency: currency, PayoutEach: l.PayoutEach, PayoutDay: l.PayoutDay, PayoutAuto: l.PayoutAuto,
		RefundAuto: l.RefundAuto, RefundAutoDay: l.RefundAutoDay, Overdraft: l.Overdraft,
	}
}

func limitsOf(all map[string]merchant.Limit) []Limit {
	limits := []Limit{}
	for _, currency := range sortedKeys(all) {
		limits = append(limits, limitOf(currency, all[currency]))
	}
	return limits
}

// storedLimits returns the stored form of limits.
func storedLimits(limits []Limit) string {
	if len(limits) == 0 {
		return ""
	}
	all := map[string]merchant.Limit{}
	for _, l := range limits {
		all[l.Currency] = merchant.Limit{
			PayoutEach: l.PayoutEach, PayoutDay: l.PayoutDay, PayoutAuto: l.PayoutAuto,
			RefundAuto: l.RefundAuto, RefundAutoDay: l.RefundAutoDay, Overdraft: l.Overdraft,
		}
	}
	text, _ := json.Marshal(all) // strings and integers only: cannot fail
	return string(text)
}

func readLimits(text string) (all map[string]merchant.Limit, err error) {
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	return all, nil
}

// refundWindow is how long a payment can be refunded by default.
const refundWindow = 4320 * time.Hour

func windowOf(us int64) time.Duration {
	return cmp.Or(time.Duration(us)*time.Microsecond, refundWindow)
}

// feeRow holds the rules of one owner since a version of the settings.
type feeRow struct {
	bun.BaseModel `bun:"table:fee_rules,alias:fr"`

	OwnerID int64  `bun:"owner_id,pk"`
	Version int64  `bun:"version,pk"`
	Rules   string `bun:"rules"`
}

// Fees holds the rules of all merchants and suppliers in every version of the settings.
type Fees struct {
	byOwner map[int64][]feesFrom
}

// feesFrom holds the rules since a version.
type feesFrom struct {
	version int64
	rules   fee.Rules
}

// At returns the rules of a merchant or a supplier in a version of the settings.
func (f Fees) At(owner, version int64) fee.Rules {
	all := f.byOwner[owner]
	n, found := slices.BinarySearchFunc(all, version, func(r feesFrom, version int64) int { return cmp.Compare(r.version, version) })
	if !found {
		n--
	}
	if n < 0 {
		return nil
	}
	return all[n].rules
}

// ReadFees reads the rules of the given owners; of all if none is given.
func ReadFees(ctx context.Context, q bun.IDB, owners ...int64) (Fees, error) {
	var rows []feeRow
	read := q.NewSelect().Model(&rows).OrderExpr("fr.owner_id, fr.version")
	if len(owners) > 0 {
		read.Where("fr.owner_id IN (?)", bun.List(owners))
	}
	if err := read.Scan(ctx); err != nil {
		return Fees{}, fmt.Errorf("read the fee rules: %w", err)
	}
	f := Fees{byOwner: map[int64][]feesFrom{}}
	for _, r := range rows {
		is := feesFrom{version: r.Version}
		if err := json.Unmarshal([]byte(r.Rules), &is.rules); err != nil {
			return Fees{}, fmt.Errorf("read the fee rules of %d in version %d: %w", r.OwnerID, r.Version, err)
		}
		f.byOwner[r.OwnerID] = append(f.byOwner[r.OwnerID], is)
	}
	return f, nil
}

// FeeVersion returns the version of the fee rules to store in a new order of a merchant: that of
// the settings, or 0 if neither the merchant nor any supplier has a rule.
func (s *Snapshot) FeeVersion(merchantID int64) int64 {
	if s.costs || len(s.Fees.At(merchantID, s.Version)) > 0 {
		return s.Version
	}
	return 0
}

// fees loads the fee rules.
func (s *Store) fees(ctx context.Context, q bun.IDB, next *Snapshot) (err error) {
	if next.Fees, err = ReadFees(ctx, q); err != nil {
		return err
	}
	var suppliers []int64
	if err := q.NewRaw("SELECT id FROM suppliers").Scan(ctx, &suppliers); err != nil {
		return fmt.Errorf("read suppliers: %w", err)
	}
	next.costs = slices.ContainsFunc(suppliers, func(id int64) bool { return len(next.Fees.At(id, next.Version)) > 0 })
	return nil
}

// fees writes the rules of an object if they change; they apply from the version that this
// transaction creates.
func (w *commit) fees(ctx context.Context, owner int64, c Change) error {
	is := rulesOf(c.After)
	was := fee.Rules{}
	if c.Before != nil {
		was = rulesOf(c.Before)
	}
	if maps.Equal(was, is) {
		return nil
	}
	text, err := json.Marshal(is)
	if err != nil {
		return err
	}
	if _, err := w.tx.NewInsert().Model(&feeRow{OwnerID: owner, Version: w.version + 1, Rules: string(text)}).Exec(ctx); err != nil {
		return fmt.Errorf("write the fee rules: %w", err)
	}
	return nil
}

// charge checks what the tags cannot express.
func (k *checker) charge(at string, c Charge) {
	if c.Max > 0 && c.Max < c.Min {
		k.wrong(join(at, "max"), "%d is below min, which is %d: raise it, or leave it out for no maximum", c.Max, c.Min)
	}
}

// bySupplier checks the supplier of a rule.
func (k *checker) bySupplier(at, supplier string) {
	if supplier != fee.Any && !code.MatchString(supplier) {
		k.wrong(join(at, "supplier"), "%q: use the code of a supplier, or * for all", textlimit.Clip(supplier, maxShown))
	}
}

// funds checks the fees and limits of a merchant.
func (k *checker) funds(v *Merchant) {
	var suppliers, payouts, currencies []string
	for i, f := range v.Fees {
		at := fmt.Sprintf("fees[%d]", i)
		k.bySupplier(at, f.Supplier)
		k.charge(at, f.Charge)
		suppliers = append(suppliers, f.Supplier)
	}
	for i, f := range v.PayoutFees {
		at := fmt.Sprintf("payout_fees[%d]", i)
		k.bySupplier(at, f.Supplier)
		k.charge(at, f.Charge)
		payouts = append(payouts, f.Supplier)
	}
	for i, l := range v.Limits {
		k.currency(fmt.Sprintf("limits[%d].currency", i), l.Currency)
		currencies = append(currencies, l.Currency)
	}
	k.once("fees[%d].supplier", suppliers)
	k.once("payout_fees[%d].supplier", payouts)
	k.once("limits[%d].currency", currencies)
}
