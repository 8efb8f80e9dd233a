package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/redisd"
	"backstop/internal/notify"
	"backstop/internal/supplier"
	"backstop/migrations"
	"backstop/web"
)

// maxSkew is the difference between this node's clock and the database's above which signatures
// and schedules cannot be trusted.
const maxSkew = 2 * time.Second

// checks returns the checks of /readyz.
func (a *App) checks() []web.Check {
	dispatcher := a.dispatcher // the field is nil after the shutdown
	schema := func(ctx context.Context) error { return a.db.CheckSchema(ctx, migrations.Files) }
	return []web.Check{
		a.check("database", a.db.Ping, db.Kind),
		a.check("writable", a.db.Writable, db.Kind),
		a.check("schema", schema, db.Kind),
		a.check("keys", a.checkKeys, keysKind),
		a.check("suppliers", a.checkSuppliers, error.Error),
		a.degrades("redis", a.redis.Check, redisd.Kind),
		a.degrades("clock", a.checkClock, error.Error),
		a.degrades("ticks", a.checkTicks, error.Error),
		a.degrades("log", a.checkLog, error.Error),
		a.degrades("nodes", a.checkNodes, differenceKind),
		a.degrades("settings", a.checkSettings, error.Error),
		a.degrades("channels", func(context.Context) error { return checkChannels(dispatcher) }, error.Error),
	}
}

// check returns a check whose failure makes the node unready.
func (a *App) check(name string, run func(context.Context) error, kind func(error) string) web.Check {
	return web.Check{Name: name, Run: a.logged(name, "not ready", "ready again", run, kind)}
}

// degrades returns a check whose failure is shown while the node still commits callbacks.
func (a *App) degrades(name string, run func(context.Context) error, kind func(error) string) web.Check {
	return web.Check{Name: name, Degrades: true, Run: a.logged(name, "degraded", "no longer degraded", run, kind)}
}

// logged reduces a check's error to its kind, because readiness is shown without a login. The
// full error is logged when it first occurs and when it changes.
func (a *App) logged(name, begins, ends string, run func(context.Context) error, kind func(error) string) func(context.Context) error {
	last := "" // no lock: one run of a check at a time
	return func(ctx context.Context) error {
		err := run(ctx)
		if err == nil {
			if last != "" {
				a.o.Log.Info(ends, "check", name)
			}
			last = ""
			return nil
		}
		now := kind(err)
		if now != last {
			a.o.Log.Warn(begins, "check", name, "kind", now, "error", err)
		}
		last = now
		return errors.New(now)
	}
}

// checkSuppliers reports that no enabled supplier can be used, so that no callback can be taken.
// An installation without suppliers is new, and ready.
func (a *App) checkSuppliers(context.Context) error {
	suppliers := a.settings.Current().Suppliers
	usable := slices.ContainsFunc(suppliers.All(), func(s supplier.Entry) bool { return s.Enabled })
	if !usable && len(suppliers.AllBroken()) > 0 {
		return errors.New("no enabled supplier can be used: the check settings names those that cannot be read")
	}
	return nil
}

// maxTickAge is the age from which a tick has stopped rather than waits for a busy database.
const maxTickAge = 30 * time.Second

func (a *App) checkTicks(context.Context) error {
	if name, age := a.ticks.Oldest(); age > maxTickAge {
		return fmt.Errorf("%s: last ran %s ago", name, age.Round(time.Second))
	}
	return nil
}

// checkChannels reports why this node cannot send some notifications.
func checkChannels(d *notify.Dispatcher) error {
	if d == nil {
		return nil
	}
	causes := d.Faults()
	if len(causes) == 0 {
		return nil
	}
	return fmt.Errorf("some notifications cannot be sent from this node: %v", causes)
}

// checkLog reports that the log cannot be written: callbacks are taken all the same.
func (a *App) checkLog(context.Context) error {
	if a.o.LogState == nil {
		return nil
	}
	return a.o.LogState()
}

func (a *App) checkClock(context.Context) error {
	if s := a.db.Skew(); s.Abs() > maxSkew {
		return fmt.Errorf("this node's clock is %s the database's: fix its time service", aheadOf(s))
	}
	return nil
}

// aheadOf says how far a clock is ahead of another one, or behind it.
func aheadOf(skew time.Duration) string {
	by := skew.Abs().Round(time.Millisecond).String()
	if skew < 0 {
		return by + " behind"
	}
	return by + " ahead of"
}

// checkNodes reports differences between running nodes in what must be the same on all.
func (a *App) checkNodes(ctx context.Context) error {
	nodes, err := a.db.Nodes(ctx)
	if err != nil {
		return errors.New(db.Kind(err))
	}
	parts := db.Differ(nodes)
	if len(parts) == 0 {
		return nil
	}
	for i, part := range parts {
		parts[i] = partNames[part]
	}
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = fmt.Sprintf("%s: keys %s, ranges %s, build %s, shadow %s", n.Name, n.KeyIDs, n.Ranges, n.Build, n.Shadow)
	}
	return &difference{"running nodes differ in " + strings.Join(parts, ", "), strings.Join(names, "; ")}
}

// partNames names the parts of a fingerprint for operators.
var partNames = map[string]string{
	db.PartKeys: "their master keys", db.PartRanges: "BACKSTOP_NOTIFY_ALLOW_CIDRS", db.PartBuild: "their version",
	db.PartShadow: "BACKSTOP_SHADOW",
}

// difference is an error with a public text and details for the log.
type difference struct{ kind, nodes string }

func (d *difference) Error() string { return d.kind + " (" + d.nodes + ")" }

func differenceKind(err error) string {
	if d := (*difference)(nil); errors.As(err, &d) {
		return d.kind
	}
	return err.Error()
}

// checkSettings names the settings that cannot be read. All others are used: one broken row
// must not make every node unready.
func (a *App) checkSettings(context.Context) error {
	broken := a.settings.Current().Unreadable()
	if len(broken) == 0 {
		return nil
	}
	names := strings.Join(broken[:min(len(broken), shownBroken)], ", ")
	if more := len(broken) - shownBroken; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return errors.New("cannot be read: " + names)
}

// shownBroken is how many names fit on one line.
const shownBroken = 5
