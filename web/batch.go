package web

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
	"backstop/views"

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
func (s *Server) proposePlan(c *fiber.Ctx) error {
	l := s.list(c, false, "no", "status", "merchant", "type", "risk")
	if l.err != nil {
		return l.err
	}
	var ids []int64
	if field(c, "pick") != "all" {
		ids = []int64{}
		for _, text := range c.Request().PostArgs().PeekMulti("row") {
			id, err := strconv.ParseInt(string(text), 10, 64)
			if err != nil || len(ids) == batch.Most {
				return invalidField("row", "pick rows of the list")
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
	p, err := batch.Propose(ctx, s.o.DB, s.console, operator(c).Name, address, l.deliveryFilter(), ids)
	if err != nil {
		return slow(ctx, err)
	}
	return c.Redirect(planPath(p.ID), http.StatusSeeOther)
}

func planPath(id int64) string { return "/notifications/plans/" + strconv.FormatInt(id, 10) }

// planOf reads the plan that the path names.
func (s *Server) planOf(ctx context.Context, c *fiber.Ctx) (*batch.Plan, error) {
	id, err := idOf(c, "plan")
	if err != nil {
		return nil, err
	}
	return batch.Find(ctx, s.o.DB.Read, id)
}

func (s *Server) planPage(c *fiber.Ctx) error {
	ctx, cancel := work()
	defer cancel()
	p, err := s.planOf(ctx, c)
	if err != nil {
		return err
	}
	now, err := p.Now(ctx, s.o.DB, s.console)
	if err != nil {
		return err
	}
	return s.render(c, http.StatusOK, views.PlanPage(s.page(c), views.PlanData{
		Plan: p, Now: now, Key: newFormKey(), Typed: mustType(p), Mine: p.MadeBy == operator(c).Name,
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
func (s *Server) runPlan(c *fiber.Ctx) error {
	ctx, cancel := work()
	defer cancel()
	p, err := s.planOf(ctx, c)
	if err != nil {
		return err
	}
	for _, sum := range mustType(p) {
		if name := views.TypedName(sum); strings.TrimSpace(field(c, name)) != money.Format(sum.Minor, sum.Currency) {
			return invalidField(name, "type the amount that is shown")
		}
	}
	act := audit.Act{Action: "notification.resend_many", Object: "plan", ObjectID: strconv.FormatInt(p.ID, 10), Params: map[string]any{
		"filter": p.Filter, "notifications": p.Shown.Count(batch.Send, batch.Waits), "amounts": p.Shown.Sums(batch.Send, batch.Waits),
	}}
	did, err := s.act(ctx, c, act, func(ctx context.Context, tx db.Tx) error {
		_, err := batch.Start(ctx, tx, s.o.DB, p.ID, operator(c).Name)
		return err
	})
	if err != nil {
		return err
	}
	for end := time.Now().Add(runTime); did && time.Now().Before(end); {
		nudges, more, err := batch.Step(ctx, s.o.DB, s.console, p.ID)
		if err != nil {
			return err
		}
		s.o.Nudge(nudges)
		if !more {
			break
		}
	}
	return c.Redirect(planPath(p.ID), http.StatusSeeOther)
}
