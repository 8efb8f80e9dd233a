package exception

import (
	"encoding/json"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// Two reports of one fact are one row with the facts of the newer one, whether one transaction reports
// both or one after the other, and in whichever order.
func TestTheNewerReportOfAFactIsStored(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		report := func(subject string, at, amount int64) Item {
			return Item{
				Kind: AmountMismatch, SupplierID: 1, Subject: subject, Amount: amount, Currency: "CNY", OccurredAt: at,
				Detail: json.RawMessage(`{"got":` + string(rune('0'+amount)) + `}`),
			}
		}
		k := desk{t, d}
		for subject, open := range map[string]func(older, newer Item){
			"together, in order":  func(older, newer Item) { k.open(older, newer) },
			"together, backwards": func(older, newer Item) { k.open(newer, older) },
			"in order":            func(older, newer Item) { k.open(older); k.open(newer) },
			"backwards":           func(older, newer Item) { k.open(newer); k.open(older) },
		} {
			open(report(subject, 10, 1), report(subject, 20, 2))
			var row Item
			if err := d.Read.NewSelect().Model(&row).Where("x.subject = ?", subject).Scan(t.Context()); err != nil {
				t.Fatal(err)
			}
			if row.Amount != 2 || row.OccurredAt != 20 || row.Seen != 2 || string(row.Detail) != `{"got":2}` && string(row.Detail) != `{"got": 2}` {
				t.Errorf("%s: amount %d of %d, seen %d times, %s", subject, row.Amount, row.OccurredAt, row.Seen, row.Detail)
			}
		}
	})
}
