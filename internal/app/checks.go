package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/redisd"
	"backstop/migrations"
	"backstop/web"
)

// maxSkew is the difference between this node's clock and the database's from
// which on signatures and schedules cannot be trusted.
const maxSkew = 2 * time.Second

// checks is what /readyz asks.
func (a *App) checks() []web.Check {
	schema := func(ctx context.Context) error { return a.db.CheckSchema(ctx, migrations.Files) }
	return []web.Check{
		a.check("database", a.db.Ping, db.Kind),
		a.check("writable", a.db.Writable, db.Kind),
		a.check("schema", schema, db.Kind),
		a.check("redis", a.redis.Check, redisd.Kind),
		a.check("keys", a.checkKeys, keysKind),
		a.check("clock", a.checkClock, error.Error),
		a.warning("log", a.checkLog, error.Error),
		a.warning("nodes", a.checkNodes, differenceKind),
		a.warning("settings", a.checkSettings, error.Error),
	}
}

// checkLog finds that nobody reads the log. Callbacks are taken all the same, so that it
// is no reason to take the node out of the balancer.
func (a *App) checkLog(context.Context) error {
	if a.o.LogState == nil {
		return nil
	}
	return a.o.LogState()
}

func (a *App) checkClock(context.Context) error {
	if s := a.db.Skew(); s.Abs() > maxSkew {
		return fmt.Errorf("this node's clock is %s ahead of the database's: mend its time service", s.Round(time.Millisecond))
	}
	return nil
}

// differ says in what parts of their fingerprints living nodes differ.
func (a *App) differ(ctx context.Context) (parts []string, living []db.Live, err error) {
	if living, err = a.db.Living(ctx); err != nil {
		return nil, nil, err
	}
	all := make([]db.Fingerprint, len(living))
	for i, l := range living {
		all[i] = l.Fingerprint
	}
	return db.Differ(all), living, nil
}

// checkNodes says in what living nodes differ that must be the same for all.
func (a *App) checkNodes(ctx context.Context) error {
	parts, living, err := a.differ(ctx)
	if err != nil {
		return errors.New(db.Kind(err))
	}
	if len(parts) == 0 {
		return nil
	}
	for i, part := range parts {
		parts[i] = partNames[part]
	}
	names := make([]string, len(living))
	for i, l := range living {
		names[i] = fmt.Sprintf("%s: keys %s, ranges %s, build %s", l.Name, l.KeyIDs, l.Ranges, l.Build)
	}
	return &difference{"living nodes differ in " + strings.Join(parts, ", "), strings.Join(names, "; ")}
}

// partNames are the parts of a fingerprint as those know them who set them.
var partNames = map[string]string{
	db.PartKeys: "their master keys", db.PartRanges: "BACKSTOP_NOTIFY_ALLOW_CIDRS", db.PartBuild: "their version",
}

// difference is what everybody may read, and beside it what belongs to the log.
type difference struct{ kind, nodes string }

func (d *difference) Error() string { return d.kind + " (" + d.nodes + ")" }

func differenceKind(err error) string {
	if d := (*difference)(nil); errors.As(err, &d) {
		return d.kind
	}
	return err.Error()
}

// checkSettings names what of the settings cannot be read. All others are served: one
// row that is broken must not take every node out of the balancer.
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

// shownBroken is how many names fit into one line.
const shownBroken = 5

// warning is a check whose trouble is shown and leaves the node ready.
func (a *App) warning(name string, run func(context.Context) error, kind func(error) string) web.Check {
	return web.Check{Name: name, Warning: true, Run: a.logged(name, "ready with a warning", "warning over", run, kind)}
}

// check is one of them.
func (a *App) check(name string, run func(context.Context) error, kind func(error) string) web.Check {
	return web.Check{Name: name, Run: a.logged(name, "not ready", "ready again", run, kind)}
}

// logged tells the kind of a trouble only, since whoever asks needs no login. What it is
// stands in the log, once as it begins and as it changes.
func (a *App) logged(name, begins, ends string, run func(context.Context) error, kind func(error) string) func(context.Context) error {
	said := "" // a check runs once at a time
	return func(ctx context.Context) error {
		err := run(ctx)
		if err == nil {
			if said != "" {
				a.o.Log.Info(ends, "check", name)
			}
			said = ""
			return nil
		}
		is := kind(err)
		if is != said {
			a.o.Log.Warn(begins, "check", name, "kind", is, "error", err)
		}
		said = is
		return errors.New(is)
	}
}
