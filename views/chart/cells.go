package chart

import (
	"math"
	"strconv"
	"strings"

	"backstop/internal/base/money"
	"backstop/internal/base/text"
	"backstop/internal/report"
	"backstop/views/ui"
)

// Cell is one value of a figure's table, as a page shows it and as a spreadsheet reads it.
type Cell struct{ Show, Plain string }

func Same(s string) Cell { return Cell{s, s} }

func CountCell(n int64) Cell { return Cell{ui.Count(n), strconv.FormatInt(n, 10)} }

func NoCell(p *ui.Page) Cell { return Cell{p.T(text.None), ""} }

func ShareCell(p *ui.Page, v float64, known bool) Cell {
	if !known || math.IsNaN(v) {
		return NoCell(p)
	}
	return Cell{ui.Percent(v, 2), strconv.FormatFloat(v, 'f', 6, 64)}
}

// SumsCell writes the sums of several currencies.
func SumsCell(p *ui.Page, sums []report.Sum) Cell {
	if len(sums) == 0 {
		return NoCell(p)
	}
	var show, plain []string
	for _, s := range sums {
		show = append(show, ui.Amount(s.Minor, s.Currency)+" "+s.Currency)
		plain = append(plain, money.Format(s.Minor, s.Currency)+" "+s.Currency)
	}
	return Cell{strings.Join(show, " · "), strings.Join(plain, "; ")}
}

func LengthCell(p *ui.Page, h report.Histogram, q float64) Cell {
	l, ok := h.Quantile(q)
	if !ok {
		return NoCell(p)
	}
	return Cell{ui.LengthText(l), strings.TrimSuffix(l.D.String(), "0s")}
}

// ExactPercent writes a share with as many decimals as it needs, at most three.
func ExactPercent(share float64) string {
	return strconv.FormatFloat(math.Round(share*1e5)/1e3, 'f', -1, 64) + "%"
}

func ShareText(p *ui.Page, of func() (float64, bool)) string {
	v, ok := of()
	return ShareCell(p, v, ok).Show
}
