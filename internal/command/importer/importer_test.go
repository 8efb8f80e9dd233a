package importer_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal/sealtest"
	"backstop/internal/command/importer"
	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/payment/paymenttest"
	"backstop/internal/settings/apply"
	"backstop/internal/verify"
)

func each(t *testing.T, test func(t *testing.T, f *paymenttest.Fixture)) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) { test(t, paymenttest.New(t, d, paymenttest.Options{})) })
}

func env(t *testing.T, d *db.DB) importer.Env {
	t.Helper()
	return importer.Env{DB: d, Audit: audit.New(d, sealtest.Ring(t, 1)), ClosingGrace: 15 * time.Minute, CheckURL: func(u string) error {
		if !strings.HasPrefix(u, "https://") {
			return errors.New("only https is reached")
		}
		return nil
	}}
}

func lines(all ...string) io.Reader { return strings.NewReader(strings.Join(all, "\n")) }

// entry returns a line with the required fields and more.
func entry(no, status, more string) string {
	if more != "" {
		more = ", " + more
	}
	return fmt.Sprintf(`{"order_no": %q, "merchant": "m1", "supplier": "sp-main", "amount": 1999, "currency": "CNY", "status": %q%s}`, no,
		status, more)
}

func mustImport(t *testing.T, f *paymenttest.Fixture, want int, all ...string) {
	t.Helper()
	n, err := importer.Import(t.Context(), env(t, f.DB), "orders.jsonl", lines(all...))
	if err != nil || n != want {
		t.Fatalf("import = %d, %v, want %d", n, err, want)
	}
	f.Want(t, 0, "SELECT count(*) FROM import_orders")
	f.Want(t, 0, "SELECT count(*) FROM import_runs")
}

func byNo(t *testing.T, f *paymenttest.Fixture, no string) *order.Order {
	t.Helper()
	o, err := order.ByNo(t.Context(), f.DB, no)
	if err != nil {
		t.Fatalf("order %s: %v", no, err)
	}
	return o
}

func booksInOrder(t *testing.T, f *paymenttest.Fixture) {
	t.Helper()
	report, err := verify.Run(t.Context(), f.DB, sealtest.Ring(t, 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK() {
		var b strings.Builder
		_ = report.WriteText(&b)
		t.Error(b.String())
	}
}

func TestAByteOrderMarkIsNoPartOfTheFirstLine(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *paymenttest.Fixture) {
		mustImport(t, f, 2, "\ufeff"+entry("A-1", "pending", ""), entry("A-2", "pending", ""))
		if _, err := importer.Import(t.Context(), env(t, f.DB), "x", lines(entry("A-3", "pending", ""),
			"\ufeff"+entry("A-4", "pending", ""))); err == nil {
			t.Error("a mark inside of the file is accepted")
		}
	})
}

// The callback came before its order was imported: what was open about the payment ends, and the
// money that was held for it leaves suspense, since the other system has booked it.
func TestAnImportEndsWhatIsOpenAboutItsPayments(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *paymenttest.Fixture) {
		out, err := f.Processor.Submit(t.Context(), f.Callback("A-1", "T-1", 1999))
		if err != nil || out.Name != exception.UnknownOrder {
			t.Fatalf("%+v, %v", out, err)
		}
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE held_ref <> ''")
		mustImport(t, f, 1, entry("A-1", "paid", `"supplier_trade_no": "T-1"`))
		f.Want(t, 1, "SELECT count(*) FROM exceptions WHERE state = 'resolved' AND outcome = 'paid' AND reference = 'A-1' AND held_ref = ''")
		booksInOrder(t, f)
		out, err = f.Processor.Submit(t.Context(), f.Callback("A-1", "T-1", 1999))
		if err != nil || out.Name != payment.Repeat {
			t.Errorf("%+v, %v", out, err)
		}
		f.Want(t, 0, "SELECT count(*) FROM exceptions WHERE state <> 'resolved'")
		booksInOrder(t, f)
	})
}

