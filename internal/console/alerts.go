package console

import (
	"context"

	"backstop/internal/alert"
	"backstop/internal/list"
)

// AlertList declares the list of alerts. An alert's subject may be a queue, a node or a code
// from several tables, so there is no merchant column.
var AlertList = list.New(list.Spec{
	Name:    "alerts",
	Sources: []list.Source{{Table: "alerts", Alias: "al", Key: "id", MerchantColumn: list.NoMerchant}},
	Fields:  []list.Field{{Name: "state", Column: "state", Indexed: true, Values: alertStates}}, // they are few
})

var alertStates = []string{alert.Firing, alert.Resolved, alert.Happened}

// Alerts reads one page of alerts.
func (b *Reader) Alerts(ctx context.Context, q list.Query, s list.Slice) (list.Page[alert.Alert], error) {
	s.Uncounted = true
	return list.Read(ctx, b.db, q, s, func(a *alert.Alert) int64 { return a.ID })
}
