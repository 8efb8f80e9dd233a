package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/console"
	"backstop/internal/order"
	"backstop/views/pages"
	"backstop/views/ui"
	"backstop/web"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

// act runs one act as a form of a page wants it, once per form, however often it is
// sent.
func (s *handlers) act(ctx context.Context, c *fiber.Ctx, call act.Call) (act.Outcome, error) {
	if call.Key = web.Field(c, "form_key"); call.Key == "" {
		return act.Outcome{}, web.InvalidField("form_key", "open the page again and send the form from there")
	}
	call.By, call.Reason = s.Actor(c), web.Field(c, "reason")
	return s.Acts.Run(ctx, call)
}

// actAndLeadTo runs an act and leads to the page that says what it has done.
func (s *handlers) actAndLeadTo(c *fiber.Ctx, page string, call act.Call) error {
	ctx, cancel := web.Work()
	defer cancel()
	if _, err := s.act(ctx, c, call); err != nil {
		return err
	}
	return c.Redirect(page+"?"+doneQuery(c), http.StatusSeeOther)
}

// params are the parameters of an act.
func params(fields map[string]any) json.RawMessage {
	raw, err := json.Marshal(fields)
	if err != nil {
		panic("console: " + err.Error()) // texts only
	}
	return raw
}

// done is what the form has done that the address names, if it was about this very
// thing, or of its kind where id is empty.
func (s *handlers) done(ctx context.Context, c *fiber.Ctx, object, id string) (*audit.Row, error) {
	return s.Acts.Done(ctx, c.Query("form"), object, id)
}

// doneQuery is what leads a page to what the form has done.
func doneQuery(c *fiber.Ctx) string { return "form=" + url.QueryEscape(web.Field(c, "form_key")) }

// keepAct writes into the audit what is no act on anything: somebody signed in.
func (s *handlers) keepAct(ctx context.Context, a audit.Act) error {
	return s.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error { return s.Audit.Write(ctx, tx, a) })
}

// note keeps what somebody has to say about an order.
func (s *handlers) note(c *fiber.Ctx) error {
	no, err := web.OrderNo(c)
	if err != nil {
		return err
	}
	return s.actAndLeadTo(c, "/orders/"+url.PathEscape(no), act.Call{Kind: order.NoteAct, Ref: act.Ref{ID: no}})
}

// acts lists what people did; asked to, it checks the chain too.
func (s *handlers) acts(c *fiber.Ctx) error {
	check := c.Query("check") == "1"
	return send(s, c, http.StatusOK, listPage[audit.Row]{
		spec: console.ActList, always: true, read: s.Console.Acts,
		draw: func(_ context.Context, p *ui.Page, l ui.List, rows []audit.Row) (templ.Component, error) {
			data := pages.AuditData{Rows: rows, Checked: check}
			l.Anything = true // whoever reads this has signed in, which is an act
			if !check {
				return pages.Audit(p, l, data), nil
			}
			first := func(b audit.Break) {
				switch {
				case b.KeyNeeded && data.KeyNeeded == 0:
					data.KeyNeeded = b.First
				case !b.KeyNeeded && data.Broken == 0:
					data.Broken = max(b.First, 1)
				}
			}
			ctx, cancel := web.Work() // it reads the whole chain
			defer cancel()
			var err error
			data.Extent, err = s.Audit.Verify(ctx, s.DB.Read, first, nil)
			return pages.Audit(p, l, data), err
		},
	})
}
