package console

import (
	"context"
	"errors"
	"fmt"
	"html"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/queue"
	"backstop/internal/base/waittest"
	"backstop/internal/batch"
	"backstop/internal/console"
	"backstop/internal/decision"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/report"
	"backstop/web"
)

func number(t *testing.T, d *db.DB, query string) (n int64) {
	t.Helper()
	if err := d.Read.NewRaw(query).Scan(t.Context(), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func numbers(t *testing.T, d *db.DB, query string) (all []int64) {
	t.Helper()
	if err := d.Read.NewRaw(query).Scan(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func change(t *testing.T, d *db.DB, query string, args ...any) {
	t.Helper()
	if _, err := d.NewRaw(query, args...).Exec(context.Background()); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func TestOneCallbackShowsItsChecksAndHidesWhatOpensSomething(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	change(t, h.DB, "UPDATE callbacks SET headers = ? WHERE outcome = 'paid'",
		"Authorization: Bearer sk_live_secret\nX-Plain: unseen\nUser-Agent: seen")
	taken := fmt.Sprintf("/callbacks/%d", number(t, h.DB, "SELECT id FROM callbacks WHERE outcome = 'paid'"))
	refused := fmt.Sprintf("/callbacks/%d", number(t, h.DB, "SELECT id FROM refused_callbacks"))
	viewer, lead := h.SignIn(t, access.Viewer), h.SignIn(t, access.Lead)
	for _, c := range []struct {
		cookie, path string
		holds, not   []string
	}{
		{
			viewer, taken,
			[]string{"RSA-SHA256", orderOne, "SUCCESS", "User-Agent: seen"},
			[]string{"secret-openid", "sk_live_secret", "unseen"},
		},
		{lead, taken, []string{"SUCCESS"}, []string{"secret-openid", "sk_live_secret", "unseen"}},
		{viewer, refused, []string{"does not match the body", "was rejected"}, []string{"<b>forged"}},
	} {
		got := h.Page(t, c.cookie, c.path+"?lang=en")
		for _, text := range c.holds {
			if !strings.Contains(got.Body, text) {
				t.Errorf("%s: %d without %q", c.path, got.Status, text)
			}
		}
		for _, text := range c.not {
			if strings.Contains(got.Body, text) {
				t.Errorf("%s shows %q", c.path, text)
			}
		}
	}
	for _, path := range []string{
		"/callbacks/1", "/callbacks/x", "/exceptions/1", "/notifications/ntf_zz", "/notifications/x",
		"/batches/1", "/batches/bat_1",
	} {
		if got := h.Page(t, lead, path); got.Status != http.StatusNotFound {
			t.Errorf("%s: %d", path, got.Status)
		}
	}
}

func TestOneNotificationShowsEachAttempt(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	path := "/notifications/" + notify.PublicID(number(t, h.DB, "SELECT subject_id FROM events"), "order.paid")
	cookie := h.SignIn(t, access.Support)
	body := h.Page(t, cookie, path+"?lang=en").Body
	for _, text := range []string{
		"Attempt 1", "Attempt 2", "HTTP 502", "10.000 s", "Server: nginx", orderOne, "no answer in time",
		"3,499.00",
	} {
		if !strings.Contains(body, text) {
			t.Errorf("the page lacks %q", text)
		}
	}
	form := append(formOf(t, body, orderOne+"/resend"), "reason", "asked for by phone")
	if got := h.Post(t, cookie, orderOne+"/resend", form...); got.Status != http.StatusSeeOther {
		t.Errorf("sending again from its page: %d", got.Status)
	}
}

// over waits until a batch has ended.
func (h *harness) over(t *testing.T, path string) {
	t.Helper()
	id, ok := batch.ParseNo(strings.TrimPrefix(path, "/batches/"))
	if !ok || !waittest.Within(20*time.Second, func() bool {
		b, err := batch.Find(t.Context(), h.DB, id)
		return err != nil || b.State != batch.Running
	}) {
		t.Error("the batch does not end")
	}
}

// exhaust writes orders whose notifications are used up.
func exhaust(t *testing.T, d *db.DB, n int) {
	t.Helper()
	now := d.Now()
	for range n {
		o, id := d.NewID(), d.NewID()
		row := order.Order{
			ID: o, OrderNo: fmt.Sprint(o), OutTradeNo: fmt.Sprint(o), MerchantID: 2, SupplierID: 1, Amount: 1000,
			Currency: "CNY", Exponent: 2, Status: order.Paid, Version: 2, PaidAmount: 1000, CreatedAt: now,
		}
		told := notify.Delivery{
			ID: id, EventID: id, RecipientID: 2, SubjectID: o, EventType: "order.paid", Channel: notify.Webhook,
			Status: notify.Exhausted, Attempts: 4, CreatedAt: now, FinishedAt: &now, Currency: "CNY", Amount: 1000,
		}
		gone := exception.Item{
			ID: d.NewID(), Kind: exception.NotifyExhausted, State: "open", MerchantID: 2, OrderID: o,
			OrderNo: row.OrderNo, Subject: told.PublicID(), Amount: 1000, Currency: "CNY", Detail: exception.Detail(nil), Seen: 1,
			OpenedAt: now,
		}
		event := notify.Event{ID: id, MerchantID: 2, SubjectID: o, Type: "order.paid", Version: 2, Body: "{}", CreatedAt: now}
		for _, r := range []any{&row, &told, &gone, &event} {
			if _, err := d.NewInsert().Model(r).Exec(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestManyAreSentAgainAfterADryRunAReasonAndTheAmount(t *testing.T) {
	t.Parallel()
	var nudged atomic.Int64
	h := open(t)
	h.Nudge = func(n []queue.Nudge) { nudged.Add(int64(len(n))) }
	exhaust(t, h.DB, 30)
	cookie := h.SignIn(t, access.Ops)
	got := h.Post(t, cookie, "/batches/plan/notifications/resend?status=exhausted&merchant=m2", "pick", "all")
	plan := got.Header.Get("Location")
	if got.Status != http.StatusSeeOther || !strings.HasPrefix(plan, "/batches/bat_") {
		t.Fatalf("the dry run: %d to %q %s", got.Status, plan, got.Body)
	}
	exhaust(t, h.DB, 2) // after the plan
	if nudged.Load() != 0 || number(t, h.DB, "SELECT count(*) FROM deliveries WHERE status = 'exhausted'") != 32 {
		t.Error("the dry run sent something")
	}
	page := h.Page(t, cookie, plan+"?lang=en").Body
	if !strings.Contains(page, `data-typed="300.00"`) || !strings.Contains(page, "Will run") {
		t.Error("the plan does not require its amount")
	}
	form := formOf(t, h.Page(t, cookie, plan).Body, plan+"/start")
	run := func(cookie string, fields ...string) int {
		t.Helper()
		return h.Post(t, cookie, plan+"/start", append(append([]string{}, form...), fields...)...).Status
	}
	if got := run(cookie, "reason", "their server is back", "amount_CNY", "300"); got != http.StatusUnprocessableEntity {
		t.Errorf("with another amount: %d", got)
	}
	if got := run(cookie, "reason", "short", "amount_CNY", "300.00"); got != http.StatusUnprocessableEntity {
		t.Errorf("without a reason: %d", got)
	}
	if got := run(h.SignIn(t, access.Lead), "reason", "their server is back", "amount_CNY", "300.00"); got != http.StatusForbidden {
		t.Errorf("by another operator: %d", got)
	}
	if got := run(h.SignIn(t, access.Support), "reason", "their server is back", "amount_CNY", "300.00"); got != http.StatusForbidden {
		t.Errorf("by support: %d", got)
	}
	if nudged.Load() != 0 {
		t.Fatalf("%d were sent by what was refused", nudged.Load())
	}
	for range 2 { // a double click
		if got := run(cookie, "reason", "their server is back", "amount_CNY", "300.00"); got != http.StatusSeeOther {
			t.Fatalf("the run: %d", got)
		}
	}
	h.over(t, plan)
	if left := number(t, h.DB, "SELECT count(*) FROM deliveries WHERE status = 'exhausted'"); nudged.Load() != 30 || left != 2 {
		t.Errorf("%d were sent, %d left, want 30 and 2", nudged.Load(), left)
	}
	if page := h.Page(t, cookie, plan+"?lang=en").Body; !strings.Contains(page, "30 still waiting") {
		t.Error("the plan does not say what was done")
	}
	if n := number(t, h.DB, "SELECT count(*) FROM audit WHERE action = 'batch.start'"); n != 1 {
		t.Errorf("%d rows of the audit", n)
	}
	if n := number(t, h.DB, "SELECT count(*) FROM exceptions WHERE state = 'resolved'"); n != 30 {
		t.Errorf("%d left the exception desk", n)
	}
}

func TestPickedRowsAreSentWithoutTyping(t *testing.T) {
	t.Parallel()
	var nudged atomic.Int64
	h := open(t)
	h.Nudge = func(n []queue.Nudge) { nudged.Add(int64(len(n))) }
	exhaust(t, h.DB, 5)
	cookie := h.SignIn(t, access.Ops)
	boxes := regexp.MustCompile(`name="row" value="(\d+)"`).FindAllStringSubmatch(h.Page(t, cookie, "/notifications").Body, -1)
	if len(boxes) != 5 {
		t.Fatalf("%d rows can be picked", len(boxes))
	}
	plan := h.Post(t, cookie, "/batches/plan/notifications/resend", "pick", "rows", "row", boxes[1][1]).Header.Get("Location")
	form := append(formOf(t, h.Page(t, cookie, plan).Body, plan+"/start"), "reason", "asked for by phone")
	if got := h.Post(t, cookie, plan+"/start", form...); got.Status != http.StatusSeeOther {
		t.Errorf("the start: %d", got.Status)
	}
	if h.over(t, plan); nudged.Load() != 1 {
		t.Errorf("%d sent", nudged.Load())
	}
	for _, fields := range [][]string{{"pick", "rows"}, {"pick", "rows", "row", "x"}} {
		if got := h.Post(t, cookie, "/batches/plan/notifications/resend", fields...); got.Status != http.StatusUnprocessableEntity {
			t.Errorf("%v: %d", fields, got.Status)
		}
	}
	if page := h.Page(t, h.SignIn(t, access.Viewer), "/notifications").Body; strings.Contains(page, `name="row"`) ||
		strings.Contains(page, "/batches/plan") {
		t.Error("an operator without the permission is offered a bulk resend")
	}
}

// sumsOf adds up the money of a list over all of its pages.
func (h *harness) sumsOf(t *testing.T, cookie, path string) (orders int64, minor map[string]int64) {
	t.Helper()
	minor = map[string]int64{}
	money := regexp.MustCompile(`class="money" value="(-?\d+) ([A-Z]{3})"`)
	for pages := 0; path != "" && pages < 100; pages++ {
		body := h.Page(t, cookie, path).Body
		for _, row := range strings.Split(body, "<tr data-row")[1:] {
			orders++
			row, _, _ = strings.Cut(row, "</tr>")
			if m := money.FindStringSubmatch(row); m != nil {
				n, _ := strconv.ParseInt(m[1], 10, 64)
				minor[m[2]] += n
			}
		}
		path = links(body)["next"]
	}
	return orders, minor
}

// The parts of the money at risk sum up to the total, and each of its links and
// of those to what needs a person leads to exactly what it counts.
func TestEachLinkOfTheOverviewListsExactlyWhatItCounts(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	h.decideWith(twoPeople)
	exhaust(t, h.DB, 60)
	old := h.DB.Now() - 60*24*3600*1_000_000
	for i, status := range []order.Status{order.Paying, order.Closing, order.Paid} {
		id, due := db.IDAt(old)+int64(i), old
		o := order.Order{
			ID: id, OrderNo: fmt.Sprint("STUCK", i), OutTradeNo: fmt.Sprint(id), MerchantID: 1, SupplierID: 1, Amount: 700,
			Currency: "USD", Exponent: 2, Status: status, Version: 1, NextAt: &due, CreatedAt: old,
		}
		if _, err := h.DB.NewInsert().Model(&o).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	change(t, h.DB, "UPDATE exceptions SET state = 'assigned' WHERE kind = 'unknown_order'")
	// Money that was taken back does not count as money without an order.
	change(t, h.DB,
		"INSERT INTO exceptions (id, kind, state, subject, amount, currency, detail, opened_at, updated_at) VALUES (77, 'dispute_opened', 'open', 'du_1', 2500, 'CNY', '{}', ?, 0)", old)
	risk, err := report.AtRisk(t.Context(), h.DB)
	if err != nil {
		t.Fatal(err)
	}
	total := map[string]int64{}
	cookie := h.SignIn(t, access.Viewer)
	overview := h.Page(t, cookie, "/").Body
	for part, path := range map[report.Part]string{
		report.Unnotified: "/notifications?risk=untold", report.Compensated: "/exceptions?risk=compensated",
		report.Stuck: "/orders?risk=stuck", report.Mismatch: "/exceptions?risk=mismatch",
	} {
		if !strings.Contains(overview, `href="`+path+`"`) {
			t.Errorf("the overview does not lead to %s", path)
		}
		want := map[string]int64{}
		for _, s := range risk.Parts[part].Sums {
			want[s.Currency] = s.Minor
			total[s.Currency] += s.Minor
		}
		orders, minor := h.sumsOf(t, cookie, path)
		if orders != risk.Parts[part].Orders() || orders == 0 || !maps.Equal(minor, want) {
			t.Errorf("%s lists %d orders with %v; counted are %d with %v", path, orders, minor, risk.Parts[part].Orders(), want)
		}
	}
	for _, s := range risk.Total.Sums {
		if total[s.Currency] != s.Minor {
			t.Errorf("the parts sum up to %d %s, the total is %d", total[s.Currency], s.Currency, s.Minor)
		}
	}
	// What the part is made of adds up to it, and each kind leads to its own rows.
	whole := map[string]int64{}
	for kind, k := range risk.Kinds {
		path := "/exceptions?risk=mismatch&kind=" + kind
		if !strings.Contains(overview, html.EscapeString(path)) {
			t.Errorf("the overview does not lead to %s", path)
		}
		want := map[string]int64{}
		for _, s := range k.Sums {
			want[s.Currency] += s.Minor
			whole[s.Currency] += s.Minor
		}
		if n, minor := h.sumsOf(t, cookie, path); n != k.Orders() || !maps.Equal(minor, want) {
			t.Errorf("%s lists %d with %v; counted are %d with %v", path, n, minor, k.Orders(), want)
		}
	}
	for _, s := range risk.Parts[report.Mismatch].Sums {
		if whole[s.Currency] != s.Minor || len(risk.Kinds) != 2 {
			t.Errorf("the kinds add up to %d %s, the part is %d", whole[s.Currency], s.Currency, s.Minor)
		}
	}
	attention, err := h.Console.Attention(t.Context())
	if err != nil || len(attention.Lines) < 3 {
		t.Fatalf("to do are %v, %v", attention.Lines, err)
	}
	for _, x := range attention.Lines {
		if x.Matter == console.MatterApprovals {
			for role, sees := range map[string]bool{
				access.Lead: true, access.Finance: false,
				access.Ops: false,
			} { // a lead takes on what is not verified
				page := h.Page(t, h.SignIn(t, role), "/?lang=en").Body
				if len(x.Proposals.Rows) != 1 || sees != (strings.Contains(page, "Proposals that wait for you: 1") &&
					strings.Contains(page, `href="/approvals#yours"`)) {
					t.Errorf("the overview leads a %s to the %d proposals that wait: want %t", role, len(x.Proposals.Rows), sees)
				}
			}
			continue
		}
		path := "/exceptions?kind=" + x.Kind + "&state=needs"
		if !strings.Contains(overview, html.EscapeString(path)) {
			t.Errorf("the overview does not lead to %s", path)
		}
		want := map[string]int64{}
		for _, s := range x.Sums {
			want[s.Currency] = s.Minor
		}
		if n, minor := h.sumsOf(t, cookie, path); n != x.Count || !maps.Equal(minor, want) {
			t.Errorf("%s lists %d with %v; counted are %d with %v", path, n, minor, x.Count, want)
		}
	}
}

// TestAllProposalsThatWaitAreCounted: neither the to-do list nor the navigation counts a page of
// them.
func TestAllProposalsThatWaitAreCounted(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		lead := h.SignIn(t, access.Lead)
		for n := range 194 {
			change(t, d,
				"INSERT INTO approvals (id, action, object, object_id, order_no, version, amount, currency, params, reason, evidence, hash, maker, maker_kind, state, second, made_at, expires_at)"+
					" VALUES (?, 'refund', 'refund', ?, '', 1, 1250, 'CNY', '{}', 'because of a test', '', 'h', 1, 'merchant', 'waiting', TRUE, ?, ?)",
				d.NewID(), fmt.Sprint(n), d.Now(), d.Now()+time.Hour.Microseconds())
		}
		page := h.Page(t, lead, "/?lang=en").Body
		for _, want := range []string{"Proposals that wait for you: 194", "2,425.00"} {
			if !strings.Contains(page, want) {
				t.Errorf("the overview lacks %q", want)
			}
		}
		if badge := regexp.MustCompile(`(?s)<a class="nav" href="/exceptions"[^>]*>.*?</a>`).FindString(page); !strings.Contains(badge, "194") {
			t.Errorf("the navigation says %s", badge)
		}
		h.drawsOnce(t, lead)
	})
}

// drawsOnce checks that the list of proposals has each row once, and not too many elements.
func (h *harness) drawsOnce(t *testing.T, cookie string) {
	t.Helper()
	page, seen := h.Page(t, cookie, "/approvals?lang=en").Body, map[string]bool{}
	for _, row := range regexp.MustCompile(`(?s)<tr data-row.*?</tr>`).FindAllString(page, -1) {
		no := regexp.MustCompile(`/approvals/apr_\d+`).FindString(row)
		if no == "" || seen[no] {
			t.Errorf("%q is drawn twice", no)
		}
		seen[no] = true
	}
	if nodes := len(regexp.MustCompile(`<[a-z]`).FindAllString(page, -1)); len(seen) < 50 || nodes > 3500 {
		t.Errorf("the list has %d rows and %d elements", len(seen), nodes)
	}
	if !strings.Contains(page, `data-fact="/approvals#yours">194<`) {
		t.Error("the list does not say how many wait for the viewer")
	}
}

func TestTroubleIsSaidOnEachPageAndNobodyActsMeanwhile(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	seen := append(h.details(t), allPages...)
	for _, path := range morePages {
		seen = append(seen, namedPage{path: path})
	}
	cookie := h.SignIn(t, access.Support)
	readers := map[string]string{access.Support: cookie, access.Lead: h.SignIn(t, access.Lead), access.Admin: h.SignIn(t, access.Admin)}
	form := append(formOf(t, h.Page(t, cookie, orderOne).Body, orderOne+"/note"), "reason", "long enough to read")
	down := ""
	check := func(name string) web.Check {
		return web.Check{Name: name, Run: func(context.Context) error {
			if name == down {
				return map[bool]error{true: db.ErrReadOnly, false: errors.New("it is down")}[name == "writable"]
			}
			return nil
		}}
	}
	for name, says := range map[string]string{
		"redis": "Redis cannot be reached", "writable": "The database is read-only.", "database": "The database does not answer in time.",
	} {
		down = name
		h.Ready = web.NewReadiness([]web.Check{check("database"), check("writable"), check("redis")})
		h.Ready.Ask()
		for _, p := range allPages {
			if got := h.Page(t, cookie, p.path); p.name != "audit" &&
				(got.Status != http.StatusOK || !strings.Contains(h.Page(t, cookie, "/orders?lang=en").Body, says)) {
				t.Errorf("%s with %s down: %d", p.path, name, got.Status)
			}
		}
		for role, cookie := range readers {
			for _, p := range seen {
				if all := acting(t, h.Page(t, cookie, p.path).Body); len(all) > 0 {
					t.Errorf("%s with %s down offers %s %s", p.path, name, role, all)
				}
			}
		}
		if got := h.Post(t, cookie, orderOne+"/note", form...); got.Status != http.StatusServiceUnavailable {
			t.Errorf("an act with %s down: %d", name, got.Status)
		}
		if got := h.Post(t, cookie, "/me", "theme", "dark"); got.Status != http.StatusSeeOther {
			t.Errorf("one's own settings with %s down: %d", name, got.Status)
		}
	}
	down = ""
	h.Ready = web.NewReadiness([]web.Check{check("redis")})
	h.Ready.Ask()
	if got := h.Post(t, cookie, orderOne+"/note", form...); got.Status != http.StatusSeeOther {
		t.Errorf("an act after recovery: %d", got.Status)
	}
	for role, cookie := range readers {
		if !slices.ContainsFunc(seen, func(p namedPage) bool { return len(acting(t, h.Page(t, cookie, p.path).Body)) > 0 }) {
			t.Errorf("after recovery no page offers %s an act", role)
		}
	}
}

// A type of message that is never about money here is ignored once; money is not.
func TestATypeOfMessageIsIgnoredForGood(t *testing.T) {
	t.Parallel()
	h := open(t)
	report := func(kind, subject string) string {
		t.Helper()
		x := &exception.Item{Kind: kind, SupplierID: 1, Subject: subject, Detail: exception.Detail(map[string]any{"type": subject})}
		if kind == exception.DisputeOpened {
			x.Amount, x.Currency = 5, "CNY"
		}
		err := h.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			w := tx.Writes()
			exception.Open(tx, w, h.DB, []*exception.Item{x})
			return w.Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("/exceptions/%d", x.ID)
	}
	path, money := report(exception.UnknownEvent, "payout.paid"), report(exception.DisputeOpened, "du_1")
	ops := h.SignIn(t, access.Ops)
	h.SignIn(t, access.Support)
	id := strings.TrimPrefix(path, "/exceptions/")
	wish := func(by, id, amount string) (*approval.Approval, error) {
		op := number(t, h.DB, "SELECT id FROM operators WHERE name = 'the."+by+"'")
		return h.Approvals.Propose(t.Context(), approval.Proposal{
			Action: decision.Ignore, Object: decision.OfException, ObjectID: id, Reason: "our own payouts, seen elsewhere", Amount: amount,
			By: act.Actor{Name: "operator:the." + by, ID: op, Roles: access.RolesOf(by)},
		})
	}
	var denied *act.Denied
	if _, err := wish(access.Ops, strings.TrimPrefix(money, "/exceptions/"), "0.05"); !errors.As(err, &denied) {
		t.Errorf("a dispute is ignored by ops: %v", err)
	}
	if _, err := wish(access.Support, id, ""); !errors.As(err, &denied) {
		t.Errorf("without the permission: %v", err)
	}
	if a, err := wish(access.Ops, id, ""); err != nil || a.State != approval.Done {
		t.Errorf("ignored: %+v, %v", a, err)
	}
	report(exception.UnknownEvent, "payout.paid")
	page := h.Page(t, ops, path+"?lang=en").Body
	for _, text := range []string{"Ignored", "payout.paid"} {
		if !strings.Contains(page, text) {
			t.Errorf("the page lacks %q", text)
		}
	}
	if n := number(t, h.DB, "SELECT count(*) FROM exceptions WHERE state = 'ignored' AND seen = 2"); n != 1 {
		t.Errorf("%d rows are quiet and counted", n)
	}
}
