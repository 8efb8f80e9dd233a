package console

import (
	"context"
	"net/http"
	"slices"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/work"
	"backstop/web"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

func (s *handlers) exceptions() listPage[exception.Item] {
	return listPage[exception.Item]{
		spec: console.ExceptionList, always: true, read: s.Console.Exceptions, columns: work.ExceptionColumns,
		draw: func(ctx context.Context, p *ui.Page, l ui.List, rows []exception.Item) (templ.Component, error) {
			var lanes []console.Todo
			var err error
			if l.First && !p.Limited { // the lanes sum over all merchants
				lanes, err = s.Console.Lanes(ctx)
			}
			again := slices.Contains(s.Batches.Actions(act.Actor{Roles: p.Roles}, console.ExceptionObject), "redrive")
			return work.Exceptions(p, l, rows, lanes, again), err
		},
	}
}

func (s *handlers) exceptionPage(c *fiber.Ctx) error {
	id, err := idOf(c, "exception")
	if err != nil {
		return err
	}
	x, err := s.Console.Exception(c.UserContext(), id)
	if err != nil {
		return err
	}
	x.Mask()
	u, err := s.masked(c, console.UnmaskException, console.ExceptionID(id), exceptionPath(id))
	if err != nil {
		return err
	}
	return s.showException(c, work.ExceptionData{Exception: x, Unmask: u})
}

func (s *handlers) unmaskException(c *fiber.Ctx, done web.Acted) error {
	id := done.Ref.Row
	return s.unmasked(c, done, exceptionPath(id), func(u panel.Unmask) error {
		x, err := s.Console.Exception(c.UserContext(), id)
		if err != nil {
			return err
		}
		return s.showException(c, work.ExceptionData{Exception: x, Unmask: u})
	})
}

// showException adds to an exception what its reader may do, and responds with the page.
func (s *handlers) showException(c *fiber.Ctx, data work.ExceptionData) error {
	x, role := data.Exception, web.Operator(c).Roles
	id := x.ID
	did, err := s.done(c, console.ExceptionObject, console.ExceptionID(id))
	if err != nil {
		return err
	}
	may := func(p access.Permission) bool { return s.Policy.Allows(role, p) }
	data.Saved, data.Key, data.CanComment = did != nil && !data.Unmask.Done, act.NewKey(), may(access.Comment)
	data.CanAssign, data.CanAsk, data.CanRun = may(access.AssignExceptions), may(access.QueryOrders), may(access.RunCompensations)
	data.CanReopen = !x.State.Open() && x.Reopens() && may(exception.ReopenPermission(&x.Item))
	data.MayDecide = s.Policy.RolesWith(access.ProposeMoney)
	if data.Colleagues, err = s.mentionable(c, access.ViewExceptions); err != nil {
		return err
	}
	if data.CanAssign {
		if data.People, err = s.Operators.WhoMay(c.UserContext(), s.Policy, access.AssignExceptions); err != nil {
			return err
		}
	}
	return s.Render(c, http.StatusOK, work.ExceptionPage(s.Page(c), data))
}

// showException leads to the exception in the path, with the answer about its order.
func showException(c *fiber.Ctx, _ web.Acted) error {
	return c.Redirect("/exceptions/"+c.Params("exception"), http.StatusSeeOther)
}

func exceptionPath(id int64) string { return "/exceptions/" + console.ExceptionID(id) }

// orderOfException refers to the order of the exception in the path.
func (s *handlers) orderOfException(c *fiber.Ctx) (act.Ref, error) {
	id, err := idOf(c, "exception")
	if err != nil {
		return act.Ref{}, err
	}
	x, err := s.Console.Exception(c.UserContext(), id)
	if err != nil {
		return act.Ref{}, err
	}
	return act.Ref{ID: x.OrderNo}, nil
}
