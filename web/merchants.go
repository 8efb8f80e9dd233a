package web

import (
	"context"
	"net/http"
	"net/url"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/metric"
	"backstop/internal/breaker"
	"backstop/internal/console"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/views"

	"github.com/gofiber/fiber/v2"
)

// merchantsPage lists the merchants by the order in which they were declared.
func (s *Server) merchantsPage(c *fiber.Ctx) error {
	l := s.list(c, true)
	if l.err != nil {
		return l.err
	}
	ctx, cancel := l.context()
	defer cancel()
	rows, next, err := s.console.MerchantStatuses(ctx, "", l.span.At.ID, console.PageSize)
	if err != nil {
		return slow(ctx, err)
	}
	page := console.Page[console.MerchantStatus]{Rows: rows, Count: int64(len(rows)), More: next > 0}
	if next > 0 {
		page.Older = console.Cursor{ID: next}
	}
	list := around(l, page)
	list.Anything = len(rows) > 0
	return s.render(c, http.StatusOK, views.Merchants(l.p, list, rows))
}

// merchantPage shows one merchant.
func (s *Server) merchantPage(c *fiber.Ctx) error {
	f := readFilter(c)
	pinged := f.text("pinged")
	if f.err != nil {
		return f.err
	}
	code, err := merchantCode(c)
	if err != nil {
		return err
	}
	ctx, cancel := work()
	defer cancel()
	m, err := s.console.Merchant(ctx, code, pinged)
	if err != nil {
		return err
	}
	did, err := s.done(ctx, c, "merchant", code)
	if err != nil {
		return err
	}
	role := operator(c).Role
	return s.render(c, http.StatusOK, views.MerchantPage(s.page(c), views.MerchantData{
		Merchant: m, FormKey: newFormKey(), Did: did,
		CanControl: s.policy.Allows(role, access.ControlBreakers), CanPing: s.policy.Allows(role, access.ControlAddresses),
	}))
}

// merchantCode is the merchant of the path. What no database keeps is asked of none.
func merchantCode(c *fiber.Ctx) (string, error) {
	code, err := url.PathUnescape(c.Params("merchant"))
	if err != nil || !isStorable(code) {
		return "", console.ErrNotFound
	}
	return code, nil
}

// declared is the merchant that a form is about.
func (s *Server) declared(c *fiber.Ctx) (*merchant.Merchant, error) {
	code, err := merchantCode(c)
	if err != nil {
		return nil, err
	}
	m := s.o.Settings.Merchants().ByCode(code)
	if m == nil {
		return nil, console.ErrNotFound
	}
	return m, nil
}

func toMerchant(c *fiber.Ctx, m *merchant.Merchant, query string) error {
	return c.Redirect("/merchants/"+url.PathEscape(m.Code)+"?"+query, http.StatusSeeOther)
}

// moveBreaker opens, closes or probes a merchant's breaker by hand.
func (s *Server) moveBreaker(act breaker.Act) fiber.Handler {
	return func(c *fiber.Ctx) error {
		m, err := s.declared(c)
		if err != nil {
			return err
		}
		ctx, cancel := work()
		defer cancel()
		var done *breaker.Folded
		did, err := s.act(ctx, c, audit.Act{Action: "breaker." + string(act), Object: "merchant", ObjectID: m.Code}, func(ctx context.Context, tx db.Tx) (err error) {
			done, err = s.o.Breakers.ByPerson(ctx, tx, m.ID, act, "operator:"+operator(c).Name, field(c, "reason"))
			return err
		})
		if err != nil {
			return err
		}
		if did {
			s.o.Breakers.Committed(done)
			metric.BreakerChanges.WithLabelValues(string(done.Changes[0].To)).Inc()
		}
		return toMerchant(c, m, doneQuery(c))
	}
}

// tryAddress sends a ping to one of a merchant's addresses and shows what it
// answers.
func (s *Server) tryAddress(c *fiber.Ctx) error {
	m, name, err := s.addressOf(c)
	if err != nil {
		return err
	}
	ctx, cancel := work()
	defer cancel()
	// The act is kept before anything leaves: a form that is sent twice pings once.
	did, err := s.act(ctx, c, audit.Act{Action: "merchant.ping", Object: "merchant", ObjectID: m.Code, Params: map[string]any{"endpoint": notify.Shown(name)}},
		func(context.Context, db.Tx) error { return nil })
	if err != nil {
		return err
	}
	if !did {
		return toMerchant(c, m, doneQuery(c))
	}
	answer, err := s.o.Pings.Ping(ctx, m, name, func(context.Context, db.Tx, notify.Answer) error { return nil })
	if err != nil {
		return err
	}
	return toMerchant(c, m, "pinged="+answer.Notification)
}

// enableAddress lets an address be used again that was disabled.
func (s *Server) enableAddress(c *fiber.Ctx) error {
	m, name, err := s.addressOf(c)
	if err != nil {
		return err
	}
	ctx, cancel := work()
	defer cancel()
	_, err = s.act(ctx, c, audit.Act{Action: "merchant.enable_address", Object: "merchant", ObjectID: m.Code, Params: map[string]any{"endpoint": notify.Shown(name)}},
		func(ctx context.Context, tx db.Tx) error {
			return notify.EnableEndpoint(ctx, tx, m.ID, name)
		})
	if err != nil {
		return err
	}
	return toMerchant(c, m, doneQuery(c))
}

func (s *Server) addressOf(c *fiber.Ctx) (*merchant.Merchant, string, error) {
	m, err := s.declared(c)
	if err != nil {
		return nil, "", err
	}
	key := field(c, "endpoint")
	for i := range m.Endpoints {
		if m.Endpoints[i].Key() == key {
			return m, m.Endpoints[i].Name, nil
		}
	}
	return nil, "", invalidField("endpoint", notify.ErrNoEndpoint.Error())
}
