package app

import (
	"testing"
	"time"

	"backstop/internal/breaker"
	"backstop/internal/merchant"
)

func TestAMerchantsBreakerHasItsOwnRules(t *testing.T) {
	all := breaker.Policy{Failures: 5, Open: 300 * time.Second, RatePercent: 80, Window: time.Minute, Least: 20}
	none := all
	none.RatePercent = 0
	for name, c := range map[string]struct {
		own  merchant.Breaker
		want breaker.Policy
	}{
		"none": {merchant.Breaker{}, all},
		"each": {
			merchant.Breaker{Failures: 3, OpenMS: 2000, RatePercent: 50, WindowMS: 1000, Least: 7},
			breaker.Policy{Failures: 3, Open: 2 * time.Second, RatePercent: 50, Window: time.Second, Least: 7},
		},
		"no rate": {merchant.Breaker{RatePercent: merchant.NoRate}, none},
	} {
		if got := ownPolicy(all, c.own); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
