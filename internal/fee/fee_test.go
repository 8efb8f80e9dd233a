package fee

import (
	"encoding/json"
	"math/big"
	"testing"

	"backstop/internal/base/money"

	"pgregory.net/rapid"
)

func TestFeesOfYuan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule   Rule
		amount int64
		fee    int64
	}{
		{Rule{}, 1999, 0},
		{Rule{Rate: 6000}, 1999, 12},                           // 11.994
		{Rule{Rate: 6000}, 1250, 8},                            // 7.5
		{Rule{Rate: 6000}, 1249, 7},                            // 7.494
		{Rule{Rate: 12000, Fixed: 10}, 1999, 34},               // 23.988 + 10
		{Rule{Rate: 6000, Min: 1}, 10, 1},                      // 0.06
		{Rule{Rate: 6000, Min: 5}, 3, 3},                       // never above the amount
		{Rule{Rate: 6000, Max: 100}, 1_000_000, 100},           // 6,000
		{Rule{Fixed: 100}, 50, 50},                             //
		{Rule{Rate: 1}, 499_999, 0},                            // 0.499999
		{Rule{Rate: 1}, 500_000, 1},                            // 0.5
		{Rule{Rate: 999_999}, money.MaxMinor, 999999000000000}, //
		{Rule{Rate: 6000, Fixed: 10}, 0, 0},                    //
		{Rule{Rate: 6000, Fixed: 10}, -5, 0},                   //
	} {
		if got := c.rule.Of(c.amount); got != c.fee {
			t.Errorf("%+v of %d is %d, want %d", c.rule, c.amount, got, c.fee)
		}
	}
}

// currencies has one of each exponent; rules and amounts are in its minor units.
var currencies = rapid.SampledFrom([]string{"JPY", "CNY", "KWD"})

// amounts draws from one minor unit to the maximum, with many round numbers of major units.
func amounts(t *rapid.T, name string, least int64) int64 {
	exponent, err := money.Exponent(currencies.Draw(t, name+" currency"))
	if err != nil {
		t.Fatal(err)
	}
	n := rapid.Int64Range(least, money.MaxMinor).Draw(t, name)
	for range exponent {
		if n*10 > money.MaxMinor {
			break
		}
		n *= 10
	}
	return n
}

func rules(t *rapid.T) Rule {
	r := Rule{
		Rate: PPM(rapid.Int64Range(0, int64(whole)-1).Draw(t, "ppm")), Fixed: amounts(t, "fixed", 0),
		Min: amounts(t, "min", 0), Return: rapid.Bool().Draw(t, "return"),
	}
	if rapid.Bool().Draw(t, "has max") {
		r.Max = rapid.Int64Range(max(r.Min, 1), money.MaxMinor).Draw(t, "max")
	}
	return r
}

// exact computes the fee with arbitrary precision.
func exact(r Rule, amount int64) int64 {
	n := new(big.Int).Mul(big.NewInt(amount), big.NewInt(int64(r.Rate)))
	n.Add(n, big.NewInt(500_000)).Div(n, big.NewInt(1_000_000)).Add(n, big.NewInt(r.Fixed))
	if n.Cmp(big.NewInt(r.Min)) < 0 {
		n.SetInt64(r.Min)
	}
	if r.Max > 0 && n.Cmp(big.NewInt(r.Max)) > 0 {
		n.SetInt64(r.Max)
	}
	if n.Cmp(big.NewInt(amount)) > 0 {
		n.SetInt64(amount)
	}
	return n.Int64()
}

func TestAFeeIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r, amount := rules(t), amounts(t, "amount", 1)
		got := r.Of(amount)
		if want := exact(r, amount); got != want {
			t.Fatalf("%+v of %d is %d, want %d", r, amount, got, want)
		}
		if r.IsZero() && got != 0 || got < 0 || got > amount {
			t.Fatalf("%+v of %d is %d", r, amount, got)
		}
		if more := rapid.Int64Range(amount, money.MaxMinor).Draw(t, "more"); r.Of(more) < got {
			t.Fatalf("%+v takes %d of %d, and less of %d", r, got, amount, more)
		}
	})
}

