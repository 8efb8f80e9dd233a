package console

import (
	"bufio"
	"encoding/csv"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/money"
	"backstop/internal/list"
	"backstop/views/ui"
	"backstop/web"
)

// ordered writes orders of merchant 1: each third is JPY, each fourth failed. Their
// numbers are A0, A1, …, the newest last.
func ordered(t *testing.T, d *db.DB, n int, subject string, more ...string) {
	t.Helper()
	prefix := "A" + strings.Join(more, "")
	first := d.NewID()
	change(t, d,
		"WITH RECURSIVE n(i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < ?0) INSERT INTO orders (id, order_no, merchant_id, out_trade_no, supplier_id, amount, currency, exponent, subject, request_digest, status, version, supplier_trade_no, paid_amount, created_at, expires_at)"+
			" SELECT ?1 + i, ?4 || i, 1, '+' || ?4 || i, 1, 100 + i, CASE WHEN i % 3 = 0 THEN 'JPY' ELSE 'CNY' END, 2, ?2, '', CASE WHEN i % 4 = 0 THEN 'failed' ELSE 'paid' END, 2, '', 0, ?3, ?3 FROM n", n-1, first, subject, d.Now(), prefix)
}

func cells(t *testing.T, body string) [][]string {
	t.Helper()
	text, marked := strings.CutPrefix(body, "\ufeff")
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || !marked || len(rows) < 2 {
		t.Fatalf("%d rows, marked as UTF-8 %t, %v", len(rows), marked, err)
	}
	return rows
}

func TestAnExportIsTheWholeList(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		ordered(t, d, 1300, `=HYPERLINK("http://evil.example","pay")`)
		change(t, d, "UPDATE orders SET amount = 9007199254740993 WHERE order_no = 'A1'") // 2^53 + 1
		cookie := h.SignIn(t, access.Lead)
		path := "/orders?status=paid&lang=en"
		page := h.Page(t, cookie, path).Body
		for _, part := range []string{
			`<form method="get" action="/orders">`, `<input type="hidden" name="status" value="paid">`,
			`name="columns" value="paid_amount" checked`, `name="format" value="csv"`, `name="format" value="xlsx"`,
		} {
			if !strings.Contains(page, part) {
				t.Errorf("the page does not lead to its export: no %s", part)
			}
		}
		got := h.Page(t, cookie, path+"&format=csv&cursor=x")
		if got.Status != http.StatusBadRequest {
			t.Errorf("a cursor that is not ours: %d", got.Status)
		}
		got = h.Page(t, cookie, path+"&format=csv")
		if got.Status != http.StatusOK || got.Header.Get("Content-Type") != "text/csv; charset=utf-8" ||
			!strings.Contains(got.Header.Get("Content-Disposition"), `filename="orders-`) {
			t.Fatalf("%d %v", got.Status, got.Header)
		}
		rows := cells(t, got.Body)
		if title := rows[0][0]; !strings.Contains(title, "status=paid") || !strings.Contains(title, "operator:the.lead") ||
			!strings.Contains(rows[1][0], "Asia/Shanghai") {
			t.Errorf("heading %q, %q", rows[0], rows[1])
		}
		column := func(name string) int { return slices.Index(rows[1], name) }
		var want []string
		for i := 1299; i >= 0; i-- {
			if i%4 != 0 {
				want = append(want, "A"+strconv.Itoa(i))
			}
		}
		var numbers []string
		foot := rows[len(rows)-2:]
		rows = rows[:len(rows)-2]
		for _, r := range rows[2:] {
			numbers = append(numbers, r[column("Order number")])
			if r[column("Subject")] != `'=HYPERLINK("http://evil.example","pay")` || r[column("Merchant's order number")][0] != '\'' ||
				r[column("State")] != "Paid" {
				t.Fatalf("%q", r)
			}
		}
		if !slices.Equal(numbers, want) {
			t.Errorf("%d orders, want %d", len(numbers), len(want))
		}
		if last := rows[len(rows)-1]; last[column("Amount")] != "90071992547409.93" || last[column("Currency")] != "CNY" {
			t.Errorf("the largest amount: %q", last)
		}
		if yen := rows[2]; yen[column("Currency")] != "JPY" || yen[column("Amount")] != "1399" { // A1299
			t.Errorf("an amount without minor units: %q", yen)
		}
		sums := map[string]int64{"CNY": 9007199254740993 - 101}
		for i := range 1300 {
			if i%4 != 0 {
				sums[map[bool]string{true: "JPY", false: "CNY"}[i%3 == 0]] += int64(100 + i)
			}
		}
		if foot[0][0] != "Total CNY (650 rows)" || foot[0][column("Amount")] != money.Format(sums["CNY"], "CNY") ||
			foot[1][0] != "Total JPY (325 rows)" || foot[1][column("Amount")] != money.Format(sums["JPY"], "JPY") {
			t.Errorf("totals %q, want %v", foot, sums)
		}
		var acts []audit.Row
		if err := d.Read.NewSelect().Model(&acts).Where("action = 'list.export'").Scan(t.Context()); err != nil || len(acts) != 1 ||
			acts[0].Actor != "operator:the.lead" || acts[0].ObjectID != "orders" || !strings.Contains(acts[0].Params, "status=paid") {
			t.Errorf("%+v, %v", acts, err)
		}
		got = h.Page(t, cookie, path+"&format=csv&columns=amount&columns=currency,no")
		if chosen := cells(t, got.Body); !slices.Equal(chosen[1], []string{"Order number", "Currency", "Amount"}) ||
			len(chosen) != len(rows)+2 || chosen[2][0] != "A1299" {
			t.Errorf("chosen columns: %d rows, %q", len(chosen), chosen[:3])
		}
		if got := h.Page(t, cookie, "/exceptions?format=csv"); got.Status != http.StatusOK || len(cells(t, got.Body)) != 2 {
			t.Errorf("an empty list: %d %q", got.Status, got.Body)
		}
		for path, want := range map[string]int{
			"/orders?format=xls": 422, "/orders?format=csv&columns=nothing": 422,
			"/orders?format=csv&amount=x": 422,
		} {
			if got := h.Page(t, cookie, path); got.Status != want {
				t.Errorf("%s: %d, want %d", path, got.Status, want)
			}
		}
		if got := h.Call(t, http.MethodGet, "/orders?format=csv", "", "Cookie", cookie, "Sec-Fetch-Site",
			"cross-site"); got.Status != http.StatusForbidden {
			t.Errorf("for another site: %d", got.Status)
		}
		if got := h.Page(t, "", "/orders?format=csv"); got.Status == http.StatusOK {
			t.Error("it is for everybody")
		}
	})
}

