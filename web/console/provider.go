package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/alert"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/seal"
	"backstop/internal/base/text"
	"backstop/internal/base/textlimit"
	"backstop/internal/signin"
	"backstop/views/operators"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// flowPlace binds the cookie of a running sign-in.
var flowPlace = seal.Place{Table: "cookies", Field: "sign_in"}

func (s *handlers) flowCookie() string { return s.CookieName() + "-oidc" }

// goToProvider begins a sign-in at the provider.
func (s *handlers) goToProvider(c *fiber.Ctx) error {
	if s.Provider == nil {
		return c.Redirect("/login", http.StatusSeeOther)
	}
	to, flow, err := s.Provider.Begin(c.UserContext(), safeNext(c.Query("next")), c.Query("again") != "")
	if err != nil {
		return s.refuseProvider(c, flow, err)
	}
	raw, err := json.Marshal(flow)
	if err != nil {
		return err
	}
	s.SetCookie(c, s.flowCookie(), s.Keys.Seal(flowPlace, raw), int(signin.FlowLife/time.Second))
	return c.Redirect(to, http.StatusSeeOther)
}

// flowOf returns the sign-in that the browser began; the zero value = none.
func (s *handlers) flowOf(c *fiber.Ctx) (f signin.Flow) {
	raw, err := s.Keys.Open(flowPlace, c.Cookies(s.flowCookie()))
	if err != nil || json.Unmarshal(raw, &f) != nil {
		return signin.Flow{}
	}
	return f
}

// comeBack ends a sign-in at the provider.
func (s *handlers) comeBack(c *fiber.Ctx) error {
	if s.Provider == nil {
		return c.Redirect("/login", http.StatusSeeOther)
	}
	flow := s.flowOf(c)
	answer := signin.Callback{State: c.Query("state"), Code: c.Query("code"), Error: c.Query("error"), Issuer: c.Query("iss")}
	if err := s.Provider.Check(flow, answer); err != nil {
		return s.refuseProvider(c, flow, err)
	}
	try := access.SignIn{Address: web.SenderOf(s.Client(c))}
	if s.throttle.Try(try) > 0 {
		return web.ErrTooMany // the page can be loaded again: the answer was not used
	}
	s.SetCookie(c, s.flowCookie(), "", -1)
	who, err := s.whoIs(c, flow, answer)
	if err != nil {
		return s.refuseProvider(c, flow, err)
	}
	op, err := s.Operators.SignInAs(c.UserContext(), who.Identity, s.Client(c).String())
	if reason, ok := refusedPeople[errorOf(err)]; ok {
		return s.refusePerson(c, reason, who)
	}
	if err != nil {
		return err
	}
	s.throttle.Forgive(try)
	op.Issuer, op.SecondAt = who.Issuer, who.At
	return s.enter(c, op, flow.Next, map[string]any{"issuer": who.Issuer})
}

// whoIs uses the answer up and returns who signed in. Errors: those of signin.Provider.
func (s *handlers) whoIs(c *fiber.Ctx, flow signin.Flow, answer signin.Callback) (*signin.Person, error) {
	var fresh bool
	err := s.DB.Tx(c.UserContext(), func(ctx context.Context, tx db.Tx) (err error) {
		fresh, err = act.ClaimKey(ctx, tx, s.DB.Now(), "sign-in "+flow.State)
		return err
	})
	if err != nil {
		return nil, err
	}
	if !fresh {
		return nil, signin.ErrState
	}
	return s.Provider.Finish(c.UserContext(), flow, answer)
}

// providerProblems are what the page for signing in says of a failed sign-in at the provider.
var providerProblems = []struct {
	err     error
	status  int
	problem operators.Problem
}{
	{signin.ErrAway, http.StatusServiceUnavailable, operators.ProviderAway},
	{signin.ErrState, http.StatusUnprocessableEntity, operators.ProviderState},
	{signin.ErrDenied, http.StatusUnprocessableEntity, operators.ProviderDenied},
	{signin.ErrToken, http.StatusBadGateway, operators.ProviderToken},
	{signin.ErrNotFresh, http.StatusBadGateway, operators.ProviderNotFresh},
}

// refuseProvider shows the page for signing in with what went wrong at the provider.
func (s *handlers) refuseProvider(c *fiber.Ctx, flow signin.Flow, err error) error {
	for _, p := range providerProblems {
		if errors.Is(err, p.err) {
			s.Log.Warn("sign-in at the provider failed", "error", textlimit.Clip(err.Error(), 300), "remote", s.Client(c).String(),
				"request_id", web.RequestID(c))
			return s.sendLogin(c, p.status, operators.Login{Next: safeNext(flow.Next), Problem: p.problem})
		}
	}
	return err
}

