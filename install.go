// The commands that change an installation: its schema, settings, orders and keys.

package main

import (
	"context"
	"fmt"
	"os"

	"backstop/internal/app"
	"backstop/internal/apply"
	"backstop/internal/config"
	"backstop/internal/egress"
	"backstop/internal/ledger"
	"backstop/internal/notify"
	"backstop/internal/settings"
	"backstop/internal/takeover"
)

// applyEnv is what apply and reseal work with.
func applyEnv(ctx context.Context, c config.Config, std streams) (apply.Env, func() error, error) {
	d, err := open(ctx, c)
	if err != nil {
		return apply.Env{}, nil, err
	}
	keys, err := app.Keys(c)
	if err == nil {
		err = settings.CheckKeys(ctx, d, keys)
	}
	if err != nil {
		d.Close()
		return apply.Env{}, nil, err
	}
	schedule, err := notify.ParseSchedule(c.NotifySchedule)
	if err != nil {
		d.Close()
		return apply.Env{}, nil, fmt.Errorf("%w: BACKSTOP_NOTIFY_SCHEDULE: %w", app.ErrUsage, err)
	}
	return apply.Env{
		DB: d, Keys: keys, Kinds: app.Kinds(), Ledger: ledger.New(d),
		CheckURL: egress.NewRules(c.NotifyAllowCIDRs).CheckURL, Channels: app.Targets(), Credentials: app.Credentials(), Out: std.out,
		Defaults: apply.Defaults{Schedule: schedule, Timeout: c.NotifyTimeout, MaxInFlight: c.NotifyMaxInFlight},
	}, d.Close, nil
}

type applyCmd struct {
	File string `arg:"" help:"The YAML file." type:"path"`
}

func (a *applyCmd) Run(ctx context.Context, g *globals, std streams) error {
	file, err := apply.ReadFile(a.File)
	if err != nil {
		return err
	}
	c, err := g.load()
	if err != nil {
		return err
	}
	env, done, err := applyEnv(ctx, c, std)
	if err != nil {
		return err
	}
	defer done()
	return apply.Apply(ctx, env, file)
}

type importCmd struct {
	Orders struct {
		File string `arg:"" help:"One JSON object a line." type:"path"`
	} `cmd:"" help:"Orders in flight."`
}

func (i *importCmd) Run(ctx context.Context, g *globals, std streams) error {
	file, err := os.Open(i.Orders.File)
	if err != nil {
		return fmt.Errorf("read the file to import: %w", err)
	}
	defer file.Close()
	c, err := g.load()
	if err != nil {
		return err
	}
	d, err := open(ctx, c)
	if err != nil {
		return err
	}
	defer d.Close()
	n, err := takeover.Import(ctx, takeover.Env{
		DB: d, CheckURL: egress.NewRules(c.NotifyAllowCIDRs).CheckURL, ClosingGrace: c.ClosingGrace,
		Progress: func(p takeover.Progress) { progress(std.err, "%s: %d lines", p.Step, p.Lines) },
	}, i.Orders.File, file)
	if err == nil {
		fmt.Fprintf(std.out, "%d orders imported\n", n)
	}
	return err
}

type resealCmd struct{}

func (*resealCmd) Run(ctx context.Context, g *globals, std streams) error {
	c, err := g.load()
	if err != nil {
		return err
	}
	env, done, err := applyEnv(ctx, c, std)
	if err != nil {
		return err
	}
	defer done()
	n, err := apply.Reseal(ctx, env, func(looked int) {
		if looked%1000 == 0 {
			progress(std.err, "%d rows", looked)
		}
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(std.out, "%d rows sealed again\n", n)
	return nil
}
