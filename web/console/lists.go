package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/callback"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/list"
	"backstop/views/operators"
	"backstop/views/orders"
	"backstop/views/ui"
	"backstop/views/work"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

func (s *handlers) orders() listPage[console.Order] {
	return listPage[console.Order]{
		spec: console.OrderList, read: s.Console.Orders, columns: orders.OrderColumns,
		draw: func(_ context.Context, p *ui.Page, l ui.List, _ []console.Order) (templ.Component, error) {
			return orders.Orders(p, l, s.Batches.Actions(act.Actor{Role: p.Role}, "order")), nil
		},
		number: "no", only: func(o console.Order) string { return orderPath(o.OrderNo) },
		bars: func(ctx context.Context, q list.Query, span list.Slice) ([]console.Bar, error) {
			if q.Get("merchant") != "" || q.Get("no") != "" || q.Get("risk") != "" || q.Get("amount") != "" {
				return nil, nil
			}
			return s.Console.CallbackBars(ctx, q.Get("supplier"), span)
		},
	}
}

func (s *handlers) callbacks() listPage[callback.Row] {
	return listPage[callback.Row]{
		spec: console.CallbackList, read: s.Console.Callbacks, columns: orders.CallbackColumns,
		bars: func(ctx context.Context, q list.Query, span list.Slice) ([]console.Bar, error) {
			if q.Get("no") != "" {
				return nil, nil
			}
			return s.Console.CallbackBars(ctx, q.Get("supplier"), span)
		},
		draw: func(_ context.Context, p *ui.Page, l ui.List, _ []callback.Row) (templ.Component, error) {
			return orders.Callbacks(p, l, s.Config.PublicURL), nil
		},
	}
}

func (s *handlers) notifications() listPage[console.Delivery] {
	return listPage[console.Delivery]{
		spec: console.DeliveryList, read: s.Console.Deliveries, columns: orders.NotificationColumns,
		bars: func(ctx context.Context, q list.Query, span list.Slice) ([]console.Bar, error) {
			if q.Get("no") != "" || q.Get("risk") != "" {
				return nil, nil
			}
			return s.Console.AttemptBars(ctx, q.Get("merchant"), span)
		},
		draw: func(_ context.Context, p *ui.Page, l ui.List, rows []console.Delivery) (templ.Component, error) {
			return orders.Notifications(p, l, rows, s.Policy.Allows(p.Role, access.ResendMany)), nil
		},
	}
}

func (s *handlers) exceptions() listPage[exception.Item] {
	return listPage[exception.Item]{
		spec: console.ExceptionList, always: true, read: s.Console.Exceptions, columns: work.ExceptionColumns,
		draw: func(ctx context.Context, p *ui.Page, l ui.List, rows []exception.Item) (templ.Component, error) {
			var lanes []console.Todo
			var err error
			if l.First {
				lanes, err = s.Console.Lanes(ctx)
			}
			again := slices.Contains(s.Batches.Actions(act.Actor{Role: p.Role}, console.ExceptionObject), "redrive")
			return work.Exceptions(p, l, rows, lanes, again), err
		},
	}
}

// auditPage lists the audit; with ?check=1 it also verifies the chain.
func (s *handlers) auditPage(c *fiber.Ctx) error {
	data := operators.AuditData{Checked: c.Query("check") == "1"}
	return send(s, c, http.StatusOK, listPage[audit.Row]{
		spec: console.ActList, always: true, columns: operators.ActColumns,
		read: func(ctx context.Context, q list.Query, span list.Slice) (list.Page[audit.Row], error) {
			if err := s.groupActs(ctx, q, span, &data); err != nil {
				return list.Page[audit.Row]{}, err
			}
			return s.Console.Acts(ctx, q, span)
		},
		draw: func(_ context.Context, p *ui.Page, l ui.List, _ []audit.Row) (templ.Component, error) {
			l.Anything = true // signing in has left an entry in the audit
			if !data.Checked {
				return operators.Audit(p, l, data), nil
			}
			first := func(b audit.Break) {
				switch {
				case b.KeyNeeded && data.KeyNeeded == 0:
					data.KeyNeeded = b.First
				case !b.KeyNeeded && data.Broken == 0:
					data.Broken = max(b.First, 1)
				}
			}
			var err error // the whole chain, within the time of the request rather than of a list
			data.Length, err = s.Audit.Verify(c.UserContext(), s.DB.Read, first, nil)
			return operators.Audit(p, l, data), err
		},
	})
}

// maxGroups bounds the groups of the audit by one field.
const maxGroups = 8

// groupActs counts the acts of the first page's filter, by what was done and by who did it, unless
// the filter has chosen one.
func (s *handlers) groupActs(ctx context.Context, q list.Query, span list.Slice, data *operators.AuditData) (err error) {
	if span.At != (list.Cursor{}) {
		return nil
	}
	if q.Get("action") == "" {
		if data.Acts, data.MoreActs, err = q.Groups(ctx, s.DB, span, "action", maxGroups); err != nil {
			return err
		}
	}
	if q.Get("actor") == "" {
		data.Actors, data.MoreActors, err = q.Groups(ctx, s.DB, span, "actor", maxGroups)
		for i, g := range data.Actors {
			data.Actors[i].Value = strings.TrimPrefix(g.Value, "operator:")
		}
	}
	return err
}

func exceptionPath(id int64) string { return "/exceptions/" + console.ExceptionID(id) }

func orderPath(no string) string { return "/orders/" + url.PathEscape(no) }
