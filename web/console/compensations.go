package console

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/views/ui"
	"backstop/views/work"
	"backstop/web"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

// compensationsPage lists compensations, with the dead ones grouped by cause on top.
func (s *handlers) compensationsPage(c *fiber.Ctx) error {
	did, err := s.done(c, compensation.ActObject, compensation.Set)
	if err != nil {
		return err
	}
	return send(s, c, http.StatusOK, s.compensations(did))
}

func (s *handlers) compensations(did *audit.Row) listPage[console.Compensation] {
	return listPage[console.Compensation]{
		spec: console.CompensationList, always: true, read: s.Console.Compensations, columns: work.CompensationColumns,
		draw: func(ctx context.Context, p *ui.Page, l ui.List, _ []console.Compensation) (templ.Component, error) {
			data := work.CompensationsData{CanRedrive: s.Policy.Allows(p.Roles, access.RedriveCompensations), Key: act.NewKey(), Done: did}
			data.Actions = s.Batches.Actions(act.Actor{Roles: p.Roles}, compensation.ActObject)
			var err error
			if l.First {
				data.Groups, data.Cut, err = s.Console.CompensationGroups(ctx, compensation.Dead)
			}
			return work.Compensations(p, l, data), err
		},
	}
}

// readRedrive reads what matches the list's filter in the URL: all of it runs again.
func (s *handlers) readRedrive(c *fiber.Ctx, call *act.Call) (err error) {
	l := s.list(c, console.CompensationList, true)
	if l.Err != nil {
		return l.Err
	}
	r := compensation.Redrive{}
	if l.filter.Get("no") == "" {
		r.Filter = &compensation.Filter{
			State: l.filter.Get("state"), Kind: l.filter.Get("kind"), Cause: l.filter.Get("cause"), Supplier: l.filter.Get("supplier"),
			Merchant: l.filter.Get("merchant"), From: momentOf(l.span.From), To: momentOf(l.span.To),
		}
		call.Params, err = json.Marshal(r)
		return err
	}
	ctx, cancel := l.context() // of one order
	defer cancel()
	ids, err := l.filter.IDs(ctx, s.DB, l.span, s.DB.NewID(), compensation.MaxRedrive+1)
	if err != nil {
		return slow(ctx, err)
	}
	if len(ids) == 0 {
		return compensation.ErrNothing
	}
	for _, id := range ids {
		r.IDs = append(r.IDs, strconv.FormatInt(id, 10))
	}
	call.Params, err = json.Marshal(r)
	return err
}

// showRedriven leads to the list in any state: it has changed.
func (s *handlers) showRedriven(c *fiber.Ctx, _ web.Acted) error {
	l := s.list(c, console.CompensationList, true)
	l.query.Values.Del("state")
	return showDone(c, l.name())
}

// momentOf formats a time for the re-drive's filter; "" = none.
func momentOf(us int64) string {
	if us == 0 {
		return ""
	}
	return time.UnixMicro(us).UTC().Format(time.RFC3339Nano)
}

func (s *handlers) compensationPage(c *fiber.Ctx) error {
	id, err := idOf(c, "compensation")
	if err != nil {
		return err
	}
	x, err := s.Console.CompensationDetail(c.UserContext(), id)
	if err != nil {
		return err
	}
	did, err := s.done(c, compensation.ActObject, strconv.FormatInt(id, 10))
	if err != nil {
		return err
	}
	role := web.Operator(c).Roles
	return s.Render(c, http.StatusOK, work.CompensationPage(s.Page(c), work.CompensationData{
		CompensationDetail: x, Key: act.NewKey(), Saved: did != nil,
		CanRun: s.Policy.Allows(role, access.RunCompensations), CanCancel: s.Policy.Allows(role, access.CancelCompensations),
	}))
}
