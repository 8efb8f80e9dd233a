package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"backstop/internal/audit"
	"backstop/internal/db"
	"backstop/internal/notify"
	"backstop/internal/queue"
	"backstop/internal/seal"
	"backstop/views"

	"github.com/gofiber/fiber/v2"
	"github.com/uptrace/bun"
)

// Limits of what people write.
const (
	// reasonLeast is the least length of a reason: a letter is none.
	reasonLeast = 8
	reasonMost  = 1000
	maxFormKey  = 100
)

// newFormKey marks one showing of a form.
func newFormKey() string { return seal.NewToken("") }

// act runs what a person does: once per form, however often it is sent, with its
// reason and its audit row in the same transaction. It reports whether this
// request was the one that did it.
func (s *Server) act(ctx context.Context, c *fiber.Ctx, a audit.Act, do func(context.Context, bun.Tx) error) (did bool, err error) {
	reason := strings.TrimSpace(field(c, "reason"))
	if n := utf8.RuneCountInString(reason); n < reasonLeast || n > reasonMost || !utf8.ValidString(reason) || strings.ContainsRune(reason, 0) {
		return false, invalidField("reason", "write a reason of 8 to 1000 characters")
	}
	if a.Params == nil {
		a.Params = map[string]any{}
	}
	a.Params["reason"] = reason
	return s.actPlainly(ctx, c, a, do)
}

// actPlainly is act for what is easily taken back: it needs no reason.
func (s *Server) actPlainly(ctx context.Context, c *fiber.Ctx, a audit.Act, do func(context.Context, bun.Tx) error) (did bool, err error) {
	key := field(c, "form_key")
	if key == "" || len(key) > maxFormKey {
		return false, invalidField("form_key", "open the page again and send the form from there")
	}
	a.Actor, a.Remote = "operator:"+operator(c).Name, s.client(c).String()
	err = s.o.DB.Tx(ctx, func(ctx context.Context, tx bun.Tx) error {
		did, err = takeFormKey(ctx, tx, s.o.DB, key)
		if err != nil || !did {
			return err
		}
		if err := do(ctx, tx); err != nil {
			return err
		}
		return audit.Write(ctx, tx, s.o.DB, a)
	})
	return did && err == nil, err
}

// keepAct writes an act that has no transaction of its own into the audit.
func (s *Server) keepAct(ctx context.Context, a audit.Act) error {
	return s.o.DB.Tx(ctx, func(ctx context.Context, tx bun.Tx) error { return audit.Write(ctx, tx, s.o.DB, a) })
}

// formKeyAge is how long a form's key is remembered, in µs: a day.
const formKeyAge = 24 * 3600 * 1_000_000

// takeFormKey says whether the form is sent for the first time.
func takeFormKey(ctx context.Context, tx bun.Tx, d *db.DB, key string) (bool, error) {
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

// resend sends one of the order's notifications again.
func (s *Server) resend(c *fiber.Ctx) error {
	no, err := orderNo(c)
	if err != nil {
		return err
	}
	ctx, cancel := work()
	defer cancel()
	id := field(c, "notification")
	event, err := notify.FindEvent(ctx, s.o.DB, id)
	if errors.Is(err, notify.ErrNoDelivery) {
		return invalidField("notification", "no notification has this id")
	}
	if err != nil {
		return err
	}
	var nudge queue.Nudge
	did, err := s.act(ctx, c, audit.Act{Action: "notification.resend", Object: "order", ObjectID: no, Params: map[string]any{"notification": id}},
		func(ctx context.Context, tx bun.Tx) error {
			var ids []int64
			// Of several deliveries, the one that needs it most: one that was given up,
			// the merchant's before those of the house.
			err := tx.NewRaw("SELECT d.id FROM orders AS o JOIN deliveries AS d ON d.subject_id = o.id WHERE o.order_no = ? AND d.event_id = ?"+
				" ORDER BY CASE d.status WHEN 'exhausted' THEN 0 WHEN 'retry_wait' THEN 1 WHEN 'queued' THEN 1 WHEN 'sending' THEN 1 ELSE 2 END, d.house, d.id LIMIT 1",
				no, event.ID).Scan(ctx, &ids)
			if err != nil {
				return err
			}
			if len(ids) == 0 {
				return notify.ErrNoDelivery
			}
			nudge, err = notify.Resend(ctx, tx, s.o.DB, ids[0])
			return err
		})
	if err != nil {
		return err
	}
	if did {
		s.o.Nudge([]queue.Nudge{nudge})
	}
	return c.Redirect("/orders/"+url.PathEscape(no)+"?done=resend", http.StatusSeeOther)
}

// note keeps what somebody has to say about an order.
func (s *Server) note(c *fiber.Ctx) error {
	no, err := orderNo(c)
	if err != nil {
		return err
	}
	ctx, cancel := work()
	defer cancel()
	_, err = s.act(ctx, c, audit.Act{Action: "order.note", Object: "order", ObjectID: no}, s.orderExists(no))
	if err != nil {
		return err
	}
	return c.Redirect("/orders/"+url.PathEscape(no)+"?done=note", http.StatusSeeOther)
}

// auditPage lists what people did.
func (s *Server) auditPage(c *fiber.Ctx) error {
	l := s.list(c, true, "actor", "object", "id")
	check := l.text("check") == "1"
	if l.err != nil {
		return l.err
	}
	ctx, cancel := work() // a check reads the whole chain
	defer cancel()
	page, err := s.console.Acts(ctx, audit.Query{Actor: l.text("actor"), Object: l.text("object"), ObjectID: l.text("id")}, l.span)
	if err != nil {
		return err
	}
	data := views.AuditData{Rows: page.Rows, Checked: check}
	if check {
		first := func(b audit.Break) {
			if data.Broken == 0 {
				data.Broken = max(b.First, 1)
			}
		}
		if data.Length, err = audit.Verify(ctx, s.o.DB.Read, first, nil); err != nil {
			return err
		}
	}
	list := around(l, page)
	list.Anything = true // whoever reads this has signed in, which is an act
	return s.render(c, http.StatusOK, views.Audit(l.p, list, data))
}
