package app

import (
	"context"
	"log/slog"

	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/internal/base/seal"
	"backstop/internal/compensation"
	"backstop/internal/settings"
	"backstop/internal/sweep"
)

// Sweeps returns the runner of sweeps, for a server or a command.
func Sweeps(c config.Config, d *db.DB, s *settings.Store, keys *seal.Keyring, log *slog.Logger) *sweep.Runner {
	return sweep.New(sweep.Options{
		DB: d, Settings: s, Schedule: compensation.Schedule(c.CompensateSteps), Keys: keys, Rate: int(c.SweepRate),
		Keep: min(c.RetentionReports, c.RetentionNotifications), Zone: c.Timezone, Log: log,
	})
}

// SweepPlan returns when the nightly sweep begins.
func SweepPlan(c config.Config) sweep.Plan {
	return sweep.Plan{Hour: c.SweepAt.Hour, Minute: c.SweepAt.Minute, Zone: c.Timezone, Days: c.SweepDays}
}

// nudgeSweep wakes a worker to continue the running sweep, best effort and without waiting.
func (a *App) nudgeSweep() {
	go func() {
		if err := a.queue.Sweep(context.Background()); err != nil {
			a.o.Log.Debug("nudge the sweep", "error", err) // the tick finds it
		}
	}()
}
