package cli

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/ledger"
	"backstop/internal/ledger/fact"
)

const statementFile = `
merchants:
  - { code: m1, signing_secret: whsec_QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE= }
  - { code: m2, signing_secret: whsec_QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE= }
accounts:
  - { merchant: m1, currency: CNY, balance: 100000 }
  - { merchant: m1, currency: JPY, balance: 700 }
`

func TestAStatementIsPrintedByCommand(t *testing.T) {
	for _, address := range []string{"", dbtest.PostgresMigratedURL(t)} {
		t.Run(map[bool]string{true: "sqlite", false: "postgres"}[address == ""], func(t *testing.T) {
			t.Setenv("BACKSTOP_DATABASE_URL", address)
			t.Setenv("BACKSTOP_TIMEZONE", "Asia/Shanghai")
			folder := install(t)
			if address != "" {
				t.Setenv("BACKSTOP_MASTER_KEY_FILE", filepath.Join(folder, "master.key"))
			}
			file := filepath.Join(folder, "settings.yaml")
			if err := os.WriteFile(file, []byte(statementFile), 0o600); err != nil {
				t.Fatal(err)
			}
			if code, _, stderr := backstop(t.Context(), "apply", file); code != exitDone {
				t.Fatal(stderr)
			}
			c, err := config.Load(config.Source{Environ: os.Environ()})
			if err != nil {
				t.Fatal(err)
			}
			d, err := open(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			start := d.Now()
			book(t, d)
			at := time.UnixMicro(start).In(c.Timezone)
			day := at.Format(time.DateOnly)
			if time.UnixMicro(d.Now()).In(c.Timezone).Format(time.DateOnly) != day {
				t.Skip("midnight has just passed")
			}

			code, out, stderr := backstop(t.Context(), "statement", "m1", "--day", day)
			for _, want := range []string{
				"CNY: opening 0.00, credits 1019.99, debits 10.12, closing 1009.87\n",
				"JPY: opening 0, credits 700, debits 0, closing 700\n",
				"payment  ORD-7", " 19.99  1019.99", "fee  ORD-7", " -0.12  1019.87", "refund  ORD-7", " -10.00  1009.87",
			} {
				if code != exitDone || stderr != "" || !strings.Contains(out, want) {
					t.Errorf("exit %d, %q misses %q in\n%s", code, stderr, want, out)
				}
			}
			code, out, stderr = backstop(t.Context(), "statement", "m1", "--day", day, "--csv", "--currency", "CNY")
			rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
			if code != exitDone || err != nil || len(rows) != 5 {
				t.Fatalf("exit %d, %q, %v\n%s", code, stderr, err, out)
			}
			for i, want := range [][]string{
				{"at", "kind", "order_no", "ref", "currency", "amount", "fee", "balance"},
				{"opening", "", "opening:m1:CNY", "CNY", "100000", "0", "100000"},
				{"payment", "ORD-7", "paid:7", "CNY", "1999", "12", "101999"},
				{"fee", "ORD-7", "fee:7", "CNY", "-12", "0", "101987"},
				{"refund", "ORD-7", "refund:9:D", "CNY", "-1000", "0", "100987"},
			} {
				is := rows[i]
				if i > 0 {
					if when, err := time.Parse(time.RFC3339, is[0]); err != nil || when.Format(time.DateOnly) != day {
						t.Errorf("line %d is of %q, %v", i, is[0], err)
					}
					is = is[1:]
				}
				if !slices.Equal(is, want) {
					t.Errorf("line %d is %q, want %q", i, is, want)
				}
			}
			// The day after begins with what this one left.
			next := at.AddDate(0, 0, 1).Format(time.DateOnly)
			if _, out, _ := backstop(t.Context(), "statement", "m1", "--day", next, "--currency",
				"CNY"); out != "CNY: opening 1009.87, credits 0.00, debits 0.00, closing 1009.87\n" {
				t.Errorf("the next day: %q", out)
			}
			for _, far := range []string{"0001-01-01", "1999-12-31"} {
				if _, out, _ := backstop(t.Context(), "statement", "m1", "--day", far, "--currency",
					"CNY"); out != "CNY: opening 0.00, credits 0.00, debits 0.00, closing 0.00\n" {
					t.Errorf("%s: %q", far, out)
				}
			}
			if _, out, _ := backstop(t.Context(), "statement", "m1", "--day", "9999-12-31", "--currency",
				"CNY"); out != "CNY: opening 1009.87, credits 0.00, debits 0.00, closing 1009.87\n" {
				t.Errorf("the last day: %q", out)
			}
			// A merchant without an account.
			if code, out, _ := backstop(t.Context(), "statement", "m2", "--day", day); code != exitDone ||
				out != "m2 has no account yet\n" {
				t.Errorf("no account: %d %q", code, out)
			}
			if code, out, _ := backstop(t.Context(), "statement", "m2", "--day", day, "--csv"); code != exitDone ||
				out != "at,kind,order_no,ref,currency,amount,fee,balance\n" {
				t.Errorf("no account, as csv: %d %q", code, out)
			}
			for args, want := range map[string]string{
				"statement m1": "--day", "statement m1 --day yesterday": "--day: use a date such as",
				"statement m1 --day 2026-02-30":                 "--day: use a date such as",
				"statement m1 --day " + day + " --currency XXX": "--currency: unknown currency", "statement": "--day",
				"statement nobody --day " + day: `there is no merchant "nobody"`,
			} {
				if code, out, stderr := backstop(t.Context(), strings.Fields(args)...); code == exitDone || out != "" ||
					!strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
					t.Errorf("%s: exit %d, %q, %q", args, code, out, stderr)
				}
			}
		})
	}
}

// book books an order of 19.99 with a fee of 0.12, and a refund of 10.00, and folds them.
func book(t *testing.T, d *db.DB) {
	t.Helper()
	if _, err := d.NewRaw(
		"INSERT INTO orders (id, order_no, merchant_id, out_trade_no, supplier_id, amount, currency, exponent, subject, request_digest, status, version, created_at, expires_at)" +
			" VALUES (7, 'ORD-7', 1, 'o', 1, 1999, 'CNY', 2, '', '', 'paid', 2, 0, 0)").Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := d.NewRaw(
		"INSERT INTO refunds (id, refund_no, order_id, order_no, supplier_id, account_id, supplier_ref, trade_no, trade_amount, merchant_id, amount, currency, status, created_at)" +
			" VALUES (9, 'R9', 7, 'ORD-7', 1, 1, 'ORD-7', 'T', 1999, 1, 1000, 'CNY', 'submitted', 0)").Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	book := ledger.New(d)
	v := fact.Values{Supplier: "wx", Merchant: "m1", ID: "7", From: "supplier:wx", Currency: "CNY"}
	for _, e := range []struct {
		fact   fact.Name
		amount int64
	}{{fact.Paid, 1999}, {fact.Fee, 12}, {fact.RefundHeld, 1000}} {
		if v.Amount = e.amount; e.fact == fact.RefundHeld {
			v.ID, v.From = "9", "merchant:m1"
		}
		err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			w := tx.Writes()
			if err := book.Post(ctx, tx, w, fact.Entries{fact.Entry(e.fact, v)}); err != nil {
				return err
			}
			return w.Exec(ctx)
		})
		if err != nil {
			t.Fatal(fmt.Errorf("%s: %w", e.fact, err))
		}
	}
	for {
		n, err := book.Fold(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}
