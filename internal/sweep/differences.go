package sweep

import (
	"strings"
	"time"

	"backstop/internal/base/money"
	"backstop/internal/base/text"
	"backstop/internal/report"
	"backstop/internal/verify"
)

// rowNamed are the texts that name a row of an invariant.
var rowNamed = map[string]text.Code{
	verify.OfOrder:     namedOrder,
	verify.OfTrade:     namedTrade,
	verify.OfAccount:   namedAccount,
	verify.OfCallback:  namedCallback,
	verify.OfException: namedException,
	verify.OfApproval:  namedApproval,
	verify.OfEntry:     namedEntry,
	verify.OfPayout:    namedPayout,
}

// maxNamed is how many figures or rows a difference names.
const maxNamed = 5

// DifferingMoney describes counters of unnotified money; merchant returns the code of a merchant.
func DifferingMoney(found []report.Difference, corrected bool, merchant func(id int64) string) Difference {
	return differingFigures(UnnotifiedMoney, found, corrected, func(f report.Difference) text.Message {
		return moneyDiffers.Say(merchant(f.Merchant), f.Orders, amount(f.Amount, f.Currency), f.Counted, amount(f.CountedM, f.Currency))
	})
}

func differingFigures[T any](what string, found []T, corrected bool, say func(T) text.Message) Difference {
	head := figuresDiffer
	if corrected {
		head = figuresFixed
	}
	said := []text.Message{head.Say(len(found))}
	for _, f := range found[:min(len(found), maxNamed)] {
		said = append(said, say(f))
	}
	return Difference{What: what, Detail: inEnglish(said), Said: said}
}

func ordersMessage(f report.OrdersDifference) text.Message {
	args := []any{time.UnixMicro(f.Start).UTC().Format(time.RFC3339), int64(f.Span.Minutes())}
	for _, n := range [][4]int64{f.Rows, f.Counters} {
		args = append(args, n[0], amount(n[1], f.Currency), n[2], amount(n[3], f.Currency))
	}
	return ordersDiffer.Say(args...)
}

// brokenInvariant describes an invariant that does not hold.
func brokenInvariant(i *verify.Invariant) Difference {
	said := []text.Message{rowsDiffer.Say(i.Violations)}
	for _, row := range i.Rows[:min(len(i.Rows), maxNamed)] {
		if code, ok := rowNamed[row.Object]; ok {
			said = append(said, code.Say(row.ID))
		}
	}
	return Difference{What: i.ID, Detail: i.Title + ": " + inEnglish(said), Said: said, Rows: i.Rows}
}

func amount(minor int64, currency string) string {
	return money.Format(minor, currency) + " " + currency
}

func inEnglish(said []text.Message) string {
	all := make([]string, len(said))
	for i, m := range said {
		all[i] = m.Error()
	}
	return strings.Join(all, "; ")
}
