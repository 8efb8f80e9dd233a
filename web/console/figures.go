package console

import (
	"context"
	"net/http"
	"slices"
	"time"

	"backstop/internal/act"
	"backstop/internal/alert"
	"backstop/internal/analytics"
	"backstop/internal/audit"
	"backstop/internal/base/sheet"
	"backstop/internal/console"
	"backstop/internal/dailyreport"
	"backstop/views/figures"
	"backstop/views/ui"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// analyticsEvery is the maximum age of the figures of the analytics page.
const analyticsEvery = 10 * time.Second

// analyticsPage shows how notifications, payments and exceptions went, and what to expect. The
// table of one figure is open if the query names it.
func (s *handlers) analyticsPage(c *fiber.Ctx) error {
	d, err := s.analyticsData(c)
	if err != nil {
		return err
	}
	d.Open = c.Query("table")
	p := s.Page(c)
	p.Parts = true
	return s.Render(c, http.StatusOK, figures.Analytics(p, d))
}

// analyticsData returns all figures of the request's range: one query serves all consoles.
func (s *handlers) analyticsData(c *fiber.Ctx) (figures.AnalyticsData, error) {
	of := analytics.RangeOf(c.Query("range")).Name
	d, _, err := s.figures.Get(of, analyticsEvery, func(ctx context.Context) (figures.AnalyticsData,
		error,
	) {
		return s.readAnalytics(ctx, of)
	})
	return d, err
}

// figureTable returns the table behind one figure to a script, and redirects any other request to
// the page with that table open.
func (s *handlers) figureTable(c *fiber.Ctx) error {
	d, err := s.analyticsData(c)
	if err != nil {
		return err
	}
	p := s.Page(c)
	f, ok := d.Figure(p, c.Params("figure"))
	if !ok {
		return act.ErrNotFound
	}
	if !web.IsFragment(c) {
		return c.Redirect(d.TableLink(f), http.StatusSeeOther)
	}
	return s.Render(c, http.StatusOK, figures.FigureTable(p, f))
}

// figureChart returns one chart with the values of its columns to a script, and redirects any
// other request to the page.
func (s *handlers) figureChart(c *fiber.Ctx) error {
	d, err := s.analyticsData(c)
	if err != nil {
		return err
	}
	p := s.Page(c)
	chart, ok := d.Chart(p, c.Params("figure"))
	if !ok {
		return act.ErrNotFound
	}
	if !web.IsFragment(c) {
		return c.Redirect("/analytics?range="+d.Range.Name, http.StatusSeeOther)
	}
	return s.Render(c, http.StatusOK, chart)
}

func (s *handlers) readAnalytics(ctx context.Context, of string) (d figures.AnalyticsData, err error) {
	d.Objective = s.Config.NotifyObjective.Share()
	if d.Page, err = analytics.Read(ctx, s.DB, s.Config.Timezone, analytics.RangeOf(of)); err != nil {
		return d, err
	}
	if d.Expected, err = analytics.Volume(ctx, s.DB); err != nil {
		return d, err
	}
	limits, err := alert.ForecastLimits(ctx, s.DB.Read)
	if err != nil {
		return d, err
	}
	if d.Backlog, err = analytics.Backlog(ctx, s.DB, limits.Backlog); err != nil {
		return d, err
	}
	d.Rate, err = analytics.SuccessRate(ctx, s.DB, limits.Rate)
	return d, err
}

// figure sends the table behind one figure as a file, and redirects any other request to the page.
func (s *handlers) figure(c *fiber.Ctx) error {
	format, err := web.ReadFormat(c)
	if err != nil {
		return err
	}
	if format == "" {
		return c.Redirect("/analytics?range="+analytics.RangeOf(c.Query("range")).Name, http.StatusSeeOther)
	}
	// Another site's link must not write into the audit in the operator's name.
	if c.Get("Sec-Fetch-Site") == "cross-site" {
		return web.ErrForeign
	}
	r := analytics.RangeOf(c.Query("range"))
	d, err := s.readAnalytics(c.UserContext(), r.Name)
	if err != nil {
		return err
	}
	p, by := s.Page(c), "operator:"+web.Operator(c).Name
	f, ok := d.Figure(p, c.Params("figure"))
	if !ok {
		return act.ErrNotFound
	}
	name := "analytics-" + f.Name
	heads := make([]sheet.Head, len(f.Heads))
	for i, text := range f.Heads {
		heads[i] = sheet.Head{Text: text, Kind: sheet.Number} // where the cell is one
	}
	return s.StreamTable(c, web.Table{
		Format: format, Name: name + p.Now.In(p.Zone).Format("-20060102-150405"), By: by,
		Title: ui.ExportTitle(p, p.T(f.Title)+" · range="+r.Name, by), Heads: heads,
		Begin: func() error {
			return s.keepAct(c, audit.Act{
				Actor: by, Action: "list.export", Object: "list", ObjectID: name, Params: map[string]any{
					"filter": "range=" + r.Name,
					"format": string(format),
				},
			})
		},
		Each: func(write func([]string) error) error {
			for i := range f.Table {
				if err := write(slices.Clone(f.Plain(i))); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

func (s *handlers) reports() listPage[dailyreport.Report] {
	return listPage[dailyreport.Report]{
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