func TestEveryStatusIsTakenOverAsItStands(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *paymenttest.Fixture) {
		before := f.DB.Now()
		mustImport(t, f, 7,
			entry("A-1", "pending",
				`"expires_at": "2099-01-31T08:00:00+08:00", "created_at": "2026-01-31T08:00:00Z", "subject": "茶", "notify_url": "https://b.example"`),
			entry("A-2", "paying", `"out_trade_no": "mine-2", "notify_status": "none", "paid_amount": null, "paid_at": null, "items": []`),
			"", entry("A-3", "closing", ""),
			entry("A-4", "paid", `"supplier_trade_no": "T-4", "paid_amount": 1998, "paid_at": "2026-02-01T00:00:00.5Z", "version": 3`),
			entry("A-5", "paid", ""), entry("A-6", "failed", ""),
			entry("A-7", "closed", `"close_reason": "timeout", "closed_at": "2026-02-01T00:00:00Z"`), "")

		o := byNo(t, f, "A-1")
		if o.Status != order.Pending || o.OutTradeNo != "A-1" || o.Version != 1 || o.Subject != "茶" || o.NotifyURL != "https://b.example" ||
			o.ExpiresAt != time.Date(2099, 1, 31, 0, 0, 0, 0, time.UTC).UnixMicro() || o.NextAt == nil || *o.NextAt != o.ExpiresAt ||
			o.Exponent != 2 {
			t.Errorf("pending: %+v", o)
		}
		if o := byNo(t, f, "A-2"); o.OutTradeNo != "mine-2" || o.NextAt == nil || *o.NextAt != o.ExpiresAt || o.ExpiresAt < before+
			29*60*1e6 || o.ExpiresAt > f.DB.Now()+30*60*1e6 {
			t.Errorf("paying: %+v", o)
		}
		if o := byNo(t, f, "A-3"); o.NextAt == nil || *o.NextAt < before+15*60*1e6 || o.CloseReason != "imported" {
			t.Errorf("closing must wait for money like ours: %+v", o)
		}
		o = byNo(t, f, "A-4")
		if o.Version != 3 || o.PaidAmount != 1998 || o.PaidAt == nil || *o.PaidAt != time.Date(2026, 2, 1, 0, 0, 0, 5e8,
			time.UTC).UnixMicro() || o.NextAt != nil || o.SupplierTradeNo != "T-4" {
			t.Errorf("paid: %+v", o)
		}
		if o := byNo(t, f, "A-5"); o.PaidAmount != 1999 || o.PaidAt == nil {
			t.Errorf("paid without more: %+v", o)
		}
		if o := byNo(t, f, "A-7"); o.ClosedAt == nil || o.CloseReason != "timeout" || o.NextAt != nil {
			t.Errorf("closed: %+v", o)
		}
		f.Want(t, 7,
			"SELECT count(*) FROM order_history h JOIN orders o ON o.id = h.order_id AND o.version = h.version AND o.status = h.to_status WHERE h.cause = 'imported' AND h.from_status = ''")
		for status, n := range map[string]int64{"submitted": 2, "succeeded": 2, "failed": 1, "closed": 0} {
			f.Want(t, n, "SELECT count(*) FROM payment_attempts WHERE status = ?", status)
		}
		f.Want(t, 0, "SELECT count(*) FROM transfers")
		f.Want(t, 0, "SELECT count(*) FROM deliveries")
		booksInOrder(t, f)
	})
}

func TestOrdersTakenOverGoOnLikeOurs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *paymenttest.Fixture) {
		mustImport(t, f, 5, entry("pays", "pending", ""), entry("started", "paying", `"supplier_trade_no": "T-2"`),
			entry("over", "pending", `"created_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-01T00:30:00Z"`),
			entry("late", "paying", `"created_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-01T00:30:00Z"`),
			entry("paid", "paid", `"supplier_trade_no": "T-paid"`))
		for _, c := range []struct{ no, trade, want string }{
			{"pays", "T-1", payment.Paid},
			{"started", "T-2", payment.Paid},
			{"paid", "T-paid", payment.Repeat},
			{"paid", "T-again", exception.DuplicatePayment},
		} {
			out, err := f.Processor.Submit(t.Context(), f.Callback(c.no, c.trade, 1999))
			if err != nil || out.Name != c.want {
				t.Errorf("callback of %s: %q, %v, want %q", c.no, out.Name, err, c.want)
			}
		}
		if _, err := f.Processor.Expire(t.Context()); err != nil {
			t.Fatal(err)
		}
		for no, want := range map[string]order.Status{
			"pays": order.Paid, "started": order.Paid, "over": order.Closed,
			"late": order.Closing, "paid": order.Paid,
		} {
			if o := byNo(t, f, no); o.Status != want {
				t.Errorf("%s is %s, want %s", no, o.Status, want)
			}
		}
		booksInOrder(t, f)
	})
}