// In whatever parts a payment is refunded, the returned fee never exceeds the refunded share of
// it, and in the end the whole fee is returned.
func TestReturnedFeesAreWholeInTheEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		paid := amounts(t, "paid", 1)
		fee := rapid.Int64Range(0, paid).Draw(t, "fee")
		var refunded, returned int64
		for refunded < paid {
			part := paid - refunded
			if rapid.IntRange(0, 5).Draw(t, "last") > 0 {
				part = rapid.Int64Range(1, part).Draw(t, "part")
			}
			refunded += part
			back := Returned(fee, paid, refunded, returned)
			if returned += back; back < 0 || returned > fee {
				t.Fatalf("%d of a fee of %d are returned", returned, fee)
			}
			share := new(big.Int).Mul(big.NewInt(fee), big.NewInt(refunded))
			if share.Div(share, big.NewInt(paid)); returned != share.Int64() {
				t.Fatalf("%d returned, want %d of %d for %d of %d", returned, share, fee, refunded, paid)
			}
		}
		if returned != fee {
			t.Fatalf("everything is refunded, but %d of the fee of %d are returned", returned, fee)
		}
	})
}

func TestWhatIsNotRefundedReturnsNoFee(t *testing.T) {
	t.Parallel()
	for _, c := range [][4]int64{{10, 100, 0, 0}, {0, 100, 100, 0}, {10, 0, 5, 0}, {10, 100, 20, 9}} {
		if got := Returned(c[0], c[1], c[2], c[3]); got != 0 {
			t.Errorf("%v returns %d", c, got)
		}
	}
	if got := Returned(10, 100, 200, 0); got != 10 {
		t.Errorf("more than was paid returns %d of 10", got)
	}
}

func TestRatesAreRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]PPM{
		"0.6%": 6000, "0%": 0, "1.2%": 12000, "0.0001%": 1, "99.9999%": 999_999, "12%": 120_000,
		"1.50%": 15_000,
	} {
		got, err := ParseRate(text)
		if err != nil || got != want {
			t.Errorf("%s is %d, %v; want %d", text, got, err, want)
		}
		if again, err := ParseRate(got.String()); err != nil || again != got {
			t.Errorf("%s is written as %s", text, got)
		}
	}
	for _, text := range []string{
		"", "%", "0.6", "6000", "100%", "100.5%", "0.00001%", "-1%", "+1%", "1e1%", ".5%", "5.%", "00.5%", "1,5%",
		" 1%", "1 %", "１%", "1%%",
	} {
		if got, err := ParseRate(text); err == nil {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}

func TestTheMostExactRuleWins(t *testing.T) {
	t.Parallel()
	rules := Rules{Any: {Rate: 1}, "wx": {Rate: 2}, "free": {}}
	for supplier, want := range map[string]PPM{"wx": 2, "ali": 1, "free": 0} {
		if got := rules.For(supplier).Rate; got != want {
			t.Errorf("%s has %d, want %d", supplier, got, want)
		}
	}
	if got := Rules(nil).For("wx"); !got.IsZero() {
		t.Errorf("no rules: %+v", got)
	}
}

func TestStoredRulesAreWhatTheyWere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		is := rules(t)
		text, err := json.Marshal(is)
		if err != nil {
			t.Fatal(err)
		}
		var again Rule
		if err := json.Unmarshal(text, &again); err != nil || again != is {
			t.Fatalf("%s is %+v, %v; want %+v", text, again, err, is)
		}
	})
	for _, text := range []string{`{"ppm":1000000}`, `{"ppm":-1}`, `{"fixed":-1}`, `{"max":1000000000000001}`, `[]`} {
		if err := json.Unmarshal([]byte(text), new(Rule)); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}

func BenchmarkFee(b *testing.B) {
	r := Rule{Rate: 6000, Fixed: 10, Min: 1}
	for b.Loop() {
		r.Of(199_900)
	}
}
