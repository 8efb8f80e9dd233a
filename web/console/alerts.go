package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/alert"
	"backstop/internal/compensation"
	"backstop/internal/compensation/resend"
	"backstop/internal/console"
	"backstop/views/ui"
	"backstop/views/work"
	"backstop/web"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

// messagesShown is the number of newest messages on the page.
const messagesShown = 20

// alertsPage shows the rules, the alerts and their messages.
func (s *handlers) alertsPage(c *fiber.Ctx) error {
	return s.sendAlerts(c, http.StatusOK, c.Query("rule"), false)
}

// sendAlerts renders the page, with one rule's form open if the operator may change it; wrong =
// the submitted change is invalid.
func (s *handlers) sendAlerts(c *fiber.Ctx, status int, editing string, wrong bool) error {
	return send(s, c, status, listPage[alert.Alert]{
		spec: console.AlertList, always: true, read: s.Console.Alerts, columns: work.AlertColumns,
		draw: func(ctx context.Context, p *ui.Page, l ui.List, rows []alert.Alert) (templ.Component, error) {
			v, err := s.alertsData(ctx, c, editing)
			v.Alerts, v.Wrong = rows, wrong
			return work.Alerts(p, l, v), err
		},
	})
}

// alertsData reads what the page shows besides its list.
func (s *handlers) alertsData(ctx context.Context, c *fiber.Ctx, editing string) (v work.AlertsData, err error) {
	role := web.Operator(c).Role
	v = work.AlertsData{
		CanTest: s.Policy.Allows(role, access.TestAlerts), CanConfigure: s.Policy.Allows(role, access.ConfigureAlerts),
		FormKey: act.NewKey(), Typed: func(name string) string { return strings.ToValidUTF8(web.Field(c, name), "") },
	}
	v.Targets, _ = s.Alerts()
	tested, err := s.done(c, "alert", "test")
	if err != nil {
		return v, err
	}
	changed, err := s.done(c, "alert_rule", "")
	if err != nil {
		return v, err
	}
	again, err := s.done(c, compensation.OfAlertMessage, "")
	if err != nil {
		return v, err
	}
	v.Tested, v.Changed, v.Again = tested != nil, changed != nil, again != nil
	if v.Rules, err = alert.Rules(ctx, s.DB.Read); err != nil {
		return v, err
	}
	if v.Firing, err = alert.CountFiring(ctx, s.DB.Read); err != nil {
		return v, err
	}
	if i := slices.IndexFunc(v.Rules, func(r alert.Rule) bool { return r.Name == editing }); i >= 0 && v.CanConfigure {
		v.Editing = &v.Rules[i]
	}
	v.Messages, err = alert.Messages(ctx, s.DB.Read, 0, messagesShown)
	return v, err
}

// testAlert sends a test message to every target.
func (s *handlers) testAlert(c *fiber.Ctx) error {
	return s.actAndShow(c, "/alerts", act.Call{Kind: alert.TestAct, Ref: act.Ref{ID: "test"}})
}

// resendAlert sends a message again that was given up.
func (s *handlers) resendAlert(c *fiber.Ctx) error {
	id, err := idOf(c, "message")
	if err != nil {
		return err
	}
	return s.actAndShow(c, "/alerts", act.Call{Kind: resend.AlertAct, Ref: act.Ref{Row: id}})
}

// changeRule changes a rule. The form has all levels and times; those that a rule does not have
// stay unchanged.
func (s *handlers) changeRule(c *fiber.Ctx) error {
	name, err := url.PathUnescape(c.Params("rule"))
	if err != nil {
		return web.InvalidField("rule", "no rule has this name")
	}
	fields := map[string]any{"enabled": web.Field(c, "enabled") == "yes"}
	for _, field := range []string{"fire", "clear", "hold", "quiet", "window"} {
		fields[field] = web.Field(c, field)
	}
	err = s.actAndShow(c, "/alerts", act.Call{Kind: alert.RuleAct, Ref: act.Ref{ID: name}, Params: params(fields)})
	if errors.Is(err, alert.ErrRule) {
		return s.sendAlerts(c, http.StatusUnprocessableEntity, name, true)
	}
	return err
}
