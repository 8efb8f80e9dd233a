package console

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"backstop/internal/base/invalid"
	"backstop/internal/base/money"
	"backstop/internal/fund"
	"backstop/internal/ledger"
	"backstop/views/funds"
	"backstop/views/ui"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// monthTime bounds the query of the statements of a month, which reads every entry of it.
const monthTime = 20 * time.Second

// statementsPage shows the statements of all merchants of a month.
func (s *handlers) statementsPage(c *fiber.Ctx) error { return s.monthPage(c, "") }

// monthPage shows the statement of a month, of one merchant or of all ("").
func (s *handlers) monthPage(c *fiber.Ctx, merchant string) error {
	f, p := web.ReadFilter(c), s.Page(c)
	d := funds.MonthData{Merchant: merchant, Month: f.Text("month"), Currency: f.Text("currency")}
	if d.Currency != "" {
		if _, err := money.Exponent(d.Currency); err != nil {
			f.Blame("currency", err.Error())
		}
	}
	if f.Err != nil {
		return f.Err
	}
	format, err := web.ReadFormat(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), monthTime)
	defer cancel()
	by := s.Actor(c)
	err = s.readMonth(ctx, p, &d, func(merchant string) bool { return s.Sees(by, merchant) })
	problem := new(invalid.FieldError)
	switch {
	case errors.As(err, &problem) && format == "":
		d.Problem = problem.Says
		return s.Render(c, http.StatusUnprocessableEntity, funds.MonthPage(p, d))
	case err != nil:
		return slow(ctx, err)
	case format == "":
		return s.Render(c, http.StatusOK, funds.MonthPage(p, d))
	}
	filter := "month=" + d.Month
	if d.Currency != "" {
		filter += "&currency=" + d.Currency
	}
	if merchant == "" {
		return exportRead(s, c, exported[fund.Month]{
			format: format, name: "statements-" + d.Month, filter: filter, page: p, columns: d.Columns(),
		}, d.Rows)
	}
	var lines []funds.MonthLine
	for _, m := range d.Rows {
		lines = append(lines, funds.MonthLines(m)...)
	}
	return exportRead(s, c, exported[funds.MonthLine]{
		format: format, name: "statement-" + merchant + "-" + d.Month, filter: filter, page: p, columns: funds.MonthLineColumns,
	}, lines)
}

// readMonth reads the statements of the month, of merchants that the viewer sees, in the viewer's time zone. Errors: *invalid.FieldError.
func (s *handlers) readMonth(ctx context.Context, p *ui.Page, d *funds.MonthData, sees func(merchant string) bool) error {
	at, err := ledger.FirstEntry(ctx, s.DB.Read)
	if err != nil {
		return err
	}
	first := time.UnixMicro(at)
	if d.From, d.To, err = fund.MonthSpan(d.Month, p.Zone, first, p.Now); err != nil {
		return err
	}
	d.Month = d.From.Format(fund.MonthLayout)
	if at != 0 && d.From.After(first) {
		d.Before = d.From.Add(-time.Hour).Format(fund.MonthLayout)
	}
	if !d.To.After(p.Now) {
		d.After = d.To.Format(fund.MonthLayout)
	}
	d.Rows, err = fund.Months(ctx, s.DB, d.Merchant, d.From, d.To)
	d.Rows = slices.DeleteFunc(d.Rows, func(m fund.Month) bool { return !sees(m.Merchant) })
	if d.Currency != "" {
		d.Rows = slices.DeleteFunc(d.Rows, func(m fund.Month) bool { return m.Currency != d.Currency })
	}
	return err
}
