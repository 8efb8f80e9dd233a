package console

import (
	"context"
	"net/http"
	"net/url"

	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/seal"
	"backstop/views/pages"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

const maxFormKey = 100

// newFormKey marks one showing of a form.
func newFormKey() string { return seal.NewToken("") }

// act runs what a person does: once per form, however often it is sent, with its
// reason and its audit row in the same transaction. It reports whether this
// request was the one that did it.
func (s *handlers) act(ctx context.Context, c *fiber.Ctx, a audit.Act, do func(context.Context, db.Tx) error) (did bool, err error) {
	reason, err := web.ReadReason(web.Field(c, "reason"))
	if err != nil {
		return false, err
	}
	if a.Params == nil {
		a.Params = map[string]any{}
	}
	a.Params["reason"] = reason
	return s.actPlainly(ctx, c, a, do)
}

// actPlainly is act for what is easily taken back: it needs no reason.
func (s *handlers) actPlainly(ctx context.Context, c *fiber.Ctx, a audit.Act, do func(context.Context, db.Tx) error) (did bool, err error) {
	key := web.Field(c, "form_key")
	if key == "" || len(key) > maxFormKey {
		return false, web.InvalidField("form_key", "open the page again and send the form from there")
	}
	a.Actor, a.Remote = "operator:"+web.Operator(c).Name, s.Client(c).String()
	err = s.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		did, err = takeFormKey(ctx, tx, s.DB, key)
		if err != nil || !did {
			return err
		}
		if err := do(ctx, tx); err != nil {
			return err
		}
		if err := s.Audit.Write(ctx, tx, a); err != nil {
			return err
		}
		return keepDone(ctx, tx, key)
	})
	return did && err == nil, err
}

// keepDone keeps what a form has done: the last row of the audit, which the
// transaction holds the end of.
func keepDone(ctx context.Context, tx db.Tx, key string) error {
	number, _, err := audit.Head(ctx, tx)
	if err != nil {
		return err
	}
	_, err = tx.NewRaw("UPDATE form_keys SET act = ? WHERE form_key = ?", number, seal.HashToken(key)).Exec(ctx)
	return err
}

// done is what the form has done that the address names, if it was about this very
// thing, or of its kind where id is empty. A page says it from there, so that no
// address can make it say what was not.
func (s *handlers) done(ctx context.Context, c *fiber.Ctx, object, id string) (*audit.Row, error) {
	key := c.Query("form")
	if key == "" || len(key) > maxFormKey {
		return nil, nil
	}
	var rows []audit.Row
	q := s.DB.Read.NewSelect().Model(&rows).Where("au.number = (SELECT f.act FROM form_keys AS f WHERE f.form_key = ?)", seal.HashToken(key)).
		Where("au.object = ?", object)
	if id != "" {
		q = q.Where("au.object_id = ?", id)
	}
	if err := q.Scan(ctx); err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// doneQuery is what leads a page to what the form has done.
func doneQuery(c *fiber.Ctx) string { return "form=" + url.QueryEscape(web.Field(c, "form_key")) }

// keepAct writes an act that has no transaction of its own into the audit.
func (s *handlers) keepAct(ctx context.Context, a audit.Act) error {
	return s.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error { return s.Audit.Write(ctx, tx, a) })
}

// formKeyAge is how long a form's key is remembered, in µs: a day.
const formKeyAge = 24 * 3600 * 1_000_000

// takeFormKey says whether the form is sent for the first time.
func takeFormKey(ctx context.Context, tx db.Tx, d *db.DB, key string) (bool, error) {
	now := d.Now()
	res, err := tx.NewRaw("INSERT INTO form_keys (form_key, at) VALUES (?, ?) ON CONFLICT DO NOTHING", seal.HashToken(key), now).Exec(ctx)
	if err != nil {
		return false, err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return false, err
	}
	_, err = tx.NewRaw("DELETE FROM form_keys WHERE form_key IN (SELECT form_key FROM form_keys WHERE at < ? LIMIT 100)", now-formKeyAge).Exec(ctx)
	return true, err
}

// note keeps what somebody has to say about an order.
func (s *handlers) note(c *fiber.Ctx) error {
	no, err := web.OrderNo(c)
	if err != nil {
		return err
	}
	ctx, cancel := web.Work()
	defer cancel()
	_, err = s.act(ctx, c, audit.Act{Action: "order.note", Object: "order", ObjectID: no}, s.orderExists(no))
	if err != nil {
		return err
	}
	return c.Redirect("/orders/"+url.PathEscape(no)+"?"+doneQuery(c), http.StatusSeeOther)
}

// auditPage lists what people did.
func (s *handlers) auditPage(c *fiber.Ctx) error {
	l := s.list(c, true, "actor", "object", "id")
	check := l.Text("check") == "1"
	if l.Err != nil {
		return l.Err
	}
	ctx, cancel := web.Work() // a check reads the whole chain
	defer cancel()
	page, err := s.Console.Acts(ctx, audit.Query{Actor: l.Text("actor"), Object: l.Text("object"), ObjectID: l.Text("id")}, l.span)
	if err != nil {
		return err
	}
	data := pages.AuditData{Rows: page.Rows, Checked: check}
	if check {
		first := func(b audit.Break) {
			switch {
			case b.KeyNeeded && data.KeyNeeded == 0:
				data.KeyNeeded = b.First
			case !b.KeyNeeded && data.Broken == 0:
				data.Broken = max(b.First, 1)
			}
		}
		if data.Extent, err = s.Audit.Verify(ctx, s.DB.Read, first, nil); err != nil {
			return err
		}
	}
	list := around(l, page)
	list.Anything = true // whoever reads this has signed in, which is an act
	return s.Render(c, http.StatusOK, pages.Audit(l.p, list, data))
}
