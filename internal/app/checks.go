package app

import (
	"context"
	"errors"
	"fmt"
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
		a.warning("log", a.checkLog, error.Error),
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
	if s := a.db.Skew(); s.Abs() > skewMost {
		return fmt.Errorf("this node's clock is %s ahead of the database's: mend its time service", s.Round(time.Millisecond))
	}
	return nil
}

// warning is a check whose trouble is shown and leaves the node ready.
func (a *App) warning(name string, run func(context.Context) error, kind func(error) string) web.Check {
	return web.Check{Name: name, Warns: true, Run: a.logged(name, "ready with a warning", run, kind)}
}

// check is one of them.
func (a *App) check(name string, run func(context.Context) error, kind func(error) string) web.Check {
	return web.Check{Name: name, Run: a.logged(name, "not ready", run, kind)}
}

// logged tells the kind of a trouble only, since whoever asks needs no login. What it is
// stands in the log, once as it begins and as it changes.
func (a *App) logged(name, message string, run func(context.Context) error, kind func(error) string) func(context.Context) error {
	said := "" // a check runs once at a time
	return func(ctx context.Context) error {
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
			a.o.Log.Warn(message, "check", name, "kind", is, "error", err)
		}
		said = is
		return errors.New(is)
	}
}
