package console

import (
	"net/http"
	"time"

	"backstop/internal/act"
	"backstop/internal/analytics"
	"backstop/internal/console"
	"backstop/internal/daily"
	"backstop/views/figures"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

func (s *handlers) reports() listPage[daily.Report] {
	return listPage[daily.Report]{
		spec: console.ReportList, always: true, read: s.Console.Reports, columns: figures.ReportColumns,
	}
}

// reportPage shows the report of a day, with what has changed since.
func (s *handlers) reportPage(c *fiber.Ctx) error {
	f := web.ReadFilter(c)
	zone := f.Text("zone")
	if f.Err != nil {
		return f.Err
	}
	day, err := time.Parse(time.DateOnly, c.Params("day"))
	if err != nil {
		return act.ErrNotFound
	}
	d := figures.DailyData{}
	if d.Report, d.Mails, err = s.Console.Report(c.UserContext(), day.Format(time.DateOnly), zone); err != nil {
		return err
	}
	if d.OtherZone = d.Zone != s.Config.Timezone.String(); !d.OtherZone {
		now, err := analytics.ReadDay(c.UserContext(), s.DB, s.Config.Timezone, d.Figures.From)
		if err != nil {
			return err
		}
		if now.Total.Raised >= d.Figures.Notified.Raised { // otherwise they are cleaned up
			d.Now = &now.Total
		}
	}
	return s.Render(c, http.StatusOK, figures.DailyPage(s.Page(c), d))
}
