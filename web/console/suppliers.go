package console

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"backstop/internal/act"
	"backstop/internal/base/calendar"
	"backstop/internal/base/text"
	"backstop/internal/base/textlimit"
	"backstop/internal/callback"
	"backstop/internal/console"
	"backstop/internal/supplier"
	"backstop/views/partners"
	"backstop/views/ui"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// suppliersPage lists the suppliers; for ?format=, as a file.
func (s *handlers) suppliersPage(c *fiber.Ctx) error {
	format, err := web.ReadFormat(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), s.listTime)
	defer cancel()
	all, err := s.Console.Suppliers(ctx, s.Config.Timezone)
	if err != nil {
		return slow(ctx, err)
	}
	p := s.Page(c)
	if format != "" {
		return exportRead(s, c, exported[console.SupplierHealth]{
			format: format, name: "suppliers", page: p,
			columns: partners.SupplierColumns,
		}, all)
	}
	return s.Render(c, http.StatusOK, partners.Suppliers(p, all))
}

// supplierPage shows one supplier.
func (s *handlers) supplierPage(c *fiber.Ctx) error {
	code, err := web.SupplierCode(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), s.listTime)
	defer cancel()
	d, err := s.Console.Supplier(ctx, code, s.Config.Timezone)
	if err != nil {
		return slow(ctx, err)
	}
	g, err := s.goLive(c, code)
	if err != nil {
		return slow(ctx, err)
	}
	return s.Render(c, http.StatusOK, partners.SupplierPage(s.Page(c), d, g))
}

// goLive reads how far a supplier has come, with the answer to the query in ?tried=; nil = its settings
// cannot be used.
func (s *handlers) goLive(c *fiber.Ctx, code string) (*partners.GoLive, error) {
	e, ok := s.Settings.Current().Suppliers.Lookup(code)
	if !ok {
		return nil, nil
	}
	g := &partners.GoLive{
		Code: code, Callback: s.Config.PublicURL + web.CallbackPath + code, Enabled: e.Enabled, CanQuery: e.Can().Querier != nil, Key: act.NewKey(),
	}
	var err error
	if g.SupplierSteps, err = s.Console.SupplierSteps(c.UserContext(), e.ID, code); err != nil {
		return nil, err
	}
	if id, bad := strconv.ParseInt(c.Query("tried"), 10, 64); bad == nil {
		g.Tried, err = s.Console.Trial(c.UserContext(), code, id)
	}
	return g, err
}

// knownSupplier returns the supplier's code in the path; act.ErrNotFound = there is none.
func (s *handlers) knownSupplier(c *fiber.Ctx) (string, error) {
	code, err := web.SupplierCode(c)
	if err != nil {
		return "", err
	}
	suppliers := s.Settings.Current().Suppliers
	_, usable := suppliers.Lookup(code)
	if _, broken := suppliers.Broken(code); !usable && !broken {
		return "", act.ErrNotFound
	}
	return code, nil
}

// playgroundPage is the empty playground.
func (s *handlers) playgroundPage(c *fiber.Ctx) error {
	code, err := s.knownSupplier(c)
	if err != nil {
		return err
	}
	return s.Render(c, http.StatusOK, partners.Playground(s.Page(c), partners.PlaygroundData{Code: code}))
}

// playground shows what would become of a pasted callback. It is not recorded in the audit,
// because it has no effect and shows nothing that its reader did not paste or may not see.
func (s *handlers) playground(c *fiber.Ctx) error {
	code, err := s.knownSupplier(c)
	if err != nil {
		return err
	}
	p := s.Page(c)
	d := partners.PlaygroundData{
		Code: code, Request: c.FormValue("request"),
		From: strings.TrimSpace(c.FormValue("from")), At: strings.TrimSpace(c.FormValue("at")),
	}
	req, problem := pasted(p, d)
	if problem != "" {
		d.Problem = problem
		d.Request = textlimit.Storable(textlimit.Cut(d.Request, callback.MaxPaste))
		d.From, d.At = textlimit.Storable(textlimit.Cut(d.From, 64)), textlimit.Storable(textlimit.Cut(d.At, 64))
		return s.Render(c, http.StatusUnprocessableEntity, partners.Playground(p, d))
	}
	f, err := s.Callbacks.Check(c.UserContext(), code, req)
	if errors.Is(err, callback.ErrUnknown) { // deleted meanwhile
		return act.ErrNotFound
	}
	if err != nil {
		return err
	}
	d.Found, d.Masked = &f, console.MaskFinding(&f)
	return s.Render(c, http.StatusOK, partners.Playground(p, d))
}

// pasted reads the form of the playground, or says what to fix.
func pasted(p *ui.Page, d partners.PlaygroundData) (req *supplier.Request, problem string) {
	req, err := callback.Paste(d.Code, d.Request)
	if err != nil {
		return nil, partners.PlaygroundProblem(p, text.Of(err))
	}
	if d.From != "" {
		if req.RemoteAddr, err = netip.ParseAddr(d.From); err != nil {
			return nil, partners.PlaygroundBadFrom(p)
		}
	}
	if d.At != "" {
		if req.ReceivedAt, err = calendar.Parse(partners.PlaygroundTime, d.At, p.Zone); err != nil {
			return nil, partners.PlaygroundBadAt(p)
		}
	}
	return req, ""
}