// TestAnExportThatFailsIsNotTakenForAWholeOne also shows that the rows are read as they
// are sent: the list is larger than what waits between server and client.
func TestAnExportThatFailsIsNotTakenForAWholeOne(t *testing.T) {
	t.Parallel()
	const rows = 60_000
	h := open(t)
	ordered(t, h.DB, rows, strings.Repeat("x", 250))
	cookie := h.SignIn(t, access.Viewer)
	start := func() *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.Addr+"/orders?format=csv", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Cookie", cookie)
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
	all := make([]*http.Response, web.MaxExports)
	for i := range all {
		if all[i] = start(); all[i].StatusCode != http.StatusOK {
			t.Fatalf("export %d: %d", i, all[i].StatusCode)
		}
	}
	if got := h.Page(t, cookie, "/orders?format=csv"); got.Status != http.StatusTooManyRequests {
		t.Errorf("one more: %d", got.Status)
	}
	text, body := "", bufio.NewReader(all[0].Body)
	for range 100 { // of a slow server, the failure could come first
		line, err := body.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		text += line
	}
	change(t, h.DB, "ALTER TABLE orders RENAME TO moved")
	rest, err := io.ReadAll(body)
	if n := strings.Count(text+string(rest), "\n"); !errors.Is(err, io.ErrUnexpectedEOF) || n < 100 || n >= rows {
		t.Errorf("%d rows, %v", n, err)
	}
	change(t, h.DB, "ALTER TABLE moved RENAME TO orders")
	for _, res := range all {
		res.Body.Close() // clients that leave make room
	}
	for got := start(); got.StatusCode != http.StatusOK; got = start() {
		got.Body.Close()
	}
}

var tagForm = regexp.MustCompile(`<[^>]*>`)

