package console

import (
	"context"

	"backstop/internal/act"
	"backstop/internal/alert"
	"backstop/internal/dailyreport"
	"backstop/internal/list"
)

// ReportList declares the list of daily reports, which are about all merchants.
var ReportList = list.New(list.Spec{
	Name:    "reports",
	Sources: []list.Source{{Table: "daily_reports", Alias: "dr", Key: "id", MerchantColumn: list.NoMerchant}},
})

// Reports reads one page of daily reports.
func (b *Reader) Reports(ctx context.Context, q list.Query, s list.Slice) (list.Page[dailyreport.Report], error) {
	return list.Read(ctx, b.db, q, s, func(r *dailyreport.Report) int64 { return r.ID })
}

// Report reads the report of a day with its mails; see dailyreport.Find. Errors: act.ErrNotFound.
func (b *Reader) Report(ctx context.Context, day, zone string) (*dailyreport.Report, []alert.Message, error) {
	r, err := dailyreport.Find(ctx, b.db.Read, day, zone)
	if err == nil && r == nil {
		err = act.ErrNotFound
	}
	if err != nil {
		return nil, nil, err
	}
	mails, err := r.Messages(ctx, b.db.Read)
	return r, mails, err
}
