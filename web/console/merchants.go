package console

import (
	"context"
	"net/http"
	"net/url"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/internal/testmode"
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
	role := web.Operator(c).Roles
	return s.Render(c, http.StatusOK, partners.MerchantPage(s.Page(c), partners.MerchantData{
		Merchant: m, FormKey: act.NewKey(), Did: did,
		CanControl: s.Policy.Allows(role, access.ControlBreakers), CanPing: s.Policy.Allows(role, access.PingEndpoints),
		CanEnable: s.Policy.Allows(role, access.ControlAddresses), CanRotate: s.Actor(c).Merchants != nil && s.Policy.Allows(role, access.RotateSecret),
		CanTest: s.TestMode != nil && s.Policy.Allows(role, access.MakeTestKeys),
	}))
}

func merchantPath(code string) string { return "/merchants/" + url.PathEscape(code) }

// endpointRef refers to one of a merchant's endpoints.
func endpointRef(c *fiber.Ctx) (act.Ref, error) {
	code, err := web.MerchantCode(c)
	return act.Ref{ID: code, Part: web.Field(c, "endpoint")}, err
}

// showRotated shows a new signing secret, which is stored sealed alone; of a form that is sent twice, what it did.
func (s *handlers) showRotated(c *fiber.Ctx, done web.Acted) error {
	secret, first := done.Result.(string)
	if !first {
		return showDone(c, merchantPath(done.Ref.ID))
	}
	if err := s.Settings.Refresh(c.UserContext()); err != nil {
		return err
	}
	return s.Render(c, http.StatusOK, partners.SecretRotated(s.Page(c), done.Ref.ID, secret))
}

// showTestKey shows a merchant's new key of test mode; of a form that is sent twice, what it did.
func (s *handlers) showTestKey(c *fiber.Ctx, done web.Acted) error {
	given, first := done.Result.(testmode.Issued)
	if !first {
		return showDone(c, merchantPath(done.Ref.ID))
	}
	return s.Render(c, http.StatusOK, partners.TestKeyMade(s.Page(c), done.Ref.ID, given))
}

// showPing shows the result of a ping.
func showPing(c *fiber.Ctx, done web.Acted) error {
	answer, ok := done.Result.(notify.Answer)
	if !ok { // a form that is sent twice pings once
		return showDone(c, merchantPath(done.Ref.ID))
	}
	return c.Redirect(merchantPath(done.Ref.ID)+"?pinged="+answer.Notification, http.StatusSeeOther)
}
