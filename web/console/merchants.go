package console

import (
	"context"
	"net/http"
	"net/url"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/breaker"
	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/views/partners"
	"backstop/views/ui"
	"backstop/web"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

// merchants is the list of merchants, in the order of declaration.
func (s *handlers) merchants() listPage[console.MerchantStatus] {
	return listPage[console.MerchantStatus]{
		spec: console.MerchantList, always: true, read: s.Console.Merchants, columns: partners.MerchantColumns,
		draw: func(_ context.Context, p *ui.Page, l ui.List, _ []console.MerchantStatus) (templ.Component, error) {
			return partners.Merchants(p, l), nil
		},
	}
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
	m, err := s.Console.Merchant(c.UserContext(), code, pinged)
	if err != nil {
		return err
	}
	did, err := s.done(c, "merchant", code)
	if err != nil {
		return err
	}
	role := web.Operator(c).Role
	return s.Render(c, http.StatusOK, partners.MerchantPage(s.Page(c), partners.MerchantData{
		Merchant: m, FormKey: act.NewKey(), Did: did,
		CanControl: s.Policy.Allows(role, access.ControlBreakers), CanPing: s.Policy.Allows(role, access.ControlAddresses),
	}))
}

// onMerchant runs an act on the merchant in the path, or a part of it, and redirects to the
// merchant.
func (s *handlers) onMerchant(c *fiber.Ctx, call act.Call) error {
	code, err := web.MerchantCode(c)
	if err != nil {
		return err
	}
	call.Ref.ID = code
	return s.actAndShow(c, merchantPath(code), call)
}

func merchantPath(code string) string { return "/merchants/" + url.PathEscape(code) }

// moveBreaker opens, closes or probes a merchant's breaker.
func (s *handlers) moveBreaker(move breaker.Act) fiber.Handler {
	return func(c *fiber.Ctx) error { return s.onMerchant(c, act.Call{Kind: breaker.MoveAct(move)}) }
}

// pingEndpoint pings one of a merchant's endpoints and shows the result.
func (s *handlers) pingEndpoint(c *fiber.Ctx) error {
	code, err := web.MerchantCode(c)
	if err != nil {
		return err
	}
	out, err := s.act(c, act.Call{Kind: notify.PingAct("merchant"), Ref: act.Ref{ID: code, Part: web.Field(c, "endpoint")}})
	if err != nil {
		return err
	}
	if out.Repeated { // a form that is sent twice pings once
		return c.Redirect(merchantPath(code)+"?"+doneQuery(c), http.StatusSeeOther)
	}
	answer, err := out.After(c.UserContext())
	if err != nil {
		return err
	}
	return c.Redirect(merchantPath(code)+"?pinged="+answer.(notify.Answer).Notification, http.StatusSeeOther)
}

// enableEndpoint enables a disabled endpoint.
func (s *handlers) enableEndpoint(c *fiber.Ctx) error {
	return s.onMerchant(c, act.Call{Kind: notify.EnableAct, Ref: act.Ref{Part: web.Field(c, "endpoint")}})
}
