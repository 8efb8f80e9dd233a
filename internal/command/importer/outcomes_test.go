package importer_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"backstop/internal/command/importer"
	"backstop/internal/comparison"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/settings/apply"
)

func TestOutcomesAreComparedByWhatBecameOfTheOrders(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *paymenttest.Fixture) {
		// Orders as old as the file's first one, and one before it.
		const early, before = `"created_at": "2026-11-20T08:00:00Z"`, `"created_at": "2026-11-19T08:00:00Z"`
		paid := func(trade string) string { return fmt.Sprintf(`"supplier_trade_no": %q, "paid_amount": 1999`, trade) }
		mustImport(t, f, 8, entry("A-1", "paid", paid("T-1")+", "+early), entry("A-2", "paid", paid("T-2")), entry("A-3", "paid", paid("T-3")),
			entry("A-4", "pending", ""), entry("A-5", "closed", early), entry("A-6", "paid", paid("T-6")+", "+early), entry("A-7", "closed", ""),
			entry("A-8", "paid", paid("T-8")+", "+before))
		var found []string
		got, err := importer.Compare(t.Context(), f.DB, "there.jsonl", lines(
			`{"order_no":"A-1","status":"paid","paid_amount":1999}`,
			`{"order_no":"A-2","status":"paid","paid_amount":1999,"supplier_trade_no":"T-other"}`,
			`{"order_no":"A-3","status":"paid","paid_amount":2000,"supplier_trade_no":"T-3"}`,
			entry("A-4", "paying", ""), entry("A-5", "failed", ""), entry("A-7", "paid", `"supplier_trade_no": "T-7"`),
			`{"order_no":"A-9","status":"pending"}`,
		), func(d comparison.Difference) error {
			found = append(found, fmt.Sprintf("%s: %s, %s", d.OrderNo, d.Here, d.There))
			return nil
		})
		want := []string{
			"A-2: paid 1999 T-2, paid 1999 T-other", "A-3: paid 1999 T-3, paid 2000 T-3", "A-7: closed, paid 1999 T-7",
			"A-9: none, pending", "A-6: paid 1999 T-6, none",
		}
		counts := comparison.Counts{Same: 3, Differ: 3, OnlyThere: 1, OnlyHere: 1}
		if err != nil || got != counts || got.Agree() || !slices.Equal(found, want) {
			t.Errorf("%+v, %v\n%s", got, err, strings.Join(found, "\n"))
		}
		f.Want(t, 8, "SELECT count(*) FROM orders")
	})
}

func TestAWrongLineOfOutcomesIsNamed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *paymenttest.Fixture) {
		for text, want := range map[string]string{
			`{"status":"paid","paid_amount":1}`:                    "order_no: missing",
			`{"order_no":"A-1","status":"done"}`:                   "status: use pending",
			`{"order_no":"A-1","status":"paid"}`:                   "paid_amount: missing",
			`{"order_no":"A-1","status":"paid","paid_amount":"1"}`: "paid_amount: use a whole number",
			`{"order_no":"A-1","state":"paid"}`:                    "state",
			`[1]`:                                                  "not one JSON object",
			`{"order_no":"A-1","status":"closed"}` + "\n" + `{"order_no":"A-1","status":"paid","paid_amount":1}`: "order_no: twice",
			`{"order_no":"` + strings.Repeat("A", 70_000) + `","status":"closed"}`:                               "longer than 64 KiB",
		} {
			_, err := importer.Compare(t.Context(), f.DB, "there.jsonl", lines(text), func(d comparison.Difference) error {
				t.Errorf("%.60s: %v is compared", text, d)
				return nil
			})
			if _, ok := errors.AsType[*apply.Invalid](err); !ok || !strings.Contains(err.Error(), want) {
				t.Errorf("%.60s: %v, want %s", text, err, want)
			}
		}
	})
}
