package console

import (
	"context"
	"net/http"
	"strconv"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/sheet"
	"backstop/internal/sweep"
	"backstop/views/work"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// sweepsShown is the number of sweeps per page.
const sweepsShown = 50

// sweepsPage shows the sweeps; for ?format=, it returns all of them as a file.
func (s *handlers) sweepsPage(c *fiber.Ctx) error {
	if format, err := web.ReadFormat(c); err != nil {
		return err
	} else if format != "" {
		return s.exportSweeps(c, format)
	}
	d, err := s.readSweeps(c)
	if err != nil {
		return err
	}
	did, err := s.done(c, sweep.ActObject, sweep.Next)
	if err != nil {
		return err
	}
	ctx, now := c.UserContext(), s.DB.NowTime().In(s.Config.Timezone)
	nights, err := sweep.Nights(ctx, s.DB.Read, sweep.Number(work.CalendarFrom(now)))
	if err != nil {
		return err
	}
	d.Weeks, d.Begun, d.Key, d.Days = work.SweepWeeks(now, nights), did != nil, act.NewKey(), s.Config.SweepDays
	d.CanRun = s.Policy.Allows(web.Operator(c).Roles, access.RunSweeps)
	p := s.Page(c)
	p.Parts = d.Now != nil // it asks for how far the sweep is
	return s.Render(c, http.StatusOK, work.Sweeps(p, d))
}

func (s *handlers) exportSweeps(c *fiber.Ctx, format sheet.Format) error {
	p := s.Page(c)
	return exportEach(s, c, exported[*sweep.Sweep]{
		format: format, name: "sweeps", page: p, columns: work.SweepColumns,
		each: func(fn func(*sweep.Sweep) error) error {
			for before := int64(0); ; {
				rows, err := sweep.List(context.Background(), s.DB.Read, before, sweepsShown) // the request has ended by then
				if err != nil || len(rows) == 0 {
					return err
				}
				for _, row := range rows {
					if err := fn(row); err != nil {
						return err
					}
				}
				before = rows[len(rows)-1].ID
			}
		},
	})
}

// sweepRuns returns the sweeps to a script, and redirects any other request to the page.
func (s *handlers) sweepRuns(c *fiber.Ctx) error {
	if !web.IsFragment(c) {
		return c.Redirect("/sweeps", http.StatusSeeOther)
	}
	d, err := s.readSweeps(c)
	if err != nil {
		return err
	}
	return s.Render(c, http.StatusOK, work.SweepRuns(s.Page(c), d))
}

func (s *handlers) readSweeps(c *fiber.Ctx) (d work.SweepsData, err error) {
	before := int64(0)
	if text := c.Query("before"); text != "" {
		if before, err = strconv.ParseInt(text, 10, 64); err != nil || before < 1 {
			return d, web.ErrCursor
		}
	}
	ctx := c.UserContext()
	if d.Now, err = sweep.Now(ctx, s.DB.Read); err != nil {
		return d, err
	}
	if d.Rows, err = sweep.List(ctx, s.DB.Read, before, sweepsShown+1); err != nil {
		return d, err
	}
	if len(d.Rows) > sweepsShown {
		d.Rows = d.Rows[:sweepsShown]
		d.Older = d.Rows[sweepsShown-1].ID
	}
	return d, nil
}
