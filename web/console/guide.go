package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/payment"
	"backstop/internal/sandbox"
	"backstop/views/overview"
	"backstop/views/ui"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// guideState is the first steps with the callback that is due.
type guideState struct {
	sandbox.State
	callback string
}

// readGuide reads how far the installation is, and signs the callback of an order that waits
// for it.
func (s *handlers) readGuide(ctx context.Context) (g guideState, err error) {
	if g.State, err = sandbox.Read(ctx, s.DB.Read); err != nil || g.Over() || !g.Sandbox || !g.Waits {
		return g, err
	}
	if _, usable := s.Settings.Current().Suppliers.Lookup(sandbox.Code); !usable {
		return g, nil // such as without the master key: the overview is needed then
	}
	key, err := s.Settings.SupplierSecret(ctx, sandbox.Code, sandbox.KeyField)
	if err != nil { // the overview does not depend on it
		s.Log.Warn("sign the callback of the sandbox", "error", err)
		return g, nil
	}
	g.callback = sandbox.Callback(key, g.OrderNo, g.Amount)
	return g, nil
}

// guideOf returns the first steps as a viewer sees them.
func (s *handlers) guideOf(p *ui.Page, g guideState) overview.GuideData {
	d := overview.GuideData{
		State: g.State, May: s.Policy.Allows(p.Role, access.ProposeSettings), Production: s.Config.Environment == "production",
		APIURL: s.Config.PublicURL, CallbackURL: s.Config.PublicURL + web.CallbackPath,
	}
	if d.May {
		d.Callback = g.callback
	}
	return d
}

func (s *handlers) guidePage(c *fiber.Ctx) error { return s.sendGuide(c, "") }

// sendGuide shows the guide, with a new API key of the sandbox's merchant if one was made.
func (s *handlers) sendGuide(c *fiber.Ctx, apiKey string) error {
	s.live.Forget("guide") // an older panel must not replace this one
	g, err := s.readGuide(c.UserContext())
	if err != nil {
		return err
	}
	p := s.Page(c)
	p.Live = !g.Over() // else the live panel is empty
	d := s.guideOf(p, g)
	d.APIKey, d.Key, d.Example = apiKey, act.NewKey(), example()
	d.Asked = d.May && d.Production && !d.Made && c.Query("sandbox") != ""
	return s.Render(c, http.StatusOK, overview.Guide(p, d))
}

// makeSandbox makes the sandbox, or a new API key of its merchant, and shows the key: this
// response is the only place where it appears.
func (s *handlers) makeSandbox(c *fiber.Ctx) error {
	if s.Config.Environment == "production" && web.Field(c, "asked") == "" {
		return web.InvalidField("asked", "this is production: ask for a sandbox on /guide?sandbox=1")
	}
	out, err := s.act(c, act.Call{Kind: sandbox.MakeAct})
	if err != nil {
		return err
	}
	if err := s.Settings.Refresh(c.UserContext()); err != nil {
		return err
	}
	key := ""
	if out.After != nil { // nil = the form was sent a second time
		made, err := out.After(c.UserContext())
		if err != nil {
			return err
		}
		key, _ = made.(string)
	}
	return s.sendGuide(c, key)
}

// errNoSandbox: this node does not have the sandbox in its settings.
var errNoSandbox = &web.Error{Status: http.StatusConflict, Code: "no_sandbox", Message: "there is no sandbox yet: make it on /guide"}

// createSandboxOrder creates an order as the sandbox's merchant would. The same form creates the
// same order.
func (s *handlers) createSandboxOrder(c *fiber.Ctx) error {
	m := s.Settings.Merchants().ByCode(sandbox.Code)
	if m == nil {
		return errNoSandbox
	}
	sum := sha256.Sum256([]byte(web.Field(c, "form_key")))
	number := "sandbox-" + hex.EncodeToString(sum[:8])
	if _, err := s.act(c, act.Call{Kind: sandbox.OrderAct, Ref: act.Ref{ID: number}}); err != nil {
		return err
	}
	_, _, err := s.Payments.Create(c.UserContext(), m, payment.CreateRequest{
		OutTradeNo: number, Amount: sandbox.Amount, Currency: sandbox.Currency, Supplier: sandbox.Code, Subject: "Telescope",
	})
	if err != nil {
		return err
	}
	return c.Redirect("/guide", http.StatusSeeOther)
}

// sendSandboxCallback reports the newest order of the sandbox as paid, as its supplier would, and
// shows the order's story.
func (s *handlers) sendSandboxCallback(c *fiber.Ctx) error {
	g, err := s.readGuide(c.UserContext())
	if err != nil {
		return err
	}
	if g.callback == "" {
		return c.Redirect("/guide", http.StatusSeeOther) // another person or a curl was first
	}
	if _, err := s.act(c, act.Call{Kind: sandbox.CallbackAct, Ref: act.Ref{ID: g.OrderNo}}); err != nil {
		return err
	}
	req := sandbox.Request(g.callback)
	req.RemoteAddr = s.Client(c)
	if got := s.Callbacks.Receive(c.UserContext(), sandbox.Code, req, nil); got.Err != nil {
		return got.Err
	}
	return c.Redirect(orderPath(g.OrderNo), http.StatusSeeOther)
}

// dismissGuide closes the guide for everybody.
func (s *handlers) dismissGuide(c *fiber.Ctx) error {
	if _, err := s.act(c, act.Call{Kind: sandbox.DismissAct, Ref: act.Ref{ID: "guide"}}); err != nil {
		return err
	}
	s.live.Forget("guide")
	return c.Redirect("/", http.StatusSeeOther)
}
