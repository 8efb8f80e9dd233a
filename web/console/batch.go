package console

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/money"
	"backstop/internal/compensation/batch"
	"backstop/internal/report"
	"backstop/views/pages"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

const (
	// typedFrom is the number of notifications above which the amounts must be typed.
	typedFrom = 20
	// runTime is how long one request works on a plan; the page offers to go on.
	runTime = 8 * time.Second
)

// proposePlan freezes the rows that were picked, or all that the list's filter
// finds, and shows what would be done. The filter stands in the address.
func (s *handlers) proposePlan(c *fiber.Ctx) error {
	l := s.list(c, false, "no", "status", "merchant", "type", "risk")
	if l.Err != nil {
		return l.Err
	}
	var ids []int64
	if web.Field(c, "pick") != "all" {
		ids = []int64{}
		for _, text := range c.Request().PostArgs().PeekMulti("row") {
			id, err := strconv.ParseInt(string(text), 10, 64)
			if err != nil || len(ids) == batch.Most {
				return web.InvalidField("row", "pick rows of the list")
			}
			ids = append(ids, id)
		}
		if len(ids) == 0 {
			return batch.ErrNothing
		}
	}
	ctx, cancel := l.context()
	defer cancel()
	address := "/notifications"
	if len(l.query.Values) > 0 {
		address += "?" + l.query.Values.Encode()
	}
	p, err := batch.Propose(ctx, s.DB, s.Console, web.Operator(c).Name, address, l.deliveryFilter(), ids)
	if err != nil {
		return slow(ctx, err)
	}
	return c.Redirect(planPath(p.ID), http.StatusSeeOther)
}

func planPath(id int64) string { return "/notifications/plans/" + strconv.FormatInt(id, 10) }

// planOf reads the plan that the path names.
func (s *handlers) planOf(ctx context.Context, c *fiber.Ctx) (*batch.Plan, error) {
	id, err := idOf(c, "plan")
	if err != nil {
		return nil, err
	}
	return batch.Find(ctx, s.DB.Read, id)
}

func (s *handlers) planPage(c *fiber.Ctx) error {
	ctx, cancel := web.Work()
	defer cancel()
	p, err := s.planOf(ctx, c)
	if err != nil {
		return err
	}
	now, err := p.Now(ctx, s.DB, s.Console)
	if err != nil {
		return err
	}
	return s.Render(c, http.StatusOK, pages.PlanPage(s.Page(c), pages.PlanData{
		Plan: p, Now: now, Key: newFormKey(), Typed: mustType(p), Mine: p.MadeBy == web.Operator(c).Name,
	}))
}

// mustType are the sums that have to be typed before a plan is run, one of each
// currency; none where it is small.
func mustType(p *batch.Plan) []report.Sum {
	if p.Shown.Count(batch.Send, batch.Waits) <= typedFrom {
		return nil
	}
	return p.Shown.Sums(batch.Send, batch.Waits)
}

// runPlan begins a plan, or goes on with one that was interrupted, and works on
// it for as long as a request may take.
func (s *handlers) runPlan(c *fiber.Ctx) error {
	ctx, cancel := web.Work()
	defer cancel()
	p, err := s.planOf(ctx, c)
	if err != nil {
		return err
	}
	for _, sum := range mustType(p) {
		if name := pages.TypedName(sum); strings.TrimSpace(web.Field(c, name)) != money.Format(sum.Minor, sum.Currency) {
			return web.InvalidField(name, "type the amount that is shown")
		}
	}
	act := audit.Act{Action: "notification.resend_many", Object: "plan", ObjectID: strconv.FormatInt(p.ID, 10), Params: map[string]any{
		"filter": p.Filter, "notifications": p.Shown.Count(batch.Send, batch.Waits), "amounts": p.Shown.Sums(batch.Send, batch.Waits),
	}}
	did, err := s.act(ctx, c, act, func(ctx context.Context, tx db.Tx) error {
		_, err := batch.Start(ctx, tx, s.DB, p.ID, web.Operator(c).Name)
		return err
	})
	if err != nil {
		return err
	}
	for end := time.Now().Add(runTime); did && time.Now().Before(end); {
		nudges, more, err := batch.Step(ctx, s.DB, s.Console, p.ID)
		if err != nil {
			return err
		}
		s.Nudge(nudges)
		if !more {
			break
		}
	}
	return c.Redirect(planPath(p.ID), http.StatusSeeOther)
}
