// The commands that change an installation: its schema, settings, orders and keys.

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"backstop/internal/app"
	"backstop/internal/audit"
	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/internal/base/egress"
	"backstop/internal/base/seal"
	"backstop/internal/command/importer"
	"backstop/internal/comparison"
	"backstop/internal/settings"
	"backstop/internal/settings/apply"
)

// useKeys is how a command opens the master keys.
type useKeys func(context.Context, config.Config, *db.DB, streams) (*seal.Keyring, error)

// keysToApply opens the master keys for a command that seals secrets: under the key in use.
func keysToApply(ctx context.Context, c config.Config, d *db.DB, std streams) (*seal.Keyring, error) {
	keys, err := app.Keys(ctx, c, d, std.err)
	if err != nil {
		return nil, err
	}
	return settings.UseKeys(ctx, d, keys)
}

// keysToReseal opens the master keys for reseal, which seals everything under the first one.
func keysToReseal(ctx context.Context, c config.Config, d *db.DB, std streams) (*seal.Keyring, error) {
	return app.Keys(ctx, c, d, std.err)
}

// applyEnv opens the environment of apply and reseal.
func applyEnv(ctx context.Context, c config.Config, std streams, use useKeys) (apply.Env, func() error, error) {
	d, keys, err := openWithKeys(ctx, c, std, use)
	if err != nil {
		return apply.Env{}, nil, err
	}
	return newApplyEnv(c, d, keys, std)
}

// readEnv is applyEnv for commands that write nothing. With an empty keyring it opens no
// secrets.
func readEnv(ctx context.Context, c config.Config, std streams, keys *seal.Keyring) (apply.Env, func() error, error) {
	d, err := openReadOnly(ctx, c)
	if err != nil {
		return apply.Env{}, nil, err
	}
	return newApplyEnv(c, d, keys, std)
}

func newApplyEnv(c config.Config, d *db.DB, keys *seal.Keyring, std streams) (apply.Env, func() error, error) {
	env, err := app.Applies(c, d, keys)
	if err != nil {
		d.Close()
		return apply.Env{}, nil, err
	}
	env.Out = std.out
	return env, d.Close, nil
}

type applyCmd struct {
	File   string        `arg:"" help:"The YAML file; - = standard input." type:"path"`
	DryRun bool          `xor:"how" help:"Only print what would change, with the old and new value of each field; exit 3 if anything would."`
	Force  bool          `xor:"how" help:"Also write entries that have not changed."`
	Wait   time.Duration `default:"10s" help:"How long to wait until all running servers use the change; 0 = do not wait." placeholder:"TIME"`
}

func (a *applyCmd) Run(ctx context.Context, g *globals, std streams) error {
	if a.Wait < 0 {
		return fmt.Errorf("%w: --wait must not be negative", app.ErrUsage)
	}
	file, err := readDeclaration(a.File, std.in)
	if err != nil {
		return a.badInput(err)
	}
	c, err := g.load()
	if err != nil {
		return err
	}
	if a.DryRun {
		return a.dryRun(ctx, c, std, file)
	}
	env, done, err := applyEnv(ctx, c, std, keysToApply)
	if err != nil {
		return err
	}
	defer done()
	env.Force, env.Token = a.Force, c.OperatorToken.Reveal()
	if err := apply.Apply(ctx, env, file); err != nil || a.Wait == 0 {
		return err
	}
	return apply.Await(ctx, env.DB, file, a.Wait, std.out, std.err)
}

// badInput gives a dry run exit code 2 for an invalid file, since 1 means that the comparison
// failed.
func (a *applyCmd) badInput(err error) error {
	if a.DryRun {
		return usageError{err}
	}
	return err
}

func (a *applyCmd) dryRun(ctx context.Context, c config.Config, std streams, file apply.File) error {
	if err := app.NeedKeys(c); err != nil {
		return err
	}
	keys, err := app.KeysToRead(c)
	if err != nil {
		return err
	}
	env, done, err := readEnv(ctx, c, std, keys)
	if err != nil {
		return err
	}
	defer done()
	if err := settings.CheckKeys(ctx, env.DB, keys); err != nil {
		return err
	}
	differs, err := apply.DryRun(ctx, env, file)
	var wrong *apply.Invalid
	switch {
	case errors.As(err, &wrong):
		return a.badInput(err)
	case err == nil && differs:
		return errDifferent
	}
	return err
}

