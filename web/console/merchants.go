package console

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
	"backstop/views/pages"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// merchantsPage lists the merchants by the order in which they were declared.
func (s *handlers) merchantsPage(c *fiber.Ctx) error {
	l := s.list(c, true)
	if l.Err != nil {
		return l.Err
	}
	ctx, cancel := l.context()
	defer cancel()
	rows, next, err := s.Console.MerchantStatuses(ctx, "", l.span.At.ID, console.PageSize)
	if err != nil {
		return slow(ctx, err)
	}
	page := console.Page[console.MerchantStatus]{Rows: rows, Count: int64(len(rows)), More: next > 0}
	if next > 0 {
		page.Older = console.Cursor{ID: next}
	}
	list := around(l, page)
	list.Anything = len(rows) > 0
	return s.Render(c, http.StatusOK, pages.Merchants(l.p, list, rows))
}

// merchantPage shows one merchant.
func (s *handlers) merchantPage(c *fiber.Ctx) error {
	f := web.ReadFilter(c)
	pinged := f.Text("pinged")
	if f.Err != nil {
		return f.Err
	}
	code, err := web.MerchantCode(c)
	if err != nil {
		return err
	}
	ctx, cancel := web.Work()
	defer cancel()
	m, err := s.Console.Merchant(ctx, code, pinged)
	if err != nil {
		return err
	}
	did, err := s.done(ctx, c, "merchant", code)
	if err != nil {
		return err
	}
	role := web.Operator(c).Role
	return s.Render(c, http.StatusOK, pages.MerchantPage(s.Page(c), pages.MerchantData{
		Merchant: m, FormKey: newFormKey(), Did: did,
		CanControl: s.Policy.Allows(role, access.ControlBreakers), CanPing: s.Policy.Allows(role, access.ControlAddresses),
	}))
}

// declared is the merchant that a form is about.
func (s *handlers) declared(c *fiber.Ctx) (*merchant.Merchant, error) {
	code, err := web.MerchantCode(c)
	if err != nil {
		return nil, err
	}
	m := s.Settings.Merchants().ByCode(code)
	if m == nil {
		return nil, console.ErrNotFound
	}
	return m, nil
}

func toMerchant(c *fiber.Ctx, m *merchant.Merchant, query string) error {
	return c.Redirect("/merchants/"+url.PathEscape(m.Code)+"?"+query, http.StatusSeeOther)
}

// moveBreaker opens, closes or probes a merchant's breaker by hand.
func (s *handlers) moveBreaker(act breaker.Act) fiber.Handler {
	return func(c *fiber.Ctx) error {
		m, err := s.declared(c)
		if err != nil {
			return err
		}
		ctx, cancel := web.Work()
		defer cancel()
		var done *breaker.Folded
		did, err := s.act(ctx, c, audit.Act{Action: "breaker." + string(act), Object: "merchant", ObjectID: m.Code}, func(ctx context.Context, tx db.Tx) (err error) {
			done, err = s.Breakers.ByPerson(ctx, tx, m.ID, act, "operator:"+web.Operator(c).Name, web.Field(c, "reason"))
			return err
		})
		if err != nil {
			return err
		}
		if did {
			s.Breakers.Committed(done)
			metric.BreakerChanges.WithLabelValues(string(done.Changes[0].To)).Inc()
		}
		return toMerchant(c, m, doneQuery(c))
	}
}

// tryAddress sends a ping to one of a merchant's addresses and shows what it
// answers.
func (s *handlers) tryAddress(c *fiber.Ctx) error {
	m, name, err := s.addressOf(c)
	if err != nil {
		return err
	}
	ctx, cancel := web.Work()
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
	answer, err := s.Pings.Ping(ctx, m, name, func(context.Context, db.Tx, notify.Answer) error { return nil })
	if err != nil {
		return err
	}
	return toMerchant(c, m, "pinged="+answer.Notification)
}

// enableAddress lets an address be used again that was disabled.
func (s *handlers) enableAddress(c *fiber.Ctx) error {
	m, name, err := s.addressOf(c)
	if err != nil {
		return err
	}
	ctx, cancel := web.Work()
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

func (s *handlers) addressOf(c *fiber.Ctx) (*merchant.Merchant, string, error) {
	m, err := s.declared(c)
	if err != nil {
		return nil, "", err
	}
	key := web.Field(c, "endpoint")
	for i := range m.Endpoints {
		if m.Endpoints[i].Key() == key {
			return m, m.Endpoints[i].Name, nil
		}
	}
	return nil, "", web.InvalidField("endpoint", notify.ErrNoEndpoint.Error())
}
