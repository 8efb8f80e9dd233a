package fund_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/invalid"
	"backstop/internal/base/waittest"
	"backstop/internal/fund"
	"backstop/internal/ledger"
	"backstop/internal/ledger/fact"
)

// monthEntries are entries of every kind about a merchant; n tells them apart from earlier ones.
func monthEntries(merchant, currency string, n int) (all fact.Entries) {
	add := func(f fact.Name, amount int64, from, to string) {
		n++
		all.Add(f, fact.Values{
			Supplier: "s", Merchant: merchant, ID: fmt.Sprint(merchant, currency, n), From: from, To: to, Amount: amount, Currency: currency,
		})
	}
	own := "merchant:" + merchant
	add(fact.Paid, 10_000, "supplier:s", "")
	add(fact.Paid, 5_000, "supplier:s", "")
	add(fact.Fee, 120, "", "")
	add(fact.Cost, 60, "", "")
	add(fact.RefundHeld, 700, own, "")
	add(fact.RefundBack, 200, "", own)
	add(fact.RefundFee, 3, "", "")
	add(fact.RefundFeeAgain, 3, "", "")
	add(fact.PayoutDebit, 4_000, "", "")
	add(fact.PayoutReversal, 1_000, "", "")
	add(fact.DisputeHeld, 900, "", "")
	add(fact.DisputeReleased, 300, "", "")
	add(fact.DisputeFee, 15, own, "")
	add(fact.Freeze, 250, "", "")
	add(fact.Unfreeze, 50, "", "")
	add(fact.Adjust, 77, "loss", own)
	return all
}

// monthSQL are the movements of a merchant's account by the references of their entries.
var monthSQL = map[string]string{
	"payments": "t.ref LIKE 'paid:%'",
	"fees": "t.ref LIKE 'fee:%' OR t.ref LIKE 'refund:%:F' OR t.ref LIKE 'refund:%:FR' OR t.ref LIKE 'dispute:%:F'" +
		" OR t.ref LIKE 'payout:%:F'",
	"refunds":  "t.ref LIKE 'refund:%:D' OR t.ref LIKE 'refund:%:R'",
	"payouts":  "t.ref LIKE 'payout:%:D' OR t.ref LIKE 'payout:%:R'",
	"disputes": "t.ref LIKE 'dispute:%:H' OR t.ref LIKE 'dispute:%:U'",
	"other":    "t.ref LIKE 'freeze:%' OR t.ref LIKE 'adjust:%'",
}

// The statements of two months follow each other, and agree with the entries: folded or not.
func TestMonthsFollowEachOtherAndAgreeWithTheLedger(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		book := ledger.New(d)
		post := func(entries fact.Entries) {
			t.Helper()
			if err := d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
				w := tx.Writes()
				if err := book.Post(ctx, tx, w, entries); err != nil {
					return err
				}
				return w.Exec(ctx)
			}); err != nil {
				t.Fatal(err)
			}
		}
		fold := func() {
			t.Helper()
			if _, err := book.Fold(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		start := time.UnixMicro(d.Now()).Add(-time.Minute)
		post(slices.Concat(monthEntries("m1", "CNY", 0), monthEntries("m2", "CNY", 0)))
		fold()
		post(monthEntries("m1", "USD", 0))
		middle := time.UnixMicro(d.Now() + 1000)
		waittest.Until(t, "the next ids are of a later moment", func() bool { return d.Now() >= middle.UnixMicro() })
		post(slices.Concat(monthEntries("m1", "CNY", 100), monthEntries("m3", "JPY", 0)))
		end := time.UnixMicro(d.Now()).Add(time.Minute)
		m := months{t: t, d: d, start: start, middle: middle, end: end}
		before := m.agree()
		fold()
		fold()
		if after := m.agree(); !slices.Equal(before, after) {
			t.Errorf("folding changes the statements: %+v\n%+v", before, after)
		}
	})
}

type months struct {
	t                  *testing.T
	d                  *db.DB
	start, middle, end time.Time
}

func (m months) read(merchant string, from, to time.Time) []fund.Month {
	m.t.Helper()
	all, err := fund.Months(m.t.Context(), m.d, merchant, from, to)
	if err != nil {
		m.t.Fatal(err)
	}
	return all
}

