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
	"backstop/internal/fund/fee"
	"backstop/internal/merchant"

	"github.com/uptrace/bun"
)

// Fee is how a fee is computed, as the apply file has it.
type Fee struct {
	Rate   fee.PPM `apply:"rate" default:"0%" example:"0.6%" doc:"The part of the amount: a percentage below 100%, at most four decimals. Rounded half up to a minor unit."`
	Fixed  int64   `apply:"fixed" min:"0" max:"1000000000000000" default:"0" example:"10" doc:"Added to it, in minor units."`
	Min    int64   `apply:"min" min:"0" max:"1000000000000000" default:"0" example:"1" doc:"The least, in minor units. A fee is never more than its amount."`
	Max    int64   `apply:"max" min:"0" max:"1000000000000000" default:"0" example:"5000" doc:"The most, in minor units; 0 = no limit."`
	Refund string  `apply:"refund" oneof:"keep return" default:"keep" example:"return" doc:"What happens to it when an amount is refunded: keep, or return in proportion."`
}

// MerchantFee is what a merchant pays for orders that one supplier was paid for.
type MerchantFee struct {
	Supplier string `apply:"supplier" default:"*" example:"'*'" doc:"The supplier's code; * = every one without a rule of its own."`
	Fee
}

// Limit is what is allowed to a merchant in one currency.
type Limit struct {
	Currency      string `apply:"currency" need:"missing" example:"CNY" doc:"ISO 4217."`
	RefundAuto    int64  `apply:"refund_auto" min:"0" max:"1000000000000000" default:"100000" example:"100000" doc:"The refund up to which no person is asked, in minor units; 0 = every one needs two people."`
	RefundAutoDay int64  `apply:"refund_auto_day" min:"0" max:"1000000000000000" default:"1000000" example:"1000000" doc:"The sum of such refunds in a day, in minor units."`
	Overdraft     int64  `apply:"overdraft" min:"0" max:"1000000000000000" default:"0" example:"0" doc:"How far below zero refunds may take its balance, in minor units."`
}

// NewFee, NewMerchantFee and NewLimit are entries with their defaults.
func NewFee() Fee { return Fee{Refund: refundKeep} }

func NewMerchantFee() MerchantFee { return MerchantFee{Supplier: fee.Any, Fee: NewFee()} }

func NewLimit() Limit {
	return Limit{RefundAuto: merchant.DefaultLimit.RefundAuto, RefundAutoDay: merchant.DefaultLimit.RefundAutoDay}
}

const (
	refundKeep   = "keep"
	refundReturn = "return"
)

func (f Fee) rule() fee.Rule {
	return fee.Rule{Rate: f.Rate, Fixed: f.Fixed, Min: f.Min, Max: f.Max, Return: f.Refund == refundReturn}
}

func feeOf(r fee.Rule) Fee {
	f := Fee{Rate: r.Rate, Fixed: r.Fixed, Min: r.Min, Max: r.Max, Refund: refundKeep}
	if r.Return {
		f.Refund = refundReturn
	}
	return f
}

// rulesOf are the rules of an object: a merchant's fees, or the cost of a supplier as the
// rule of all.
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

func limitsOf(all map[string]merchant.Limit) []Limit {
	limits := []Limit{}
	for _, currency := range sortedKeys(all) {
		l := all[currency]
		limits = append(limits, Limit{Currency: currency, RefundAuto: l.RefundAuto, RefundAutoDay: l.RefundAutoDay, Overdraft: l.Overdraft})
	}
	return limits
}

// storedLimits is the stored form of limits.
func storedLimits(limits []Limit) string {
	if len(limits) == 0 {
		return ""
	}
	all := map[string]merchant.Limit{}
	for _, l := range limits {
		all[l.Currency] = merchant.Limit{RefundAuto: l.RefundAuto, RefundAutoDay: l.RefundAutoDay, Overdraft: l.Overdraft}
	}
	text, _ := json.Marshal(all) // whole numbers always have a form
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

// refundWindow is how long a payment can be refunded, where nothing else is declared.
const refundWindow = 4320 * time.Hour

func windowOf(us int64) time.Duration {
	return cmp.Or(time.Duration(us)*time.Microsecond, refundWindow)
}

// feeRow is the rules of one owner from a version of the settings on.
type feeRow struct {
	bun.BaseModel `bun:"table:fee_rules,alias:fr"`

	OwnerID int64  `bun:"owner_id,pk"`
	Version int64  `bun:"version,pk"`
	Rules   string `bun:"rules"`
}

// Fees are the rules of all merchants and suppliers, in every version of the settings.
type Fees struct {
	byOwner map[int64][]feesFrom
}

// feesFrom are rules from a version on.
type feesFrom struct {
	version int64
	rules   fee.Rules
}

// At are the rules of a merchant or a supplier in a version of the settings.
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

// ReadFees reads the rules of all, or of some owners.
func ReadFees(ctx context.Context, q bun.IDB, owners ...int64) (Fees, error) {
	var rows []feeRow
	read := q.NewSelect().Model(&rows).OrderExpr("fr.owner_id, fr.version")
	if len(owners) > 0 {
		read.Where("fr.owner_id IN (?)", bun.List(owners))
	}
	if err := read.Scan(ctx); err != nil {
		return Fees{}, fmt.Errorf("read the rules of fees: %w", err)
	}
	f := Fees{byOwner: map[int64][]feesFrom{}}
	for _, r := range rows {
		is := feesFrom{version: r.Version}
		if err := json.Unmarshal([]byte(r.Rules), &is.rules); err != nil {
			return Fees{}, fmt.Errorf("read the rules of fees of %d in version %d: %w", r.OwnerID, r.Version, err)
		}
		f.byOwner[r.OwnerID] = append(f.byOwner[r.OwnerID], is)
	}
	return f, nil
}

// FeeVersion is what a new order of a merchant names as its rules: the version of the
// settings, 0 where neither the merchant pays a fee nor any supplier costs one.
func (s *Snapshot) FeeVersion(merchantID int64) int64 {
	if s.costs || len(s.Fees.At(merchantID, s.Version)) > 0 {
		return s.Version
	}
	return 0
}

// fees loads the rules of fees.
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

// fees writes the rules of an object where they change, from the version on that this
// transaction makes.
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
		return fmt.Errorf("write the rules of fees: %w", err)
	}
	return nil
}

// checkFee checks what the tags do not describe.
func (k *checker) checkFee(at string, f Fee) {
	if f.Max > 0 && f.Max < f.Min {
		k.wrong(join(at, "max"), "%d is below min, which is %d: raise it, or leave it out for no limit", f.Max, f.Min)
	}
}

// funds checks the fees and limits of a merchant.
func (k *checker) funds(v *Merchant) {
	var suppliers, currencies []string
	for i, f := range v.Fees {
		at := fmt.Sprintf("fees[%d]", i)
		if f.Supplier != fee.Any && !code.MatchString(f.Supplier) {
			k.wrong(join(at, "supplier"), "%q: use the code of a supplier, or * for all", textlimit.Clip(f.Supplier, maxShown))
		}
		k.checkFee(at, f.Fee)
		suppliers = append(suppliers, f.Supplier)
	}
	for i, l := range v.Limits {
		k.currency(fmt.Sprintf("limits[%d].currency", i), l.Currency)
		currencies = append(currencies, l.Currency)
	}
	k.once("fees[%d].supplier", suppliers)
	k.once("limits[%d].currency", currencies)
}