// Money may have come before its order was taken over.
func TestHeldMoneyDoesNotKeepItsOrderFromBeingTakenOver(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{})
		take := func(no, trade, want string) {
			t.Helper()
			if out, err := f.Processor.Submit(t.Context(), f.Callback(no, trade, 1999)); err != nil || out.Name != want {
				t.Errorf("callback of %s: %q, %v, want %q", no, out.Name, err, want)
			}
		}
		take("pays", "T-1", exception.UnknownOrder)
		take("paid", "T-2", exception.UnknownOrder)
		mustImport(t, f, 2, entry("pays", "pending", ""), entry("paid", "paid", `"supplier_trade_no": "T-2"`))
		f.Want(t, 1, "SELECT count(*) FROM payment_attempts WHERE supplier_trade_no = 'T-2' AND status = 'succeeded' AND order_id <> 0")
		take("pays", "T-1", payment.Paid)
		take("paid", "T-2", payment.Repeat)
		f.Want(t, 0, "SELECT count(*) FROM payment_attempts WHERE order_id = 0")
	})
}

func TestProblemsNameLineAndFieldAndNothingIsTakenOver(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *paymenttest.Fixture) {
		mustImport(t, f, 1, entry("there", "paid", `"supplier_trade_no": "T-there", "out_trade_no": "out-there"`))
		for _, c := range []struct{ line, want string }{
			{`nonsense`, ":2: not one JSON object"},
			{`[1]`, ":2: not one JSON object"},
			{`{"order_no": "x"`, ":2: not one JSON object"},
			{`{}`, ":2: order_no: missing"},
			{entry("x", "pending", `"colour": "red"`), ":2: colour: unknown field"},
			{entry("x", "pending", `"order_no": "y"`), ":2: order_no: "},
			{entry("x", "pending", `"subject": 5`), ":2: subject: a text"},
			{entry("x", "won", ""), ":2: status: use pending"},
			{strings.Replace(entry("x", "paid", ""), "1999", "19.99", 1), ":2: amount: use a whole number"},
			{strings.Replace(entry("x", "paid", ""), "1999", `"1999"`, 1), ":2: amount: use a whole number"},
			{strings.Replace(entry("x", "paid", ""), "1999", "0", 1), ":2: amount: use a whole number"},
			{strings.Replace(entry("x", "paid", ""), "CNY", "XXX", 1), ":2: currency: unknown currency"},
			{strings.Replace(entry("x", "paid", ""), "m1", "nobody", 1), `:2: merchant: there is no merchant "nobody"`},
			{strings.Replace(entry("x", "paid", ""), "sp-main", "nobody", 1), `:2: supplier: there is no supplier "nobody"`},
			{entry("a b", "paid", ""), ":2: order_no: use 1 to 64 visible"},
			{entry("a/b", "paid", ""), ":2: order_no: use 1 to 64 visible"},
			{entry(strings.Repeat("x", 65), "paid", ""), ":2: order_no: use 1 to 64 visible"},
			{entry("x", "paid", `"paid_at": "yesterday"`), ":2: paid_at: use a time such as"},
			{entry("x", "pending", `"paid_at": "2026-01-01T00:00:00Z"`), ":2: paid_at: only a paid order has one"},
			{entry("x", "closed", `"paid_amount": 1999`), ":2: paid_amount: only a paid order has one"},
			{entry("x", "paid", `"closed_at": "2026-01-01T00:00:00Z"`), ":2: closed_at: only a closed order has one"},
			{entry("x", "paid", `"close_reason": "timeout"`), ":2: close_reason: only"},
			{entry("x", "paid", `"version": 0`), ":2: version: use a whole number"},
			{entry("x", "pending", `"expires_at": "2026-01-01T00:00:00Z"`), ":2: expires_at: must be after created_at"},
			{entry("x", "pending", `"created_at": "2199-01-01T00:00:00Z"`), ":2: created_at: must not be in the future"},
			{entry("x", "pending", `"notify_url": "http://b.example"`), ":2: notify_url: only https"},
			{entry("x", "pending", `"items": [{"sku": "tea", "quantity": 1}]`), ":2: items: stock reservations cannot be imported"},
			{entry("x", "pending", `"subject": "`+strings.Repeat("x", 70_000)+`"`), ":2: longer than 64 KiB"},

			{entry("fine", "paid", ""), ":2: order_no: also in line 1"},
			{entry("x", "paid", `"out_trade_no": "fine"`), ":2: out_trade_no: the merchant has it in line 1 too"},
			{entry("x", "paid", `"supplier_trade_no": "T-fine"`), ":2: supplier_trade_no: it paid the order in line 1 too"},
			{entry("there", "pending", ""), ":2: order_no: there is already an order with this number"},
			{
				entry("x", "paid", `"out_trade_no": "out-there"`),
				":2: out_trade_no: the merchant already has an order with this number: there",
			},
			{entry("x", "paid", `"supplier_trade_no": "T-there"`), ":2: supplier_trade_no: it has already paid another order"},
		} {
			n, err := importer.Import(t.Context(), env(t, f.DB), "orders.jsonl",
				lines(entry("fine", "paid", `"supplier_trade_no": "T-fine"`), c.line))
			var invalid *apply.Invalid
			if n != 0 || !errors.As(err, &invalid) || !strings.HasPrefix(err.Error(), "orders.jsonl"+c.want) {
				t.Errorf("%.200s\n got %d, %v\nwant %s", c.line, n, err, c.want)
				continue
			}
			if c.line != "{}" && len(invalid.Problems) != 1 {
				t.Errorf("%.200s: one mistake, several problems: %v", c.line, err)
			}
		}
		f.Want(t, 1, "SELECT count(*) FROM orders")
		f.Want(t, 0, "SELECT count(*) FROM import_orders")
	})
}

