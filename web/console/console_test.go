package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/batch"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/list"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/supplier"
	"backstop/web"
	"backstop/web/webtest"
)

// madeAt is what the seed's ids are counted from: those of a minute ago.
func madeAt(now int64) int64 { return db.IDAt(now - time.Minute.Microseconds()) }

// seed writes a paid order whose merchant does not answer, with a repeated
// callback, and what else the pages show. Its number is 2026112000000001.
func seed(t *testing.T, d *db.DB) {
	t.Helper()
	now := d.Now()
	at := func(ago time.Duration) int64 { return now - ago.Microseconds() }
	made := madeAt(now)
	next, paid := now+90_000_000, at(50*time.Second)
	orders := []*order.Order{
		{
			OrderNo: "2026112000000001", OutTradeNo: "GX-88210477", Amount: 349900, Currency: "CNY", Exponent: 2, Subject: "Two tickets " +
				webtest.Hostile, Status: order.Paid, Version: 2, PaidAmount: 349900, PaidAt: &paid,
			SupplierTradeNo: "4200002614202611201428773301", HasItems: true,
		},
		{
			OrderNo: "2026112000000002", OutTradeNo: "T2", Amount: 1980, Currency: "JPY", Subject: "Book", Status: order.Pending, Version: 1,
			NextAt: &next,
		},
		{
			OrderNo: "2026112000000003", OutTradeNo: "T3", Amount: 12345, Currency: "KWD", Exponent: 3, Subject: "Chair", Status: order.Closed,
			Version: 2, CloseReason: "timeout",
		},
	}
	write := func(rows any) {
		t.Helper()
		if _, err := d.NewInsert().Model(rows).Exec(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	for i, o := range orders {
		o.ID, o.MerchantID, o.SupplierID = made+int64(100+i), 1, 1
		o.CreatedAt, o.ExpiresAt = at(time.Minute), at(-29*time.Minute)
	}
	write(&orders)
	write(&[]order.History{
		{ID: 1, OrderID: made + 100, Version: 1, To: order.Pending, Cause: order.Created, Actor: "merchant:m1", CreatedAt: at(time.Minute)},
		{
			ID: 2, OrderID: made + 100, Version: 2, From: order.Pending, To: order.Paid, Cause: order.ByCallback, Actor: "supplier:wx",
			SourceID: 1, CreatedAt: paid,
		},
	})
	steps := supplier.Steps{{Name: "signature", OK: true, Detail: "RSA-SHA256"}, {Name: "amount", OK: true, Detail: "3499.00 CNY as ordered"}}
	for i, outcome := range []string{"paid", "repeat"} {
		_, err := d.NewRaw(
			"INSERT INTO callbacks (id, supplier_id, order_id, order_no, trade_no, event_key, digest, outcome, received_at, remote_addr, method, query, headers, body, steps)"+
				" VALUES (?, 1, ?, '2026112000000001', '42', 'e', 'd', ?, ?, '101.226.103.61', 'POST', '', ?, ?, ?)", made+201+int64(i),
			made+100, outcome, paid+int64(i)*15_000_000,
			fmt.Sprintf("Content-Type: application/json\nWechatpay-Timestamp: 179515626%d", i),
			[]byte(`{"trade_state":"SUCCESS","payer":{"openid":"oUpF8-secret-openid"},"amount":349900}`),
			steps.Text()).Exec(context.Background())
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := d.NewRaw(
		"INSERT INTO refused_callbacks (id, supplier, outcome, received_at, remote_addr, method, query, headers, body, steps)"+
			" VALUES (?, 'wx', 'bad_signature', ?, '203.0.113.9', 'POST', '', '', ?, ?)", made+203, at(5*time.Second), []byte("x"),
		"signature\t0\t\t!\tdoes not match the body <b>forged</b>").Exec(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	write(&notify.Event{ID: made + 300, MerchantID: 1, SubjectID: made + 100, Type: "order.paid", Version: 2, Body: "{}", CreatedAt: paid})
	write(&notify.Delivery{
		ID: made + 301, EventID: made + 300, RecipientID: 1, SubjectID: made + 100, EventType: "order.paid", Channel: notify.Webhook,
		Status:   notify.RetryWait,
		Attempts: 2, NextAt: &next, LastClass: notify.BadStatus, LastError: "HTTP 502", CreatedAt: paid,
		Currency: "CNY", Amount: 349900,
	})
	write(&[]notify.Attempt{
		{
			ID: 401, DeliveryID: made + 301, RecipientID: 1, Number: 1, URL: "https://pay.galaxymall.example/notify", Class: notify.BadStatus,
			HTTPStatus: 502, StartedAt: paid + 80_000, TookUS: 3_204_000, Node: "n1", RequestHeader: "Webhook-Id: ntf_8c",
			ResponseHeader: "Server: nginx", ResponseBody: []byte("Bad gateway"), Error: "HTTP 502",
		},
		{
			ID: 402, DeliveryID: made + 301, RecipientID: 1, Number: 2, URL: "https://pay.galaxymall.example/notify", Class: notify.Timeout,
			StartedAt: paid + 5_000_000, TookUS: 10_000_000, Node: "n1", ResponseBody: []byte{}, Error: "no answer within 10s",
		},
	})
	write(&[]exception.Item{
		{
			ID: made + 501, Kind: exception.AmountMismatch, State: "open", SupplierID: 1, OrderNo: "2026112000000003", OrderID: made + 102,
			Subject: "t9", Amount: 12300, Currency: "KWD", Detail: exception.Detail(map[string]any{"paid": 12300, "ordered": 12345}),
			Seen: 2, OpenedAt: at(20 * time.Second),
		},
		{
			ID: made + 502, Kind: exception.UnknownOrder, State: "open", SupplierID: 1, OrderNo: "NO-SUCH-ORDER", Subject: "t8", Amount: 500,
			Currency: "CNY", Detail: exception.Detail(nil), Seen: 1, OpenedAt: at(10 * time.Second),
		},
	})
	id := func(n int64) *int64 { return &n }
	checker := int64(9002)
	write(&[]approval.Approval{
		{
			ID: 501, Action: "mark_paid", Object: "order", ObjectID: "2026112000000002", OrderNo: "2026112000000002", MerchantID: 1,
			Version: 1, Amount: 1980, Currency: "JPY",
			Params:   json.RawMessage(`{"amount":1980,"evidence":"the line of the statement","trade_no":"T-77","unverified":true}`),
			Reason:   "the supplier confirmed it by mail " + webtest.Hostile,
			Evidence: "the line of the statement", Hash: strings.Repeat("0123456789abcdef", 4), Maker: 9001, MakerKind: approval.ByOperator,
			Second: true, State: approval.Waiting, MadeAt: at(10 * time.Second), ExpiresAt: at(-24 * time.Hour),
		},
		{
			ID: 502, Action: "accept_amount", Object: "exception", ObjectID: strconv.FormatInt(made+501, 10), OrderNo: "2026112000000003",
			MerchantID: 1, Version: 1, Amount: 12300, Currency: "KWD",
			Params: json.RawMessage(`{"amount":12300}`), Reason: "agreed with the merchant", Hash: strings.Repeat("fedcba9876543210", 4),
			Maker: 9001, MakerKind: approval.ByOperator, SinglePerson: true, Second: true, State: approval.Failed, Tries: 1,
			MadeAt: at(time.Hour), ExpiresAt: at(-23 * time.Hour), DecidedAt: id(at(time.Hour)), StartedAt: id(at(time.Hour)),
			DoneAt: id(at(time.Hour)), Error: "it was changed meanwhile: look again",
		},
		{
			ID: 503, Action: "force_closed", Object: "order", ObjectID: "2026112000000003", OrderNo: "2026112000000003", MerchantID: 1,
			Version: 1, Amount: 12345, Currency: "KWD",
			Params: json.RawMessage(`{"evidence":"they closed it"}`), Reason: "closed at the supplier", Hash: strings.Repeat("00", 32),
			Maker: 9001, MakerKind: approval.ByOperator, Checker: &checker, CheckerReason: "compared with their console", Second: true,
			State: approval.Done, Tries: 1, Result: `{"status":"closed"}`, MadeAt: at(time.Hour), ExpiresAt: at(-23 * time.Hour),
			DecidedAt: id(at(time.Minute)), StartedAt: id(at(time.Minute)), DoneAt: id(at(time.Minute)),
		},
	})
	for _, q := range []string{
		"INSERT INTO operators (id, name, role, password_hash, must_change, created_at, updated_at) VALUES (9001, 'xu.finance', 'finance', '', FALSE, 0, 0), (9002, 'bo.lead', 'lead', '', FALSE, 0, 0)",
		fmt.Sprintf(
			"INSERT INTO compensations (id, kind, cause, subject_kind, subject_id, order_no, merchant_id, supplier_id, lane, amount, currency, payload, state, attempts, max_attempts,"+
				" last_class, last_error, made_by, opened_at, finished_at) VALUES (%d, 'rerun', 'supplier_timeout', 'order', %d, '2026112000000001', 1, 1, 1, 349900, 'CNY', '{\"order\":7}', 'dead', 10, 10,"+
				" 'supplier_timeout', 'no answer within 8s', 'advance', %d, %d)", made+601, made+100, at(5*time.Second), at(9*time.Second)),
		fmt.Sprintf(
			"INSERT INTO compensations (id, kind, cause, subject_kind, subject_id, merchant_id, lane, state, attempts, max_attempts, next_at, made_by, opened_at)"+
				" VALUES (%d, 'resend', 'merchant_unreachable', 'merchant', 1, 1, 1, 'waiting', 0, 10, %d, 'breaker', %d)", made+602,
			at(-time.Hour), at(5*time.Second)),
		fmt.Sprintf(
			"INSERT INTO compensation_tries (id, compensation_id, number, at, took_us, class, error) VALUES (%d, %d, 10, %d, 8000000, 'supplier_timeout', 'no answer within 8s <b>')", made+603, made+601, at(9*time.Second)),
		"INSERT INTO skus (id, sku, stock, locked, sold, applied) VALUES (1, 'SKU-77120', 10, 0, 2, 12)",
		fmt.Sprintf("INSERT INTO order_items (order_id, sku_id, quantity) VALUES (%d, 1, 2)", made+100),
		"INSERT INTO report_unnotified (merchant_id, currency, orders, amount) VALUES (1, 'CNY', 1, 349900)",
	} {
		if _, err := d.ExecContext(context.Background(), q); err != nil {
			t.Fatal(err)
		}
	}
	for i, owner := range []string{"9001", "9002"} {
		if _, err := d.NewRaw(
			"INSERT INTO views (id, owner_id, list, name, query, shared, created_at, updated_at) VALUES (?, ?, 'orders', ?, ?, TRUE, 0, 0)",
			i+1, owner, []string{"Open ones of m1", "Of a merchant that is gone"}[i], []string{
				"merchant=m1&status=pending",
				"merchant=gone",
			}[i]).Exec(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	seedFunds(t, d)
	seedReports(t, d)
	seedSupplier(t, d)
}

// namedPage is a page and what the seed put on it.
type namedPage struct{ name, path, holds string }

// details are the pages of single things that the seed wrote.
func (h *harness) details(t *testing.T) []namedPage {
	t.Helper()
	id := func(query string) (n int64) {
		t.Helper()
		if err := h.DB.Read.NewRaw(query).Scan(t.Context(), &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	ids, err := list.Query{Spec: console.DeliveryList, Scope: list.All()}.IDs(t.Context(), h.DB, list.Slice{}, h.DB.NewID(), batch.MaxRows)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := h.Batches.Plan(t.Context(), batch.Proposal{
		Action: "resend", Object: "delivery", By: act.Actor{Name: "operator:wang.min", Roles: access.Ops}, Filter: "/notifications",
		IDs: ids,
	})
	if err != nil {
		t.Fatal(err)
	}
	h.InTrouble(t)
	return []namedPage{
		{"merchant", "/merchants/m1", "https://gone.test"},
		{"callback", fmt.Sprintf("/callbacks/%d", id("SELECT id FROM callbacks WHERE outcome = 'paid'")), "RSA-SHA256"},
		{"callback-refused", fmt.Sprintf("/callbacks/%d", id("SELECT id FROM refused_callbacks")), "does not match"},
		{"notification", "/notifications/" + notify.PublicID(id("SELECT subject_id FROM events"), "order.paid"), "HTTP 502"},
		{"exception", fmt.Sprintf("/exceptions/%d", id("SELECT id FROM exceptions WHERE kind = 'amount_mismatch'")), "12.300"},
		{
			"compensation", fmt.Sprintf("/compensations/%d", id("SELECT id FROM compensations WHERE state = 'dead'")),
			"no answer within 8s &lt;b&gt;",
		},
		{"batch", batchPath(plan), "3,499.00"},
	}
}

// allPages are the pages there are to see, beside the details.
var allPages = []namedPage{
	{"overview", "/", "3,499.00"},
	{"guide", "/guide", "kind: sortedparams"},
	{"attention-filtered", "/?matter=exceptions", "12.300"},
	{"runbook", "/runbook", "BACKSTOP_QUERY_STEPS"},
	{"orders", "/orders", "GX-88210477"},
	{"order", "/orders/2026112000000001", "SKU-77120"},
	{"order-exception", "/orders/2026112000000003", "12.300"},
	{"order-pending", "/orders/2026112000000002", "1,980"},
	{"callbacks", "/callbacks", "bad_signature"},
	{"notifications", "/notifications", "HTTP 502"},
	{"exceptions", "/exceptions", "12.300"},
	{"compensations", "/compensations", "no answer within 8s"},
	{"sweeps", "/sweeps", `id="runs"`},
	{"batches", "/batches", "3,499.00"},
	{"approvals", "/approvals", "apr_501"},
	{"approval", "/approvals/apr_501", "the line of the statement"},
	{"approval-alone", "/approvals/apr_502", "12.300"},
	{"refunds", "/refunds", "R7102"},
	{"refund", "/refunds/R7101", "refund:7101:C"},
	{"refund-waiting", "/refunds/R7102", "refund:7102:D"},
	{"refund-unknown", "/refunds/R7103", "refund:7103:D"},
	{"payouts", "/payouts", "P7801"},
	{"payout", "/payouts/P7801", "payout:7801:D"},
	{"payout-reversed", "/payouts/P7802", "payout:7802:R"},
	{"disputes", "/disputes", "D7401"},
	{"disputes-none", "/disputes?order_no=nothing", "/disputes"},
	{"dispute", "/disputes/D7401", "dispute:7401:H"},
	{"dispute-won", "/disputes/D7402", "dispute:7402:B"},
	{"dispute-lost", "/disputes/D7403", "dispute:7403:W"},
	{"dispute-unmatched", "/disputes/D7404", "du_7404"},
	{"accounts", "/accounts", "refund:wx"},
	{"accounts-disputed", "/accounts?part=disputed", "merchant:m1:reserved"},
	{"account", "/accounts/merchant:m1/CNY", "refund:7103:D"},
	{"account-none", "/accounts/refund:wx/CNY?to=2020-01-01", "refund:wx"},
	{"statement", "/merchants/m1/statement", "refund:7101:F"},
	{"statement-month", "/merchants/m1/statement?month=", "3,499.00"},
	{"statements", "/statements", "3,499.00"},
	{"statement-none", "/merchants/m1/statement?day=2020-01-01", "2020-01-02"},
	{"merchants", "/merchants", "m1"},
	{"reports", "/reports", "2026-11-20"},
	{"report", "/reports/2026-11-20", "smtp-0a1b2c"},
	{"report-quiet", "/reports/2026-11-19", "2026-11-19"},
	{"suppliers", "/suppliers", "quick"},
	{"supplier", "/suppliers/quick", "203.0.113.0/24"},
	{"playground", "/suppliers/quick/playground", "/callback/quick"},
	{"me", "/me", "datalist"},
	{"audit", "/audit?check=1", "data-row"},
	{"orders-none", "/orders?no=nothing", "/orders"},
	{"search", "/search?q=000000", "/search"},
	{"inbox", "/inbox", "the.lead"},
	{"views", "/views", "Open ones of m1"},
}

var (
	inlineCode = regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|<script>|javascript:|hx-on`)
	keyLeak    = regexp.MustCompile(`\bt[A-Z][a-z]+[A-Z]|%!|\bmsg\.`)
	han        = regexp.MustCompile(`\p{Han}`)
	drawnIcon  = regexp.MustCompile(`/icons\.[^#"]*#([a-z0-9-]+)"`)
	random     = regexp.MustCompile(`[\w-]{24,}`) // cursors, keys of forms and other random texts, which may look like anything
)

// leakedKey returns the name of a text, or of a verb, that stands in a page in its place; "" = none does.
func leakedKey(page string) string { return keyLeak.FindString(random.ReplaceAllString(page, "")) }

func TestPagesShowWhatIsThereInBothLanguages(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	sprite, err := os.ReadFile("../../static/icons.svg")
	if err != nil {
		t.Fatal(err)
	}
	cookie := h.SignIn(t, access.Lead)
	for _, p := range append(h.details(t), allPages...) {
		for _, lang := range []string{"zh", "en"} {
			join := "?"
			if strings.Contains(p.path, "?") {
				join = "&"
			}
			got := h.Page(t, cookie, p.path+join+"lang="+lang)
			if got.Status != http.StatusOK || !strings.Contains(got.Body, p.holds) {
				t.Errorf("%s in %s: %d without %q", p.path, lang, got.Status, p.holds)
				continue
			}
			text := strings.ReplaceAll(got.Body, "onerror=alert(1)&gt;", "") // the seed's own, as text
			if found := inlineCode.FindString(text); found != "" {
				t.Errorf("%s in %s contains %q, which the policy forbids", p.path, lang, found)
			}
			if found := leakedKey(text); found != "" {
				at := strings.Index(text, found)
				t.Errorf("%s in %s shows %q: %q", p.path, lang, found, text[max(0, at-80):min(len(text), at+80)])
			}
			for _, m := range drawnIcon.FindAllStringSubmatch(text, -1) {
				if !strings.Contains(string(sprite), `id="`+m[1]+`"`) {
					t.Errorf("%s draws the icon %s, which is not in the sprite", p.path, m[1])
				}
			}
			if lang == "en" {
				text = strings.ReplaceAll(text, "中文", "")
				if found := han.FindString(text); found != "" {
					t.Errorf("%s in English shows %q", p.path, found)
				}
			}
			if strings.Contains(got.Body, "<script>alert") || strings.Contains(got.Body, "<img") ||
				strings.Contains(got.Body, "<b>forged") {
				t.Errorf("%s shows a stranger's text as HTML", p.path)
			}
			if got.Header.Get("Content-Security-Policy") != web.ContentPolicy || got.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: headers %v", p.path, got.Header)
			}
		}
	}
}

// The story is complete and in the order in which it happened.
func TestAStoryTellsEverythingInItsOrder(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	cookie := h.SignIn(t, access.Lead)
	body := h.Page(t, cookie, "/orders/2026112000000001?lang=en").Body
	at := 0
	for _, event := range []string{
		"has not confirmed: attempt 2 failed", "Attempt 3 of 13", "Order created", "version 1", "Callback received",
		"supplier&#39;s callback",
		"Notification created", "Attempt 1", "Attempt 2", "Repeat", "Lines that differ from the first: 2", "Planned: attempt 3 of 13",
	} {
		i := strings.Index(body[at:], event)
		if i < 0 {
			t.Fatalf("%q is missing, or not after the event before it", event)
		}
		at += i
	}
	for _, phrase := range []string{
		"•••", "3499.00 CNY as ordered", "Server: nginx", "3.204 s", "SKU-77120",
		"4200002614202611201428773301",
	} {
		if !strings.Contains(body, phrase) {
			t.Errorf("the story lacks %q", phrase)
		}
	}
}

// TestEveryRoleOpensItsRoutesAndNoOther walks role × route: built-in roles, own ones, and several at once.
func TestEveryRoleOpensItsRoutesAndNoOther(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	change(t, h.DB, "INSERT INTO roles (id, code, may, created_at, updated_at) VALUES"+
		" (1, 'night', 'order.view,notification.view,notification.resend', 0, 0), (2, 'till', 'order.view,money.propose', 0, 0)")
	change(t, h.DB, "UPDATE settings SET value = value + 1 WHERE name = 'config_version'")
	h.ReadSettings(t)
	menu, refused := regexp.MustCompile(`(?s)<nav class="(side|tabs)".*?</nav>`), 0
	for _, role := range append([]string{"night", "till", "finance,ops", "night,till", "auditor,till"}, access.AllRoles...) {
		cookie, navigation, entries := h.SignIn(t, role), "", map[string]bool{}
		for _, r := range h.Routes() {
			if r.Audience != web.ForOperator {
				continue
			}
			path := strings.NewReplacer(":order_no", "2026112000000001", ":refund_no", refundOne, ":dispute_no", "D7401", "*",
				"x").Replace(r.Path)
			got := h.Call(t, r.Method, path, "", "Cookie", cookie, "Sec-Fetch-Site", "same-origin")
			allowed := h.Policy.Allows(access.Roles(role), r.Permission)
			if (got.Status == http.StatusForbidden) == allowed {
				t.Errorf("%s %s as %s: %d, allowed is %t", r.Method, path, role, got.Status, allowed)
			}
			if !allowed {
				refused++
			}
			if r.Menu.Icon != "" {
				entries[`href="`+r.Path+`"`] = allowed
				navigation += strings.Join(menu.FindAllString(got.Body, -1), "")
			}
		}
		for entry, allowed := range entries {
			if strings.Contains(navigation, entry) != allowed {
				t.Errorf("the navigation of %s has no %s, or must not have it: allowed is %t", role, entry, allowed)
			}
		}
	}
	if refused == 0 {
		t.Error("no request was refused: the walk proves nothing")
	}
}

func TestFiltersAndCursorsStandInTheAddress(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	cookie := h.SignIn(t, access.Viewer)
	for _, c := range []struct{ path, holds, not string }{
		{"/orders?status=pending", "2026112000000002", "GX-88210477"},
		{"/orders?merchant=m2", "/orders", "GX-88210477"},
		{"/orders?supplier=wx&status=paid", "GX-88210477", ">T2<"},
		{"/orders?risk=stuck", "/orders", "GX-88210477"},
		{"/notifications?risk=untold", "HTTP 502", "nothing"},
		{"/exceptions?risk=mismatch", "12.300", "nothing"},
		{"/exceptions?state=needs", "12.300", "nothing"},
		{"/callbacks?refused=no", "101.226.103.61", "203.0.113.9"},
		{"/callbacks?outcome=bad_signature", "203.0.113.9", "101.226.103.61"},
		{"/callbacks?no=2026112000000001", "101.226.103.61", "203.0.113.9"},
		{"/notifications?status=retry_wait&merchant=m1&type=order.paid", "HTTP 502", "nothing"},
		{"/notifications?status=delivered", "/notifications", "HTTP 502"},
		{"/notifications?no=2026112000000001", "HTTP 502", "nothing"},
		{"/exceptions?kind=unknown_order", "NO-SUCH-ORDER", "2026112000000003"}, // whose kind is in the lanes
	} {
		got := h.Page(t, cookie, c.path+"&lang=en")
		if got.Status != http.StatusOK || !strings.Contains(got.Body, c.holds) || strings.Contains(got.Body, c.not) {
			t.Errorf("%s: %d, contains %q %t, contains %q %t", c.path, got.Status, c.holds, strings.Contains(got.Body, c.holds), c.not,
				strings.Contains(got.Body, c.not))
		}
	}
	for _, no := range []string{"2026112000000001", "GX-88210477"} {
		if got := h.Page(t, cookie, "/orders?no="+no); got.Header.Get("Location") != "/orders/2026112000000001" {
			t.Errorf("the one order of %s: %d to %q", no, got.Status, got.Header.Get("Location"))
		}
	}
	var event int64
	if err := h.DB.NewRaw("SELECT subject_id FROM events").Scan(t.Context(), &event); err != nil {
		t.Fatal(err)
	}
	for q, want := range map[string]string{
		"2026112000000001": orderOne, "GX-88210477": orderOne, "000001": orderOne, notify.PublicID(event, "order.paid"): orderOne,
		"m1":            "/orders?merchant=m1",
		"NO-SUCH-ORDER": "/exceptions?no=NO-SUCH-ORDER", "nothing at all": "",
	} {
		if got := h.Page(t, cookie, "/search?q="+url.QueryEscape(q)); got.Header.Get("Location") != want || want == "" &&
			got.Status != http.StatusOK {
			t.Errorf("searching %s: %d to %q", q, got.Status, got.Header.Get("Location"))
		}
	}
	for path, want := range map[string]int{
		"/orders?cursor=!": 400, "/orders/none": 404, "/orders?status=%00": 422,
		"/exceptions?cursor=-1": 400, "/orders?window=2y": 422, "/orders?to=someday": 422,
	} {
		if got := h.Page(t, cookie, path); got.Status != want || !strings.Contains(got.Body, "</html>") {
			t.Errorf("%s: %d, want %d as a page", path, got.Status, want)
		}
	}
}

func TestAsynqmonHasAPolicyOfItsOwnAndChangesNothing(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Ops)
	got := h.Page(t, cookie, "/asynqmon/")
	policy := got.Header.Get("Content-Security-Policy")
	if got.Status != http.StatusOK || strings.Contains(got.Body, "fonts.example") || !strings.Contains(policy, "'sha256-") ||
		strings.Contains(policy, "script-src 'self' 'unsafe-inline'") {
		t.Errorf("%d %q under %q", got.Status, got.Body, policy)
	}
	if got := h.Page(t, cookie, "/asynqmon/api/queues"); got.Body != `{"queues":[]}` {
		t.Errorf("its API answers %d %q", got.Status, got.Body)
	}
	for _, method := range []string{http.MethodPost, http.MethodDelete, http.MethodPut} {
		if got := h.Call(t, method, "/asynqmon/api/queues/notify", "", "Cookie", cookie, "Sec-Fetch-Site",
			"same-origin"); got.Status != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, got.Status)
		}
	}
	if got := h.Page(t, h.SignIn(t, access.Viewer), "/asynqmon/"); got.Status != http.StatusForbidden {
		t.Errorf("a viewer: %d", got.Status)
	}
}
