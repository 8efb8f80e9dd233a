// Package fee computes the fee for an amount by a rule, and the part of a fee that is returned
// with a refund. All amounts are minor units of one currency; floats are never used.
package fee

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"backstop/internal/base/money"
)

// PPM is a rate in parts per million: 0.6 % is 6,000.
type PPM int64

// whole is 100 %.
const whole PPM = 1_000_000

// Rule is how a fee is computed. The zero Rule charges nothing.
type Rule struct {
	Rate  PPM
	Fixed int64 // minor units, added to the rate's part
	Min   int64 // minor units
	Max   int64 // minor units; 0 = none
	// Return: the fee is returned with a refund, in proportion.
	Return bool
}

// IsZero reports whether the rule never charges anything.
func (r Rule) IsZero() bool { return r.Rate == 0 && r.Fixed == 0 && r.Min == 0 }

// Of returns the fee for an amount: the rate's part rounded half up, plus the fixed part, at
// least Min, at most Max, and never more than the amount.
func (r Rule) Of(amount int64) int64 {
	if amount <= 0 || r.IsZero() {
		return 0
	}
	hi, lo := bits.Mul64(uint64(amount), uint64(r.Rate))
	lo, carry := bits.Add64(lo, uint64(whole)/2, 0)
	part, _ := bits.Div64(hi+carry, lo, uint64(whole)) // below the amount, since a rate is below 100 %
	fee := max(int64(part)+r.Fixed, r.Min)             // both are at most money.MaxMinor: no overflow
	if r.Max > 0 {
		fee = min(fee, r.Max)
	}
	return min(fee, amount)
}

// Returned returns how much of a fee a refund returns: refunded is the total of all refunds
// including this one, returned what the earlier ones returned. It is rounded down; once the
// whole payment is refunded, the whole fee is returned.
func Returned(fee, paid, refunded, returned int64) int64 {
	if fee <= 0 || paid <= 0 || refunded <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(fee), uint64(min(refunded, paid)))
	part, _ := bits.Div64(hi, lo, uint64(paid))
	return max(int64(part)-returned, 0)
}

// maxDecimals is the number of decimals of a rate in percent that parts per million can express.
const maxDecimals = 4

// ParseRate reads a rate such as "0.6%": at most four decimals, below 100 %.
func ParseRate(text string) (PPM, error) {
	const use = "use a percentage from 0% to 99.9999%, such as 0.6%"
	digits, percent := strings.CutSuffix(text, "%")
	units, decimals, dotted := strings.Cut(digits, ".")
	switch {
	case !percent, !isDigits(units), dotted && !isDigits(decimals), len(units) > 1 && units[0] == '0':
		return 0, fmt.Errorf("%s", use)
	case len(decimals) > maxDecimals:
		return 0, fmt.Errorf("at most %d decimals: %s", maxDecimals, use)
	case len(units) > 2:
		return 0, fmt.Errorf("a rate must be below 100%%: %s", use)
	}
	n, err := strconv.ParseInt(units+decimals+strings.Repeat("0", maxDecimals-len(decimals)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s", use)
	}
	return PPM(n), nil
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// String returns the shortest form of the rate that ParseRate reads.
func (p PPM) String() string {
	units, decimals := p/10_000, p%10_000
	if decimals == 0 {
		return fmt.Sprintf("%d%%", units)
	}
	return fmt.Sprintf("%d.%s%%", units, strings.TrimRight(fmt.Sprintf("%04d", decimals), "0"))
}

// Any is the key of the rule for suppliers without one of their own.
const Any = "*"

// Rules are the rules of one merchant, by the code of a supplier or Any.
type Rules map[string]Rule

// For returns the rule for a supplier: its own, else that of Any.
func (r Rules) For(supplier string) Rule {
	if own, ok := r[supplier]; ok {
		return own
	}
	return r[Any]
}

// compact is a Rule as it is stored.
type compact struct {
	Rate   PPM   `json:"ppm,omitempty"`
	Fixed  int64 `json:"fixed,omitempty"`
	Min    int64 `json:"min,omitempty"`
	Max    int64 `json:"max,omitempty"`
	Return bool  `json:"return,omitempty"`
}

// MarshalJSON returns the stored form.
func (r Rule) MarshalJSON() ([]byte, error) { return json.Marshal(compact(r)) }

// UnmarshalJSON reads the stored form, within the bounds that Of relies on.
func (r *Rule) UnmarshalJSON(text []byte) error {
	var c compact
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	if c.Rate < 0 || c.Rate >= whole || min(c.Fixed, c.Min, c.Max) < 0 || max(c.Fixed, c.Min, c.Max) > money.MaxMinor {
		return fmt.Errorf("fee rule out of bounds: %s", text)
	}
	*r = Rule(c)
	return nil
}
