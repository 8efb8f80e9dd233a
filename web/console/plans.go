package console

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"backstop/internal/act"
	"backstop/internal/bulk"
	"backstop/internal/console"
	"backstop/views/pages"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// runTime is how long one request runs a plan; the page offers to continue it.
const runTime = 8 * time.Second

// proposePlan freezes the picked rows, or all that the list's filter in the address
// finds, and shows what would be done.
func (s *handlers) proposePlan(c *fiber.Ctx) error {
	l := s.list(c, console.DeliveryList, false)
	if l.Err != nil {
		return l.Err
	}
	if web.Field(c, "pick") != "all" {
		l.span.Only = []int64{}
		for _, text := range c.Request().PostArgs().PeekMulti("row") {
			id, err := strconv.ParseInt(string(text), 10, 64)
			if err != nil || len(l.span.Only) == bulk.MaxRows {
				return web.InvalidField("row", "pick rows of the list")
			}
			l.span.Only = append(l.span.Only, id)
		}
		if len(l.span.Only) == 0 {
			return bulk.ErrNothing
		}
	}
	ctx, cancel := l.context()
	defer cancel()
	ids, err := l.filter.IDs(ctx, s.DB, l.span, s.DB.NewID(), bulk.MaxRows)
	if err != nil {
		return slow(ctx, err)
	}
	p, err := s.Plans.Propose(ctx, web.Operator(c).Name, l.address(), ids)
	if err != nil {
		return slow(ctx, err)
	}
	return c.Redirect(planPath(p.ID), http.StatusSeeOther)
}

func planPath(id int64) string { return "/notifications/plans/" + strconv.FormatInt(id, 10) }

func (s *handlers) planPage(c *fiber.Ctx) error {
	id, err := idOf(c, "plan")
	if err != nil {
		return err
	}
	ctx := c.UserContext()
	p, err := s.Plans.Find(ctx, id)
	if err != nil {
		return err
	}
	now, err := s.Plans.Results(ctx, p)
	if err != nil {
		return err
	}
	return s.Render(c, http.StatusOK, pages.PlanPage(s.Page(c), pages.PlanData{Plan: p, Now: now, Key: act.NewKey(), Mine: p.MadeBy == web.Operator(c).Name}))
}

// runPlan starts a plan, or continues one that was interrupted, for as long as a request
// may take.
func (s *handlers) runPlan(c *fiber.Ctx) error {
	id, err := idOf(c, "plan")
	if err != nil {
		return err
	}
	amounts := map[string]string{} // by currency
	c.Request().PostArgs().VisitAll(func(name, value []byte) {
		if currency, ok := strings.CutPrefix(string(name), bulk.AmountField); ok {
			amounts[currency] = string(value)
		}
	})
	out, err := s.act(c, act.Call{Kind: bulk.StartAct, Ref: act.Ref{Row: id}, Params: params(map[string]any{"amounts": amounts})})
	if err != nil {
		return err
	}
	more := !out.Repeated
	for end := time.Now().Add(runTime); more && time.Now().Before(end); {
		if more, err = s.Plans.Step(c.UserContext(), id); err != nil {
			return err
		}
	}
	return c.Redirect(planPath(id), http.StatusSeeOther)
}
