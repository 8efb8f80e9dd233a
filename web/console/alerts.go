package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/alert"
	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/views/ui"
	"backstop/views/work"
	"backstop/web"

	"github.com/a-h/templ"
	"github.com/gofiber/fiber/v2"
)

// messagesShown is the number of newest messages on the page.
const messagesShown = 20

// alertsPage shows the rules, the alerts and their messages, with one rule's form open if the
// operator may change it.
func (s *handlers) alertsPage(c *fiber.Ctx) error {
	return send(s, c, http.StatusOK, listPage[alert.Alert]{
		spec: console.AlertList, always: true, read: s.Console.Alerts, columns: work.AlertColumns,
		draw: func(ctx context.Context, p *ui.Page, l ui.List, rows []alert.Alert) (templ.Component, error) {
			editing := c.Query("rule")
			if refused, err := ruleName(c); err == nil && refused != "" {
				editing = refused
			}
			v, err := s.alertsData(ctx, c, editing)
			v.Alerts = rows
			return work.Alerts(p, l, v), err
		},
	})
}

// ruleName reads the name of a rule from the path.
func ruleName(c *fiber.Ctx) (string, error) {
	name, err := url.PathUnescape(c.Params("rule"))
	if err != nil {
		return "", web.InvalidField("rule", "no rule has this name")
	}
	return name, nil
}

// alertsData reads what the page shows besides its list.
func (s *handlers) alertsData(ctx context.Context, c *fiber.Ctx, editing string) (v work.AlertsData, err error) {
	role := web.Operator(c).Roles
	v = work.AlertsData{
		CanTest: s.Policy.Allows(role, access.TestAlerts), CanConfigure: s.Policy.Allows(role, access.ConfigureAlerts),
		FormKey: act.NewKey(),
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
	waits, err := s.Console.AtWork(ctx)
	if err != nil {
		return v, err
	}
	v.Incidents = waits.Incidents
	if v.Firing, err = alert.CountFiring(ctx, s.DB.Read); err != nil {
		return v, err
	}
	if i := slices.IndexFunc(v.Rules, func(r alert.Rule) bool { return r.Name == editing }); i >= 0 && v.CanConfigure {
		v.Editing = &v.Rules[i]
	}
	v.Messages, err = alert.Messages(ctx, s.DB.Read, 0, messagesShown)
	return v, err
}
