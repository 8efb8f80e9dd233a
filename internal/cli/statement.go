package cli

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/money"
	"backstop/internal/fund"
)

type statementCmd struct {
	Merchant string `arg:"" help:"The merchant's code."`
	Day      string `help:"The day, such as 2026-11-21, in BACKSTOP_TIMEZONE." required:"" placeholder:"DAY"`
	Currency string `help:"One currency; all by default." placeholder:"CODE"`
	CSV      bool   `name:"csv" help:"Write comma-separated values, amounts in minor units."`
}

// statementPage is how many lines are read at a time.
const statementPage = 1000

func (cmd *statementCmd) Run(ctx context.Context, g *globals, std streams) error {
	c, err := g.load()
	if err != nil {
		return err
	}
	from, to, err := fund.Day(cmd.Day, c.Timezone)
	if err != nil {
		return usageError{fmt.Errorf("--day: %w", err)}
	}
	d, err := openReadOnly(ctx, c)
	if err != nil {
		return err
	}
	defer d.Close()
	var known int
	if err := d.Read.NewRaw("SELECT count(*) FROM merchants WHERE code = ?", cmd.Merchant).Scan(ctx, &known); err != nil {
		return err
	}
	if known == 0 {
		return &act.FieldError{Field: "merchant", Problem: fmt.Sprintf("there is no merchant %q", cmd.Merchant)}
	}
	currencies := []string{cmd.Currency}
	if cmd.Currency == "" {
		currencies = currencies[:0]
		all, err := fund.Balances(ctx, d, cmd.Merchant)
		if err != nil {
			return err
		}
		for _, b := range all {
			currencies = append(currencies, b.Currency)
		}
	} else if _, err := money.Exponent(cmd.Currency); err != nil {
		return usageError{fmt.Errorf("--currency: %w", err)}
	}
	out := statementWriter(textStatement(std.out, c.Timezone))
	if cmd.CSV {
		if out, err = csvStatement(std.out, c.Timezone); err != nil {
			return fmt.Errorf("write the statement: %w", err)
		}
	}
	if len(currencies) == 0 && !cmd.CSV {
		fmt.Fprintf(std.out, "%s has no account yet\n", cmd.Merchant)
	}
	for _, currency := range currencies {
		if err := writeStatement(ctx, d, cmd.Merchant, currency, from, to, out); err != nil {
			return err
		}
	}
	return nil
}

// statementWriter writes a statement: its head with the first page, and its lines.
type statementWriter func(s fund.Statement, first bool) error

func writeStatement(ctx context.Context, d *db.DB, merchant, currency string, from, to time.Time, out statementWriter) error {
	for after, first := int64(0), true; first || after != 0; first = false {
		s, err := fund.StatementOf(ctx, d, merchant, currency, from, to, after, statementPage)
		if err != nil {
			return err
		}
		after = s.Next
		if err := out(s, first); err != nil {
			return fmt.Errorf("write the statement: %w", err)
		}
	}
	return nil
}

func textStatement(w io.Writer, zone *time.Location) statementWriter {
	return func(s fund.Statement, first bool) error {
		sum := func(minor int64) string { return money.Format(minor, s.Currency) }
		if first {
			fmt.Fprintf(w, "%s: opening %s, credits %s, debits %s, closing %s\n", s.Currency, sum(s.Opening), sum(s.Credits), sum(s.Debits),
				sum(s.Closing))
		}
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		for _, i := range s.Items {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t\n", time.UnixMicro(i.At).In(zone).Format(time.TimeOnly), i.Kind, i.OrderNo, i.Ref,
				sum(i.Amount), sum(i.Balance))
		}
		return table.Flush()
	}
}

// csvStatement writes the names of the columns, also where no lines follow.
func csvStatement(w io.Writer, zone *time.Location) (statementWriter, error) {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"at", "kind", "order_no", "ref", "currency", "amount", "fee", "balance"})
	out.Flush()
	return func(s fund.Statement, _ bool) error {
		for _, i := range s.Items {
			_ = out.Write([]string{
				time.UnixMicro(i.At).In(zone).Format(time.RFC3339), string(i.Kind), i.OrderNo, i.Ref, s.Currency,
				strconv.FormatInt(i.Amount, 10), strconv.FormatInt(i.Fee, 10), strconv.FormatInt(i.Balance, 10),
			})
		}
		out.Flush()
		return out.Error()
	}, out.Error()
}
