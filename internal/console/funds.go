package console

import (
	"context"
	"strings"

	"backstop/internal/base/moves"
	"backstop/internal/list"

	"github.com/uptrace/bun"
)

// NotEnded stands for every state of a refund, a payout or a dispute that has not ended.
const NotEnded = "open"

// fundList declares the list of refunds, payouts or disputes, with the fields by which their
// numbers are found.
func fundList[S ~string](table, alias string, states moves.Table[S], numbers ...list.Field) *list.Spec {
	all := append([]string{NotEnded}, states.Words()...)
	return list.New(list.Spec{
		Name: table,
		Sources: []list.Source{{
			Table: table, Alias: alias, Key: "id", MerchantColumn: alias + ".merchant_id",
			Money: list.Money{Minor: alias + ".amount", Currency: alias + ".currency"}, Columns: fundColumns(alias),
		}},
		Fields: append(
			numbers,
			list.Field{Word: "state", Match: matchFunds(table, alias, states), Values: all},
			list.Field{Word: "merchant", Match: alone("merchants", alias+".merchant_id"), Suggest: codes("merchants", "name")},
			list.Field{Word: "supplier", Match: alone("suppliers", alias+".supplier_id"), Suggest: codes("suppliers", "kind")},
			amountField,
		),
	})
}

// fundColumns are all columns of the row, with the codes of its supplier and its merchant.
func fundColumns(alias string) string {
	return alias + ".*, COALESCE((SELECT su.code FROM suppliers AS su WHERE su.id = " + alias + ".supplier_id), '') AS supplier," +
		" COALESCE((SELECT m.code FROM merchants AS m WHERE m.id = " + alias + ".merchant_id), '') AS merchant"
}

func matchFunds[S ~string](table, alias string, states moves.Table[S]) func(context.Context, list.Lookup, string) (list.Match, error) {
	return func(_ context.Context, in list.Lookup, state string) (list.Match, error) {
		of := states.Open()
		if state != NotEnded {
			one, ok := states.Parse(state)
			if !ok {
				return list.Match{None: true}, nil
			}
			of = []S{one}
		}
		where := states.In(alias+".status", of...)
		return list.Match{Where: where, Indexed: len(in.Query.Terms) == 1, Few: func(context.Context, bun.IDB) (string, error) {
			return "SELECT * FROM " + table + " AS " + alias + " WHERE " + where, nil
		}}, nil
	}
}

// byNumber finds rows of any age by a number, for each "?" of the condition.
func byNumber(where string) func(context.Context, list.Lookup, string) (list.Match, error) {
	return func(_ context.Context, _ list.Lookup, no string) (list.Match, error) {
		m := list.Match{Where: where, Indexed: true, Ageless: true}
		for range strings.Count(where, "?") {
			m.Args = append(m.Args, no)
		}
		return m, nil
	}
}