func TestProblemsAreReportedUpToABound(t *testing.T) {
	t.Parallel()
	f := paymenttest.New(t, dbtest.SQLite(t), paymenttest.Options{})
	var invalid *apply.Invalid
	_, err := importer.Import(t.Context(), env(t, f.DB), "orders.jsonl", strings.NewReader(strings.Repeat(entry("", "paid", "")+"\n", 30)))
	if !errors.As(err, &invalid) || len(invalid.Problems) != 20 || invalid.More != 10 ||
		!strings.Contains(err.Error(), "… and 10 more problems") {
		t.Errorf("err = %v", err)
	}
}

// file is many orders; at a given line it does something first.
type file struct {
	lines, next int
	at          int
	do          func()
	left        string
}

func (f *file) Read(p []byte) (int, error) {
	for f.left == "" {
		if f.next == f.lines {
			return 0, io.EOF
		}
		if f.next++; f.next == f.at {
			f.do()
		}
		f.left = entry(fmt.Sprintf("N-%d", f.next), []string{"pending", "paying", "closing", "paid", "failed", "closed"}[f.next%6], "") +
			"\n"
	}
	n := copy(p, f.left)
	f.left = f.left[n:]
	return n, nil
}

func TestTenThousandOrdersAreSeenTogether(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *paymenttest.Fixture) {
		var steps []importer.Progress
		e := env(t, f.DB)
		e.Progress = func(p importer.Progress) { steps = append(steps, p) }
		half := int64(-1)
		n, err := importer.Import(t.Context(), e, "orders.jsonl", &file{lines: 10_000, at: 6000, do: func() {
			half = f.Count(t, "SELECT count(*) FROM orders")
			if staged := f.Count(t, "SELECT count(*) FROM import_orders"); staged < 5000 {
				t.Errorf("%d lines are staged after 6,000: the pages are too large", staged)
			}
		}})
		if err != nil || n != 10_000 {
			t.Fatalf("import = %d, %v", n, err)
		}
		if half != 0 {
			t.Errorf("%d orders were visible in the middle of the file", half)
		}
		f.Want(t, 10_000, "SELECT count(*) FROM orders")
		f.Want(t, 10_000, "SELECT count(*) FROM order_history")
		f.Want(t, 0, "SELECT count(*) FROM import_orders")
		if last := steps[len(steps)-1]; last != (importer.Progress{Step: "importing", Lines: 10_000}) {
			t.Errorf("progress ended with %+v", last)
		}
		booksInOrder(t, f)

		_, err = importer.Import(t.Context(), env(t, f.DB), "orders.jsonl", &file{lines: 10_000})
		var invalid *apply.Invalid
		if !errors.As(err, &invalid) || len(invalid.Problems) != 20 {
			t.Errorf("the same file again: %v", err)
		}
		f.Want(t, 10_000, "SELECT count(*) FROM orders")
	})
}

