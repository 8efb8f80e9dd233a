package console

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/payment"
	"backstop/internal/sandbox"
	"backstop/internal/supplier"
	"backstop/views/overview"
	"backstop/views/ui"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// guideState is the first steps with the callback that is due.
type guideState struct {
	sandbox.State
	callback *supplier.Request // nil = none is due
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
		State: g.State, May: s.Policy.Allows(p.Roles, access.ProposeSettings), Production: s.Config.Environment == "production",
		APIURL: s.Config.PublicURL, CallbackURL: s.Config.PublicURL + web.CallbackPath,
	}
	if d.May && g.callback != nil {
		d.Callback = string(g.callback.Body)
	}
	return d
}

func (s *handlers) guidePage(c *fiber.Ctx) error { return s.sendGuide(c, "", overview.Example{}) }

// exampleKeys shows the guide with new keys for a first apply file: this response is the only place
// where they appear. The same form shows the same keys.
func (s *handlers) exampleKeys(c *fiber.Ctx) error {
	form, err := formKey(c)
	if err != nil {
		return err
	}
	key := func(purpose string) []byte {
		mac := hmac.New(sha256.New, s.Keys.Derive("example keys"))
		fmt.Fprintf(mac, "%s %d %s", purpose, web.Operator(c).ID, form)
		return mac.Sum(nil)
	}
	return s.sendGuide(c, "", overview.Example{
		SupplierKey: hex.EncodeToString(key("supplier")[:16]), APIKey: "sk_live_" + hex.EncodeToString(key("api")[:16]),
		SigningSecret: "whsec_" + base64.StdEncoding.EncodeToString(key("signing")),
	})
}

// sendGuide shows the guide with the keys that were made for this response: the API key of the
// sandbox's merchant and those of the example.
func (s *handlers) sendGuide(c *fiber.Ctx, apiKey string, example overview.Example) error {
	s.live.Forget("guide") // an older panel must not replace this one
	g, err := s.readGuide(c.UserContext())
	if err != nil {
		return err
	}
	p := s.Page(c)
	p.Live = !g.Over() // else the live panel is empty
	d := s.guideOf(p, g)
	d.APIKey, d.Key, d.Example = apiKey, act.NewKey(), example
	d.Asked = d.May && d.Production && !d.Made && c.Query("sandbox") != ""
	return s.Render(c, http.StatusOK, overview.Guide(p, d))
}

// sandboxAsked refuses a sandbox that nobody asked for.
func (s *handlers) sandboxAsked(c *fiber.Ctx) (act.Ref, error) {
	if s.Config.Environment == "production" && web.Field(c, "asked") == "" {
		return act.Ref{}, web.InvalidField("asked", "this is production: ask for a sandbox on /guide?sandbox=1")
	}
	return act.Ref{}, nil
}

// showSandbox shows the new API key of the sandbox's merchant: this response is the only place
// where it appears. A form that is sent a second time shows none.
func (s *handlers) showSandbox(c *fiber.Ctx, done web.Acted) error {
	if err := s.Settings.Refresh(c.UserContext()); err != nil {
		return err
	}
	key, _ := done.Result.(string)
	return s.sendGuide(c, key, overview.Example{})
}

// errNoSandbox: this node does not have the sandbox in its settings.
var errNoSandbox = &web.Error{Status: http.StatusConflict, Code: "no_sandbox", Message: "there is no sandbox yet: make it on /guide"}

// sandboxNumber is the merchant's number of the order that a form creates. The same form creates
// the same order.
func (s *handlers) sandboxNumber(c *fiber.Ctx) (act.Ref, error) {
	if s.Settings.Merchants().ByCode(sandbox.Code) == nil {
		return act.Ref{}, errNoSandbox
	}
	sum := sha256.Sum256([]byte(web.Field(c, "form_key")))
	return act.Ref{ID: "sandbox-" + hex.EncodeToString(sum[:8])}, nil
}

// createSandboxOrder creates an order as the sandbox's merchant would.
func (s *handlers) createSandboxOrder(c *fiber.Ctx, done web.Acted) error {
	_, _, err := s.Payments.Create(c.UserContext(), s.Settings.Merchants().ByCode(sandbox.Code), payment.CreateRequest{
		OutTradeNo: done.Ref.ID, Amount: sandbox.Amount, Currency: sandbox.Currency, Supplier: sandbox.Code, Subject: "Telescope",
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
	if g.callback == nil {
		return c.Redirect("/guide", http.StatusSeeOther) // another person or a curl was first
	}
	key, err := formKey(c)
	if err != nil {
		return err
	}
	if _, err := s.Run(c, web.ActRoute{Kind: sandbox.CallbackAct}, act.Call{Ref: act.Ref{ID: g.OrderNo}, Key: key}); err != nil {
		return err
	}
	g.callback.RemoteAddr = s.Client(c)
	if got := s.Callbacks.Receive(c.UserContext(), sandbox.Code, g.callback, nil); got.Err != nil {
		return got.Err
	}
	return c.Redirect(orderPath(g.OrderNo), http.StatusSeeOther)
}

// hideGuide leads to the overview, without the guide that was closed for everybody.
func (s *handlers) hideGuide(c *fiber.Ctx, _ web.Acted) error {
	s.live.Forget("guide")
	return c.Redirect("/", http.StatusSeeOther)
}
