package console

import (
	"context"
	"regexp"
	"strings"

	"backstop/internal/base/money"
	"backstop/internal/list"

	"github.com/uptrace/bun"
)

// amountField filters a list with money by its rows' amount: 3499.00, 3499 CNY, >100, <=9.99 or
// 100..200.
var amountField = amountOf(nil)

// amountOf is amountField for rows with other money than their source's; nil = that.
func amountOf(of *list.Money) list.Field {
	return list.Field{
		Name: "amount",
		Check: func(text string) string {
			if _, ok := amounts(text); !ok {
				return "use an amount such as 3499.00 or 3499.00 CNY, >100, <=9.99, or 100..200"
			}
			return ""
		},
		Match: func(_ context.Context, in list.Lookup, text string) (list.Match, error) {
			if of == nil {
				return matchAmount(in.Source.Money, text), nil
			}
			return matchAmount(*of, text), nil
		},
	}
}

// bound is one side of a range of amounts.
type bound struct {
	operator string
	sums     map[int64][]string // currencies by minor units; see money.Sums
}

// operators are those of SQL, by how a person writes them.
var operators = map[string]string{
	"": "=", ">=": ">=", "<=": "<=", ">": ">", "<": "<", "≥": ">=", "≤": "<=", "＞": ">", "＜": "<",
}

var bounded = regexp.MustCompile(`^(>=|<=|>|<|≥|≤|＞|＜)?\s*(.+)$`)

// amounts reads an amount or a range of them.
func amounts(text string) ([]bound, bool) {
	var all []bound
	if from, to, ok := strings.Cut(text, ".."); ok {
		all = []bound{{">=", money.Sums(strings.TrimSpace(from))}, {"<=", money.Sums(strings.TrimSpace(to))}}
	} else if m := bounded.FindStringSubmatch(text); m != nil {
		all = []bound{{operators[m[1]], money.Sums(m[2])}}
	}
	for _, b := range all {
		if len(b.sums) == 0 {
			return nil, false
		}
	}
	return all, len(all) > 0
}

// matchAmount matches amounts as operators write them. The same digits are different minor units
// in currencies with different exponents.
func matchAmount(of list.Money, text string) list.Match {
	bounds, ok := amounts(text)
	if !ok {
		return list.Match{None: true}
	}
	var all []string
	var args []any
	for _, b := range bounds {
		var sums []string
		for minor, currencies := range b.sums {
			sums, args = append(sums, of.Minor+" "+b.operator+" ? AND "+of.Currency+" IN (?)"), append(args, minor, bun.List(currencies))
		}
		all = append(all, "("+strings.Join(sums, " OR ")+")")
	}
	return list.Match{Where: strings.Join(all, " AND "), Args: args}
}
