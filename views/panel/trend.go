package panel

import (
	"backstop/internal/console"
	"backstop/views/ui"
	"backstop/views/wording"
)

// Trend draws a merchant's rate; parts without attempts are left out.
func Trend(h console.MerchantHealth) ui.Curve {
	var at []int64
	var values []float64
	for i, p := range h.Trend {
		if r, ok := p.Rate(); ok {
			at, values = append(at, int64(i)), append(values, r)
		}
	}
	return ui.DrawCurve(at, values, 0, int64(len(h.Trend)-1), 1)
}

// TrendKind gives a curve the colour of the state beside it.
func TrendKind(h console.MerchantHealth) string {
	if kind := wording.MerchantHealth(h).Kind; kind != "idle" {
		return kind
	}
	return "acc"
}
