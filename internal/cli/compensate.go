package cli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"backstop/internal/act"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/money"
	"backstop/internal/compensation"

	"github.com/alecthomas/kong"
)

// maxListed is how many compensations, the newest, compensate list prints.
const maxListed = 1000

// compensateFilter narrows the compensations of a command.
type compensateFilter struct {
	Kind     string        `help:"resend, replaycall or rerun." placeholder:"K"`
	Cause    string        `help:"Cause, such as supplier_timeout." placeholder:"C"`
	Supplier string        `help:"Code of a supplier." placeholder:"S"`
	Older    time.Duration `help:"Opened longer ago than this, such as 1h." placeholder:"1h"`
}

type compensateCmd struct {
	List struct {
		compensateFilter `embed:""`
	} `cmd:"" help:"List compensations that are waiting, running or dead, newest first."`
	Redrive struct {
		compensateFilter `embed:""`
		Reason           string `required:"" help:"Reason for the audit, at least 8 characters." placeholder:"TEXT"`
	} `cmd:"" help:"Queue dead compensations again, at most 1,000; a running server runs them."`
}

func (cmd *compensateCmd) Run(ctx context.Context, k *kong.Context, g *globals, std streams) error {
	c, err := g.load()
	if err != nil {
		return err
	}
	if k.Selected().Name == "list" {
		d, err := openReadOnly(ctx, c)
		if err != nil {
			return err
		}
		defer d.Close()
		return listCompensations(ctx, d, cmd.List.filter(d), std.out)
	}
	reason, err := act.CheckReason(cmd.Redrive.Reason)
	if err != nil {
		return usageError{err}
	}
	d, keys, err := openWithKeys(ctx, c, std, keysToApply)
	if err != nil {
		return err
	}
	defer d.Close()
	filter := cmd.Redrive.filter(d)
	filter.State = string(compensation.Dead)
	acts := compensation.Acts{DB: d, Schedule: compensation.Schedule(c.CompensateSteps)}
	r := compensation.Redrive{Filter: filter}
	var done compensation.Redriven
	err = d.Tx(ctx, func(ctx context.Context, tx db.Tx) (err error) {
		if done, err = acts.Redrive(ctx, tx, r); err != nil {
			return err
		}
		params := done.Details(r)
		params["reason"] = reason
		return audit.New(d, keys).Write(ctx, tx, audit.Act{
			Actor: audit.Command(), Action: compensation.RedriveAct, Object: compensation.ActObject, ObjectID: compensation.Set,
			Params: params,
		})
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.out, "matched %d, queued %d, skipped %d\n", done.Matched, done.Queued, done.Skipped)
	return err
}

// filter returns the filter in the form of the API.
func (f compensateFilter) filter(d *db.DB) *compensation.Filter {
	all := &compensation.Filter{Kind: f.Kind, Cause: f.Cause, Supplier: f.Supplier}
	if f.Older > 0 {
		all.To = time.UnixMicro(d.Now()).Add(-f.Older).UTC().Format(time.RFC3339)
	}
	return all
}

func listCompensations(ctx context.Context, d *db.DB, f *compensation.Filter, out io.Writer) error {
	rows, err := compensation.List(ctx, d.Read, f, maxListed+1)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, x := range rows[:min(len(rows), maxListed)] {
		amount := "-"
		if x.Currency != "" {
			amount = money.Format(x.Amount, x.Currency) + " " + x.Currency
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%d/%d\t%s\t%s\n", x.ID, x.State, x.Kind, x.Cause, orDash(x.OrderNo), x.Attempts, x.MaxAttempts,
			amount, moment(&x.OpenedAt))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(rows) > maxListed {
		fmt.Fprintf(out, "only the newest %d are shown: narrow the filter to see others\n", maxListed)
	}
	return nil
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