func (m months) sql(query string, args ...any) (x fund.Movement) {
	m.t.Helper()
	if err := m.d.Read.NewRaw("SELECT count(*) AS count, CAST(coalesce(sum(CASE WHEN t.credit_account = a.id THEN t.amount ELSE -t.amount END), 0) AS BIGINT) AS minor"+
		" FROM transfers AS t JOIN accounts AS a ON a.id IN (t.debit_account, t.credit_account) WHERE "+query, args...).Scan(m.t.Context(),
		&x); err != nil {
		m.t.Fatal(err)
	}
	return x
}

// agree compares the statements with SQL of its own, and returns those of the second month.
func (m months) agree() []fund.Month {
	m.t.Helper()
	first, second := m.read("", m.start, m.middle), m.read("", m.middle, m.end)
	if len(first) != 4 || len(second) != 4 { // accounts without an entry yet have a statement of zeros
		m.t.Fatalf("%d and %d statements", len(first), len(second))
	}
	payable := map[string]int64{}
	for i, x := range second {
		if first[i].Merchant != x.Merchant || first[i].Currency != x.Currency || first[i].Closing != x.Opening {
			m.t.Errorf("%+v is followed by %+v", first[i], x)
		}
		m.compare(first[i], m.start, m.middle)
		m.compare(x, m.middle, m.end)
		payable[x.Currency] += x.Payable()
		if own := m.read(x.Merchant, m.middle, m.end); !slices.Contains(own, x) || strings.Contains(fmt.Sprint(own), "m2") != (x.Merchant == "m2") {
			m.t.Errorf("alone, %s has %+v", x.Merchant, own)
		}
	}
	for currency, minor := range payable {
		if want := m.sql("a.code LIKE 'merchant:%' AND a.currency = ?", currency); minor != want.Minor || minor == 0 {
			m.t.Errorf("all merchants have %d %s, the ledger owes %d", minor, currency, want.Minor)
		}
	}
	return second
}

func (m months) compare(x fund.Month, from, to time.Time) {
	m.t.Helper()
	got := map[string]fund.Movement{
		"payments": x.Payments, "fees": x.Fees, "refunds": x.Refunds, "payouts": x.Payouts, "disputes": x.Disputes, "other": x.Other,
	}
	sum := x.Opening
	for name, where := range monthSQL {
		want := m.sql("a.code = ? AND a.currency = ? AND t.created_at >= ? AND t.created_at < ? AND ("+where+")", "merchant:"+x.Merchant,
			x.Currency, from.UnixMicro(), to.UnixMicro())
		if sum += got[name].Minor; got[name] != want {
			m.t.Errorf("%s of %s %s: %+v, the entries have %+v", name, x.Merchant, x.Currency, got[name], want)
		}
	}
	if sum != x.Closing {
		m.t.Errorf("%+v closes with %d", x, sum)
	}
}

// The kind of each entry is the same in SQL.
func TestKindsAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for _, row := range fact.Table {
			ref := fact.Ref(row.Fact, fact.Values{Merchant: "m1", ID: "1:a", Currency: "CNY"})
			var kind fact.Kind
			if err := d.Read.NewRaw("SELECT "+fact.KindSQL+" FROM (SELECT CAST(? AS TEXT) AS ref) AS t", ref).Scan(t.Context(), &kind); err != nil {
				t.Fatal(err)
			}
			if of, _, _ := fact.Of(ref, false); kind != of.Kind {
				t.Errorf("%s is %q in SQL, %q in the table", ref, kind, of.Kind)
			}
		}
	})
}

func TestMonthsWithoutAStatementSayWhichToChoose(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	first, now := time.Date(2026, 9, 30, 17, 0, 0, 0, time.UTC), time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC) // October in Shanghai
	for month, want := range map[string]string{
		"2026-13": "use a month such as 2026-11", "x": "use a month such as 2026-11", "2026-1": "use a month such as 2026-11",
		"2026-12": "2026-12 has not begun: choose 2026-11 or an earlier month",
		"2026-09": "nothing was booked in 2026-09: choose 2026-10, the month of the first entry, or a later one",
		"2026-10": "", "2026-11": "", "": "",
	} {
		_, _, err := fund.MonthSpan(month, zone, first, now)
		got, problem := "", (*invalid.FieldError)(nil)
		if errors.As(err, &problem) {
			got = problem.Problem
		}
		if got != want || (err != nil) != (want != "") {
			t.Errorf("%q: %v, want %q", month, err, want)
		}
	}
	from, to, err := fund.MonthSpan("", zone, first, now)
	if err != nil || from.Format(time.RFC3339) != "2026-11-01T00:00:00+08:00" || to.Format(time.RFC3339) != "2026-12-01T00:00:00+08:00" {
		t.Errorf("this month is %s to %s, %v", from, to, err)
	}
}
