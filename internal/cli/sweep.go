package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"backstop/internal/app"
	"backstop/internal/audit"
	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/internal/base/egress"
	"backstop/internal/base/seal"
	"backstop/internal/settings"
	"backstop/internal/suppliercall"
	"backstop/internal/sweep"
)

type sweepCmd struct {
	Days   *int `help:"How many days to look back (default: BACKSTOP_SWEEP_DAYS)." placeholder:"N"`
	DryRun bool `help:"Change nothing: print what would be pushed, and what differs."`
}

// sweepLook is how often the command reads the progress of a sweep that a server runs.
const sweepLook = 500 * time.Millisecond

func (cmd *sweepCmd) Run(ctx context.Context, g *globals, std streams) error {
	c, err := g.load()
	if err != nil {
		return err
	}
	if cmd.Days != nil {
		c.SweepDays = *cmd.Days
	}
	if c.SweepDays < sweep.MinDays || c.SweepDays > sweep.MaxDays {
		return usageError{fmt.Errorf("--days: use a number from %d to %d", sweep.MinDays, sweep.MaxDays)}
	}
	run := sweepNow
	if cmd.DryRun {
		run = sweepDry
	}
	s, err := run(ctx, c, std)
	if terminal(std.err) {
		fmt.Fprint(std.err, "\r\x1b[K")
	}
	if err != nil {
		return err
	}
	if err := writeSweep(std.out, s, c.SweepDays, cmd.DryRun); err != nil {
		return err
	}
	switch {
	case s.State == sweep.Stopped:
		return fmt.Errorf("the sweep stopped after six hours: run it again")
	case len(s.Differences()) > 0:
		return errViolations
	}
	return nil
}

// sweeper returns the runner of a command's sweep; done closes its connections.
func sweeper(ctx context.Context, c config.Config, d *db.DB, keys *seal.Keyring) (r *sweep.Runner, done func(), err error) {
	log := slog.New(slog.DiscardHandler)
	store := settings.NewStore(d, app.Kinds(), keys, log)
	out := egress.New(egress.Config{Allow: c.SupplierAllowCIDRs}) // nothing is called
	store.CallThrough(suppliercall.NewClient(out, c.SupplierTimeout))
	if err := store.Refresh(ctx); err != nil {
		out.Close()
		return nil, nil, err
	}
	return app.Sweeps(c, d, store, keys, log), out.Close, nil
}

func sweepDry(ctx context.Context, c config.Config, std streams) (*sweep.Sweep, error) {
	d, err := openReadOnly(ctx, c)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	keys, err := app.KeysToRead(c)
	if err != nil {
		return nil, err
	}
	if keys, err = settings.WithRetired(ctx, d, keys); err != nil {
		return nil, err
	}
	r, done, err := sweeper(ctx, c, d, keys)
	if err != nil {
		return nil, err
	}
	defer done()
	return r.Dry(ctx, c.SweepDays, func(s *sweep.Sweep) { showSweep(std.err, s) })
}

// sweepNow starts a sweep and runs it, or watches a server that runs it. It first completes an
// interrupted sweep if no other process does.
func sweepNow(ctx context.Context, c config.Config, std streams) (*sweep.Sweep, error) {
	d, keys, err := openWithKeys(ctx, c, std, keysToApply)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if keys, err = settings.WithRetired(ctx, d, keys); err != nil {
		return nil, err
	}
	r, done, err := sweeper(ctx, c, d, keys)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := r.Continue(ctx); err != nil {
		return nil, err
	}
	var s *sweep.Sweep
	err = d.Tx(ctx, func(ctx context.Context, tx db.Tx) (err error) {
		if s, err = sweep.Begin(ctx, tx, d, sweep.Request{Days: c.SweepDays, By: audit.Command()}); err != nil {
			return err
		}
		return audit.New(d, keys).Write(ctx, tx, audit.Act{
			Actor: audit.Command(), Action: sweep.RunAct, Object: sweep.ActObject, ObjectID: sweep.Next,
			Params: sweep.Details(s, c.SweepDays),
		})
	})
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	for s.State == sweep.Running {
		go func() { ended <- r.Continue(ctx) }()
		for going := true; going; {
			select {
			case err := <-ended:
				if err != nil {
					return nil, err
				}
				going = false
			case <-time.After(sweepLook):
			}
			if s, err = sweep.Find(ctx, d.Read, s.ID); err != nil {
				return nil, err
			}
			showSweep(std.err, s)
		}
		if s.State == sweep.Running { // another node runs it
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(sweepLook):
			}
		}
	}
	return s, nil
}

func showSweep(w io.Writer, s *sweep.Sweep) {
	if terminal(w) {
		progress(w, "step %d of %d: %d rows checked, %d pushed", s.Step(), s.Steps(), s.LookedAt, s.PushedRows())
	}
}

func writeSweep(w io.Writer, s *sweep.Sweep, days int, dry bool) error {
	would := ""
	if dry {
		would = "would have "
	}
	text := fmt.Sprintf("checked %d rows of the last %d days\n", s.LookedAt, days)
	for _, p := range s.Pushed() {
		text += fmt.Sprintf("%spushed %s: %d\n", would, p.What, p.Count)
	}
	if len(s.Pushed()) == 0 {
		text += "nothing was lost\n"
	}
	for _, x := range s.Differences() {
		text += fmt.Sprintf("difference %s: %s\n", x.What, x.Detail)
	}
	if len(s.Differences()) == 0 {
		text += "the books are in order\n"
	}
	_, err := io.WriteString(w, text)
	return err
}