// refusedPeople are whom the provider lets in and this installation does not, by the error.
var refusedPeople = map[error]text.Text{
	access.ErrNoRole: {
		ZH: "您已在 %[1]s 登录，但您所在的组在这里没有角色。请联系管理这些组的人，或一位管理员（%[2]s）。",
		EN: "You are signed in at %[1]s, but none of your groups has a role here. Ask whoever manages the groups there, or an admin of this console (%[2]s).",
	},
	access.ErrExists: {
		ZH: "您在 %[1]s 的用户名在这里已属于用密码登录的另一位操作员。请联系一位管理员（%[2]s）。",
		EN: "Your name at %[1]s belongs to another operator here, who signs in by password. Ask an admin of this console (%[2]s).",
	},
	access.ErrName: {
		ZH: "%[1]s 没有给出可用的用户名（a-z、0-9、点、- 和 _）或已验证的邮箱。请联系管理它的人，或一位管理员（%[2]s）。",
		EN: "%[1]s gives no name that is valid here (a-z, 0-9, dot, - and _), and no verified e-mail address. Ask whoever manages it, or an admin of this console (%[2]s).",
	},
	access.ErrMerchants: {
		ZH: "您已在 %[1]s 登录，但它把您限定在这里没有的商户。请联系管理它的人，或一位管理员（%[2]s）。",
		EN: "You are signed in at %[1]s, which limits you to a merchant that does not exist here. Ask whoever manages it, or an admin of this console (%[2]s).",
	},
	access.ErrNoMerchant: {
		ZH: "您已在 %[1]s 登录，但它没有给您任何商户。请联系管理它的人，或一位管理员（%[2]s）。",
		EN: "You are signed in at %[1]s, which limits you to merchants and names none. Ask whoever manages it, or an admin of this console (%[2]s).",
	},
	access.ErrLimit: {
		ZH: "您已在 %[1]s 登录，但您的角色必须限定商户，而它没有限定。请联系管理它的人，或一位管理员（%[2]s）。",
		EN: "You are signed in at %[1]s, but your role is for those who are limited to merchants, which it does not do. Ask whoever manages it, or an admin of this console (%[2]s).",
	},
	access.ErrDisabled: {
		ZH: "您已在 %[1]s 登录，但您在这里的账号已停用。请联系一位管理员（%[2]s）。",
		EN: "You are signed in at %[1]s, but you are disabled here. Ask an admin of this console (%[2]s).",
	},
}

// errorOf returns the error of refusedPeople that this one is.
func errorOf(err error) error {
	for known := range refusedPeople {
		if errors.Is(err, known) {
			return known
		}
	}
	return err
}

// refusePerson says whom to ask.
func (s *handlers) refusePerson(c *fiber.Ctx, reason text.Text, who *signin.Person) error {
	admins, err := s.Operators.WhoMay(c.UserContext(), s.Policy, access.ManageOperators)
	if err != nil {
		return err
	}
	s.Log.Info("sign-in at the provider refused", "subject", textlimit.Clip(who.Subject, 100), "name", who.Name, "role", who.Roles,
		"request_id", web.RequestID(c))
	p := s.Page(c)
	return s.Render(c, http.StatusForbidden, operators.NotAdmitted(p, p.T(reason, s.Provider.Host(), strings.Join(admins, ", "))))
}

// breakGlass raises the alert of a sign-in by the operator for emergencies, before it is one.
func (s *handlers) breakGlass(c *fiber.Ctx, op *access.Operator) error {
	if op.Name != s.Config.BreakGlass {
		return nil
	}
	return s.DB.Tx(c.UserContext(), func(ctx context.Context, tx db.Tx) error {
		if err := alert.Record(ctx, tx, s.DB, []alert.Event{{Rule: alert.BreakGlass, Subject: op.Name, Count: 1}}); err != nil {
			return err
		}
		return s.keepIn(ctx, tx, c, audit.Act{
			Actor: "operator:" + op.Name, Action: "session.break_glass", Object: "operator", ObjectID: op.Name,
		})
	})
}

// leave returns the page that goes on to the provider, to end the person's session there; "" = none.
func (s *handlers) leave(c *fiber.Ctx, op *access.Operator) string {
	if s.Provider == nil || op == nil || op.Issuer != s.Provider.Issuer() {
		return ""
	}
	return s.Provider.EndURL(c.UserContext(), s.Config.AdminURL+"/login")
}