// TestACrashLeavesNothingVisible makes the database unavailable in the middle of a file, so that
// the import cannot even clean up.
func TestACrashLeavesNothingVisible(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			o := db.Options{Dir: t.TempDir()}
			if engine == "postgres" {
				o.URL = dbtest.PostgresURL(t)
			}
			f := paymenttest.New(t, dbtest.Open(t, o), paymenttest.Options{})
			crash := func() {
				dying := dbtest.Open(t, o)
				_, err := importer.Import(t.Context(), env(t, dying), "orders.jsonl",
					&file{lines: 4000, at: 2500, do: func() { dying.Close() }})
				if err == nil {
					t.Fatal("the import survived its database")
				}
			}
			crash()
			f.Want(t, 0, "SELECT count(*) FROM orders")
			left := f.Count(t, "SELECT count(*) FROM import_orders")
			if left == 0 {
				t.Fatal("nothing is left over: there was no crash")
			}
			// It may still live for all that the next import knows.
			if _, err := importer.Import(t.Context(), env(t, f.DB), "orders.jsonl", lines(entry("one", "paid", ""))); err != nil {
				t.Fatal(err)
			}
			f.Want(t, left, "SELECT count(*) FROM import_orders")
			if _, err := f.DB.NewRaw("UPDATE import_runs SET seen_at = seen_at - 3600000000").Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			n, err := importer.Import(t.Context(), env(t, f.DB), "orders.jsonl", &file{lines: 4000})
			if err != nil || n != 4000 {
				t.Fatalf("the import after the crash: %d, %v", n, err)
			}
			f.Want(t, 4001, "SELECT count(*) FROM orders")
			f.Want(t, 0, "SELECT count(*) FROM import_orders")
			booksInOrder(t, f)
		})
	}
}

func TestAStoppedImportCleansUp(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *paymenttest.Fixture) {
		ctx, stop := context.WithCancel(t.Context())
		_, err := importer.Import(ctx, env(t, f.DB), "orders.jsonl", &file{lines: 4000, at: 2500, do: stop})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v", err)
		}
		for _, table := range []string{"orders", "import_orders", "import_runs"} {
			f.Want(t, 0, "SELECT count(*) FROM "+table)
		}
	})
}

// TestAnOrderMadeInBetweenIsNamed creates an order with the same number after the check has
// passed.
func TestAnOrderMadeInBetweenIsNamed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *paymenttest.Fixture) {
		e := env(t, f.DB)
		e.Progress = func(p importer.Progress) {
			if p.Step != "importing" {
				return
			}
			_, _, err := f.Processor.Create(t.Context(), f.M1, payment.CreateRequest{
				OutTradeNo: "taken", Amount: 5, Currency: "CNY",
				Supplier: "sp-main",
			})
			if err != nil {
				t.Error(err)
			}
		}
		_, err := importer.Import(t.Context(), e, "orders.jsonl",
			lines(entry("fine", "paid", ""), entry("x", "pending", `"out_trade_no": "taken"`)))
		if err == nil || !strings.HasPrefix(err.Error(), "orders.jsonl:2: out_trade_no: the merchant already has an order") {
			t.Errorf("err = %v", err)
		}
		f.Want(t, 1, "SELECT count(*) FROM orders")
	})
}

func TestAnImportLeavesOneAct(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *paymenttest.Fixture) {
		acts := func() []audit.Row {
			t.Helper()
			rows, err := audit.List(t.Context(), f.DB, audit.Query{Limit: 9})
			if err != nil {
				t.Fatal(err)
			}
			return rows
		}
		mustImport(t, f, 0)
		if _, err := importer.Import(t.Context(), env(t, f.DB), "orders.jsonl", lines("{")); err == nil {
			t.Fatal("an invalid file was imported")
		}
		if got := acts(); len(got) != 0 {
			t.Errorf("what changed nothing left %+v", got)
		}
		all := []string{entry("A-1", "pending", ""), entry("A-2", "paid", "")}
		n, err := importer.Import(t.Context(), env(t, f.DB), "/from/there/orders.jsonl", lines(all...))
		if err != nil || n != 2 {
			t.Fatal(n, err)
		}
		params := fmt.Sprintf(`{"orders":2,"sha256":"%x"}`, sha256.Sum256([]byte(strings.Join(all, "\n"))))
		got := acts()
		if len(got) != 1 || got[0].Actor != audit.Command() || got[0].Action != "orders.import" || got[0].Object != "file" ||
			got[0].ObjectID != "orders.jsonl" || got[0].Params != params {
			t.Errorf("acts %+v, want one with %s", got, params)
		}
	})
}

func TestThePagesExampleIsImported(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/takeover.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```json\n")
	example, _, _ := strings.Cut(rest, "```")
	f := paymenttest.New(t, dbtest.SQLite(t), paymenttest.Options{})
	mustImport(t, f, 3, strings.ReplaceAll(example, "wx-main", "sp-main"))
}