// TestListsSayTheirTotals has each currency added up by itself, over all pages.
func TestListsSayTheirTotals(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		ordered(t, d, 90, "")
		cookie := h.SignIn(t, access.Viewer)
		plain := func(path string) string {
			return strings.Join(strings.Fields(tagForm.ReplaceAllString(h.Page(t, cookie, path).Body, " ")), " ")
		}
		// Of 90, 100 + i each: CNY are the 60 that 3 does not divide.
		for path, want := range map[string]string{
			"/orders?lang=en":             "Total ¥87.00 CNY (60) ¥4,305 JPY (30)",
			"/orders?lang=zh":             "合计 ¥87.00 CNY （60 笔） ¥4,305 JPY （30 笔）",
			"/orders?lang=en&amount=1.04": "Total ¥1.04 CNY (1)",
		} {
			if got := plain(path); !strings.Contains(got, want) {
				t.Errorf("%s does not say %q: %s", path, want, got[max(0, len(got)-600):])
			}
		}
		ordered(t, d, 20_000, "", "X")
		for path, want := range map[string]string{
			"/orders?lang=en":             "Total of the newest rows, at least ",
			"/orders?lang=en&status=paid": "Too many rows for a total",
		} {
			if got := plain(path); !strings.Contains(got, want) {
				t.Errorf("of many, %s does not say %q: %s", path, want, got[max(0, len(got)-600):])
			}
		}
	})
}

// TestMerchantsExportInTheOrderOfDeclaration has more merchants than one read returns.
func TestMerchantsExportInTheOrderOfDeclaration(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		h.InTrouble(t)
		change(t, d, "INSERT INTO report_unnotified (merchant_id, currency, orders, amount) VALUES (1, 'CNY', 2, 1998), (1, 'JPY', 1, 500)")
		change(t, d,
			"WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 2100) INSERT INTO merchants (id, code, name, signing_secrets, notify, created_at, updated_at)"+
				" SELECT i, 'z' || i, '=1+1', '[]', '{}', 0, 0 FROM n")
		cookie := h.SignIn(t, access.Viewer)
		rows := cells(t, h.Page(t, cookie, "/merchants?format=csv&lang=en").Body)
		code, risk := slices.Index(rows[1], "Code"), slices.Index(rows[1], "Money at risk")
		if rows = rows[2:]; len(rows) != 1103 || rows[0][code] != "m1" || rows[1][code] != "m2" || rows[2][code] != "z1000" ||
			rows[1102][code] != "z2100" || !slices.Contains(rows[2], "'=1+1") {
			t.Fatalf("%d rows, first %q", len(rows), rows[:min(3, len(rows))])
		}
		if rows[0][risk] != "19.98 CNY; 500 JPY" || rows[1][risk] != "" {
			t.Errorf("at risk: %q, %q", rows[0][risk], rows[1][risk])
		}
	})
}

// TestEveryListExports asks every list of the console for both formats.
func TestEveryListExports(t *testing.T) {
	t.Parallel()
	h := open(t)
	ordered(t, h.DB, 10, "")
	seedReports(t, h.DB)
	lead, admin := h.SignIn(t, access.Lead), h.SignIn(t, access.Admin)
	change(t, h.DB,
		"INSERT INTO sweeps (id, night, began_at, ended_at, window_from, \"by\", reason, node, state, looked_at, pushed, differences, scan, after, turn) VALUES (1, 0, 5, 9, 0, 'clock', '=1+1', 'n', 'done', 7, '[]', '[]', 0, 0, 0)")
	for _, path := range []string{
		"/orders", "/callbacks", "/notifications", "/exceptions", "/compensations", "/approvals", "/merchants", "/reports", "/alerts",
		"/audit",
		"/refunds", "/payouts", "/disputes", "/accounts", "/statements", "/batches", "/suppliers", "/sweeps", "/",
	} {
		cookie := lead
		if path == "/alerts" {
			cookie = admin
		}
		for format, begins := range map[string]string{"csv": "\ufeff", "xlsx": "PK\x03\x04"} {
			got := h.Page(t, cookie, path+"?format="+format)
			if got.Status != http.StatusOK || !strings.HasPrefix(got.Body, begins) {
				t.Errorf("%s as %s: %d %.40q", path, format, got.Status, got.Body)
			}
		}
		if page := h.Page(t, cookie, path).Body; !strings.Contains(page, `id="export"`) {
			t.Errorf("%s does not offer its export", path)
		}
	}
}

// A list that is longer than an XLSX file says where to split it.
func TestAnExportOverTheLimitSaysHowToSplitIt(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	l := &listing{p: &ui.Page{Zone: time.UTC, Now: from.AddDate(0, 0, 20)}, span: list.Slice{From: from.UnixMicro()}}
	for _, want := range []string{"until 2026-11-11T00:00, and from 2026-11-11T00:00", "one month at a time"} {
		if err := tooLong(l); !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "1,048,575") {
			t.Errorf("%v: want %q", err, want)
		}
		l.span.From = 0
	}
}
