package ui

import (
	"strconv"

	"backstop/internal/base/text"
	"backstop/internal/report"
)

// MoneyText is an amount within a sentence: its code stands behind it.
func MoneyText(minor int64, currency string) string { return Amount(minor, currency) + " " + currency }

// TextOrNone is a value, or what stands for none.
func TextOrNone(p *Page, value string) string {
	if value == "" {
		return p.T(text.None)
	}
	return value
}

func CountOrNone(p *Page, n int64) string {
	if n == 0 {
		return p.T(text.None)
	}
	return Count(n)
}

// PerSecond writes a rate with its significant digits.
func PerSecond(v float64) string {
	if v > 0 && v < 0.1 {
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

func P95Text(p *Page, h report.Histogram) string {
	if d, ok := h.Quantile(0.95); ok {
		return LengthText(d)
	}
	return p.T(text.None)
}

func RateText(p *Page, pt report.Point, decimals int) string {
	if r, ok := pt.Rate(); ok {
		return Percent(r, decimals)
	}
	return p.T(text.None)
}

// LeadSum is the sum of the currency with the most orders; others stand beside it.
func LeadSum(s report.Standing) (main report.Sum, others []report.Sum) {
	for _, m := range s.Sums {
		if m.Orders > main.Orders {
			main = m
		}
	}
	for _, m := range s.Sums {
		if m.Currency != main.Currency && m.Orders > 0 {
			others = append(others, m)
		}
	}
	return main, others
}

// MostOthers is how many further currencies a panel shows.
const MostOthers = 3
