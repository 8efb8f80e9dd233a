package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"backstop/internal/db"
	"backstop/internal/redisd"
	"backstop/migrations"
	"backstop/web"
)

// skewMost is the difference between this node's clock and the database's from
// which on signatures and schedules cannot be trusted.
const skewMost = 2 * time.Second

// checks is what /readyz asks.
func (a *App) checks() []web.Check {
	schema := func(ctx context.Context) error { return a.db.CheckSchema(ctx, migrations.Files) }
	return []web.Check{
		a.check("database", a.db.Ping, db.Kind),
		a.check("writable", a.db.Writable, db.Kind),
		a.check("schema", schema, db.Kind),
		a.check("redis", a.redis.Check, redisd.Kind),
		a.check("clock", a.checkClock, error.Error),
		a.check("settings", a.checkSettings, error.Error),
	}
}

func (a *App) checkClock(context.Context) error {
	if s := a.db.Skew(); s.Abs() > skewMost {
		return fmt.Errorf("this node's clock is %s ahead of the database's: mend its time service", s.Round(time.Millisecond))
	}
	return nil
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
	return web.Warning("cannot be read: " + names)
}

// shownBroken is how many names fit into one line.
const shownBroken = 5

// check is one of them. Whoever asks needs no login: the answer names the kind of the
// trouble only. What it is stands in the log, once as it begins and as it changes.
func (a *App) check(name string, run func(context.Context) error, kind func(error) string) web.Check {
	said := "" // a check runs once at a time
	return web.Check{Name: name, Run: func(ctx context.Context) error {
		err := run(ctx)
		if err == nil {
			if said != "" {
				a.o.Log.Info("ready again", "check", name)
			}
			said = ""
			return nil
		}
		is := kind(err)
		if is != said {
			a.o.Log.Warn("not ready", "check", name, "kind", is, "error", err)
		}
		said = is
		var warning web.Warning
		if errors.As(err, &warning) {
			return web.Warning(is)
		}
		return errors.New(is)
	}}
}
