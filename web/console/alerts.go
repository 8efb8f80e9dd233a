package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/access"
	"backstop/internal/alert"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/console"
	"backstop/views/pages"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// messagesShown is how many of the newest messages the page shows.
const messagesShown = 20

// alertsPage shows the rules, what fires and fired, and who was told.
func (s *handlers) alertsPage(c *fiber.Ctx) error {
	return s.sendAlerts(c, http.StatusOK, c.Query("rule"), false)
}

// sendAlerts draws the page with one rule open for a change, where the person may
// change it; wrong says that the change before was none that can be kept.
func (s *handlers) sendAlerts(c *fiber.Ctx, status int, editing string, wrong bool) error {
	l := s.list(c, true, "state")
	if l.Err != nil {
		return l.Err
	}
	l.query.Path = "/alerts"
	ctx, cancel := l.context()
	defer cancel()
	role := web.Operator(c).Role
	v := pages.AlertsData{
		CanTest: s.Policy.Allows(role, access.TestAlerts), CanConfigure: s.Policy.Allows(role, access.ConfigureAlerts),
		FormKey: newFormKey(), Wrong: wrong, Typed: func(name string) string { return strings.ToValidUTF8(web.Field(c, name), "") },
	}
	v.Targets, _ = s.alertTargets()
	tested, err := s.done(ctx, c, "alert", "test")
	if err != nil {
		return err
	}
	changed, err := s.done(ctx, c, "alert_rule", "")
	if err != nil {
		return err
	}
	v.Tested, v.Changed = tested != nil, changed != nil
	if v.Rules, err = alert.Rules(ctx, s.DB.Read); err != nil {
		return err
	}
	page, err := s.Console.Alerts(ctx, l.Text("state"), l.span)
	if err != nil {
		return slow(ctx, err)
	}
	v.Alerts = page.Rows
	if v.Firing, err = alert.CountFiring(ctx, s.DB.Read); err != nil {
		return err
	}
	if v.Messages, err = alert.Messages(ctx, s.DB.Read, 0, messagesShown); err != nil {
		return err
	}
	if i := slices.IndexFunc(v.Rules, func(r alert.Rule) bool { return r.Name == editing }); i >= 0 && v.CanConfigure {
		v.Editing = &v.Rules[i]
	}
	list := around(l, page)
	if list.Anything = !list.Empty; list.Empty {
		if list.Anything, err = s.Console.Anything(ctx, "alerts"); err != nil {
			return err
		}
	}
	return s.Render(c, status, pages.Alerts(l.p, list, v))
}

func (s *handlers) alertTargets() ([]string, alert.Style) {
	if s.Alerts == nil {
		return nil, alert.Style{}
	}
	return s.Alerts()
}

// testAlert sends a message to every target, the way of all others.
func (s *handlers) testAlert(c *fiber.Ctx) error {
	targets, style := s.alertTargets()
	ctx, cancel := web.Work()
	defer cancel()
	_, err := s.act(ctx, c, audit.Act{Action: "alert.test", Object: "alert", ObjectID: "test", Params: map[string]any{"targets": len(targets)}},
		func(ctx context.Context, tx db.Tx) error {
			_, err := alert.Try(ctx, tx, s.DB, targets, style, web.Operator(c).Name)
			return err
		})
	if err != nil {
		return err
	}
	return c.Redirect("/alerts?"+doneQuery(c), http.StatusSeeOther)
}

// changeRule keeps a rule as the form says. Both levels and times are of the
// form; what a rule has none of stays as it is.
func (s *handlers) changeRule(c *fiber.Ctx) error {
	name, err := url.PathUnescape(c.Params("rule"))
	if err != nil {
		return web.InvalidField("rule", "no rule has this name")
	}
	ctx, cancel := web.Work()
	defer cancel()
	change := audit.Act{Action: "alert.rule", Object: "alert_rule", ObjectID: name, Params: map[string]any{}}
	_, err = s.act(ctx, c, change, func(ctx context.Context, tx db.Tx) error {
		rules, err := alert.Rules(ctx, tx)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(rules, func(r alert.Rule) bool { return r.Name == name })
		if i < 0 {
			return console.ErrNotFound
		}
		is := rules[i]
		to, err := readRule(c, is)
		if err != nil {
			return err
		}
		for _, d := range []struct {
			name    string
			is, was any
		}{
			{"enabled", to.Enabled, is.Enabled},
			{"fire", to.Fire, is.Fire},
			{"clear", to.Clear, is.Clear},
			{"hold_s", to.HoldS, is.HoldS},
			{"quiet_s", to.QuietS, is.QuietS},
			{"window_s", to.WindowS, is.WindowS},
		} {
			if d.is != d.was {
				change.Params[d.name] = []any{d.was, d.is}
			}
		}
		return alert.Save(ctx, tx, s.DB, to)
	})
	if errors.Is(err, alert.ErrRule) {
		return s.sendAlerts(c, http.StatusUnprocessableEntity, name, true)
	}
	if err != nil {
		return err
	}
	return c.Redirect("/alerts?"+doneQuery(c), http.StatusSeeOther)
}

// readRule is the rule as the form changes it.
func readRule(c *fiber.Ctx, r alert.Rule) (alert.Rule, error) {
	r.Enabled = web.Field(c, "enabled") == "yes"
	for name, to := range map[string]*int64{"hold": &r.HoldS, "quiet": &r.QuietS, "window": &r.WindowS} {
		text := web.Field(c, name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return r, fmt.Errorf("%w: %s is no number of seconds", alert.ErrRule, name)
		}
		*to = n
	}
	if !r.Watches() {
		return r, nil
	}
	for name, to := range map[string]*int64{"fire": &r.Fire, "clear": &r.Clear} {
		v, err := alert.Read(r.Name, web.Field(c, name))
		if err != nil {
			return r, err
		}
		*to = v
	}
	return r, nil
}