type exportCmd struct{}

func (*exportCmd) Run(ctx context.Context, g *globals, std streams) error {
	c, err := g.load()
	if err != nil {
		return err
	}
	env, done, err := readEnv(ctx, c, std, new(seal.Keyring))
	if err != nil {
		return err
	}
	defer done()
	return apply.Export(ctx, env, std.out)
}

func readDeclaration(path string, in io.Reader) (apply.File, error) {
	if path == "-" {
		return apply.Read("standard input", ".", in)
	}
	return apply.ReadFile(path)
}

type importCmd struct {
	Orders   importOrdersCmd   `cmd:"" help:"Import open and recent orders."`
	Outcomes importOutcomesCmd `cmd:"" help:"Compare the orders of another system with those here, for the console's page of comparisons. Exit 1 if one differs."`
}

type importOrdersCmd struct {
	File string `arg:"" help:"A file with one JSON object per line." type:"path"`
}

func (i *importOrdersCmd) Run(ctx context.Context, g *globals, std streams) error {
	file, err := os.Open(i.File)
	if err != nil {
		return fmt.Errorf("read the file to import: %w", err)
	}
	defer file.Close()
	c, err := g.load()
	if err != nil {
		return err
	}
	d, keys, err := openWithKeys(ctx, c, std, keysToApply)
	if err != nil {
		return err
	}
	defer d.Close()
	n, err := importer.Import(ctx, importer.Env{
		DB: d, Audit: audit.New(d, keys), CheckURL: egress.NewRules(c.NotifyAllowCIDRs).CheckURL, ClosingGrace: c.ClosingGrace,
		Progress: func(p importer.Progress) { progress(std.err, "%s: %d lines", p.Step, p.Lines) },
	}, i.File, file)
	if err == nil {
		fmt.Fprintf(std.out, "%d orders imported\n", n)
	}
	return err
}

type importOutcomesCmd struct {
	File string `arg:"" help:"A file as for orders; order_no, status and paid_amount are enough." type:"path"`
	JSON bool   `help:"Write one JSON object per line: each difference, then the counts."`
}

func (i *importOutcomesCmd) Run(ctx context.Context, g *globals, std streams) error {
	file, err := os.Open(i.File)
	if err != nil {
		return fmt.Errorf("read the file to compare: %w", err)
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
	lines := json.NewEncoder(std.out)
	var differences []comparison.Difference
	counts, err := importer.Compare(ctx, d, i.File, file, func(x comparison.Difference) error {
		if len(differences) < comparison.MaxRows {
			differences = append(differences, x)
		}
		if i.JSON {
			return lines.Encode(x)
		}
		_, err := fmt.Fprintf(std.out, "%s: here %s, there %s\n", x.OrderNo, x.Here, x.There)
		return err
	})
	if err != nil {
		return err
	}
	if _, err := comparison.Save(ctx, d, i.File, counts, differences); err != nil {
		return err
	}
	if i.JSON {
		err = lines.Encode(counts)
	} else {
		_, err = fmt.Fprintf(std.out, "%d the same, %d differ, %d only there, %d paid here only\n",
			counts.Same, counts.Differ, counts.OnlyThere, counts.OnlyHere)
	}
	if err == nil && !counts.Agree() {
		return errViolations // they are printed
	}
	return err
}

type resealCmd struct{}

func (*resealCmd) Run(ctx context.Context, g *globals, std streams) error {
	c, err := g.load()
	if err != nil {
		return err
	}
	env, done, err := applyEnv(ctx, c, std, keysToReseal)
	if err != nil {
		return err
	}
	defer done()
	n, err := apply.Reseal(ctx, env, func(rows int) {
		if rows%1000 == 0 {
			progress(std.err, "%d rows", rows)
		}
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(std.out, "%d rows resealed\n", n)
	return nil
}
