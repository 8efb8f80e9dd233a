package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/console"
	"backstop/internal/exception"
	"backstop/internal/order"
	"backstop/internal/settings"
	"backstop/internal/supplier"
	"backstop/web/webtest"

	"github.com/uptrace/bun"
)

// decideWith gives the console decisions about exceptions and orders that end exceptions
// alone: what they do to money is the business of others.
func (h *harness) decideWith(rules settings.Rules) {
	find := func(ctx context.Context, q bun.IDB, id string) (act.Subject, error) {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return act.Subject{}, act.ErrNotFound
		}
		x, err := exception.Find(ctx, q, n)
		if err != nil {
			return act.Subject{}, act.ErrNotFound
		}
		return act.Subject{
			Row: n, ID: id, Version: x.Version, Amount: x.Amount, Currency: x.Currency, MerchantID: x.MerchantID,
			OrderNo: x.OrderNo, Value: x,
		}, nil
	}
	accept := act.Kind{
		Name: "accept_amount", Object: "exception", Permission: access.ProposeMoney, Load: act.ByID(find),
		Params: act.ParamsOf[struct {
			Amount int64 `json:"amount" kind:"money"`
		}](),
		Second: &act.Second{
			Approve: access.ApproveMoney, Unverified: true,
			Applies: func(s act.Subject) bool {
				x := s.Value.(*exception.Item)
				return x.Kind == exception.AmountMismatch && exception.Moves.Can(x.State, exception.Proposed)
			},
			Reserve: func(ctx context.Context, tx db.Tx, _ *act.Proposed, s act.Subject) error {
				return exception.Hold(ctx, tx, h.DB, s.Row, s.Version)
			},
			Release: func(ctx context.Context, tx db.Tx, _ *act.Proposed, s act.Subject) error {
				return exception.Free(ctx, tx, h.DB, s.Row)
			},
			Query: func(context.Context, act.Subject, any) (*act.Live, error) { return h.answers, nil },
		},
		Do: act.Each(func(ctx context.Context, tx db.Tx, in act.Input, s act.Subject) (act.Outcome, error) {
			if h.refuses != nil {
				return act.Outcome{}, h.refuses
			}
			return act.Outcome{Details: map[string]any{"status": "paid"}},
				exception.Decide(ctx, tx, h.DB, s.Row, s.Version, exception.Resolved, in.Proposed.ID, "accepted", "")
		}),
	}
	paid := act.Kind{
		Name: "mark_paid", Object: "order", Permission: access.ProposeMoney,
		Params: act.ParamsOf[struct {
			TradeNo string `json:"trade_no" max:"128"`
			Amount  int64  `json:"amount" kind:"money"`
		}](),
		Load: act.ByID(func(ctx context.Context, q bun.IDB, no string) (act.Subject, error) {
			o, err := order.ByNo(ctx, q, no)
			if err != nil {
				return act.Subject{}, act.ErrNotFound
			}
			return act.Subject{
				ID: no, Version: o.Version, Amount: o.Amount, Currency: o.Currency, MerchantID: o.MerchantID, OrderNo: no, Value: o,
			}, nil
		}),
		Second: &act.Second{
			Approve: access.ApproveMoney, Evidence: true, Unverified: true,
			Applies: func(s act.Subject) bool { return s.Value.(*order.Order).Status.Open() },
		},
		Do: act.Each(func(context.Context, db.Tx, act.Input, act.Subject) (act.Outcome, error) { return act.Outcome{}, nil }),
	}
	h.Approvals = approval.NewDesk(approval.Options{
		DB: h.DB, Audit: h.Audit, Policy: h.Policy, Operators: h.Operators, Life: 24 * time.Hour, Log: h.Log,
		Rules: func() settings.Rules { return rules },
	}, accept, paid)
}

var twoPeople = settings.Rules{SecondPerson: true}

// person is one operator at the console.
func (h *harness) person(t *testing.T, name, role string) (cookie string) {
	t.Helper()
	if _, err := h.Operators.Add(t.Context(), name, role, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	change(t, h.DB, "UPDATE operators SET must_change = FALSE WHERE name = ?", name)
	got := h.Call(t, http.MethodPost, "/login", "name="+name+"&password="+webtest.GoodPassword, "Content-Type",
		"application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
	cookie, _, _ = strings.Cut(got.Header.Get("Set-Cookie"), ";")
	if got.Status != http.StatusSeeOther || cookie == "" {
		t.Fatalf("%s signs in: %d", name, got.Status)
	}
	return cookie
}

// sends posts a form of a page with its hidden fields, and checks the status.
func (h *harness) sends(t *testing.T, cookie, page, action string, want int, fields ...string) webtest.Answer {
	t.Helper()
	form := []string{"form_key", "none " + action}
	if body := h.Page(t, cookie, page).Body; strings.Contains(body, `action="`+action+`"`) {
		form = formOf(t, body, action)
	}
	got := h.Post(t, cookie, action, append(form, fields...)...)
	if got.Status != want {
		t.Errorf("%s with %v: %d, want %d", action, fields, got.Status, want)
	}
	return got
}

func TestADecisionIsProposedByOneAndApprovedByAnother(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		seed(t, h.DB)
		change(t, h.DB, "DELETE FROM approvals")
		h.decideWith(twoPeople)
		xu, min, bo, ops := h.person(t, "xu", access.Finance), h.person(t, "min", access.Finance), h.person(t, "bo", access.Lead),
			h.SignIn(t, access.Ops)
		x := h.on(t, exception.AmountMismatch).path
		propose := x + "/propose"
		why := []string{"reason", "agreed with the merchant by phone"}
		if page := h.Page(t, ops, x+"?lang=en").Body; strings.Contains(page, propose) ||
			!strings.Contains(page, "only Finance · Finance lead may propose") {
			t.Error("ops is offered to decide about money")
		}
		h.sends(t, ops, x, propose, http.StatusForbidden, append(why, "action", "accept_amount", "version", "1", "amount", "12.300")...)
		for field, wrong := range map[string][]string{
			"金额": append(why, "amount", "12.301"), "原因": {"reason", "short", "amount", "12.300"},
			"操作": append(why, "amount", "12.300", "action", "nonsense"),
		} {
			form := formOf(t, h.Page(t, xu, x).Body, propose)
			if wrong[len(wrong)-1] == "nonsense" {
				form = []string{"form_key", "k", "version", "1"}
			}
			if got := h.Post(t, xu, propose, append(form, wrong...)...); got.Status != http.StatusUnprocessableEntity ||
				!strings.Contains(got.Body, field) {
				t.Errorf("%v: %d without the field %s", wrong, got.Status, field)
			}
		}
		form := append(formOf(t, h.Page(t, xu, x).Body, propose), append(why, "amount", "12.300")...)
		var at string
		for range 2 { // a double click
			got := h.Post(t, xu, propose, form...)
			at, _, _ = strings.Cut(got.Header.Get("Location"), "?")
			if got.Status != http.StatusSeeOther || !strings.HasPrefix(at, "/approvals/apr_") {
				t.Fatalf("propose: %d to %s: %s", got.Status, at, got.Body)
			}
		}
		if n := number(t, h.DB, "SELECT count(*) FROM approvals WHERE state = 'waiting' AND amount = 12300"); n != 1 {
			t.Fatalf("%d proposals wait", n)
		}
		shows := func(cookie, path string, want bool, texts ...string) {
			t.Helper()
			page := h.Page(t, cookie, path+"?lang=en").Body
			for _, text := range texts {
				if strings.Contains(page, text) != want {
					t.Errorf("%s shows %q: %t", path, text, !want)
				}
			}
		}
		shows(xu, at, false, at+"/approve", at+"/reject")
		shows(xu, at, true, at+"/withdraw", "This is your own proposal", "Roles that may: Finance lead")
		shows(min, at, false, at+"/approve", at+"/withdraw") // a lead approves what finance proposes
		shows(bo, at, true, at+"/approve", at+"/reject", "xu", "12.300", "agreed with the merchant by phone", "Version of the object")
		shows(bo, at, false, at+"/withdraw")
		shows(bo, "/", true, "Proposals that wait for you: 1")
		shows(xu, "/", false, "Proposals that wait")
		shows(xu, x, false, `name="action"`, x+"/assign")
		shows(xu, x, true, "waits for a second person", `href="`+at+`"`)
		shows(xu, "/orders/2026112000000003", true, "xu has proposed: Accept the amount paid. It waits for Finance lead until")
		shows(xu, "/orders/2026112000000003", false, "A person is needed now: refund the money or accept it")
		hash := formOf(t, h.Page(t, bo, at).Body, at+"/approve")[3]
		if len(hash) != 64 {
			t.Fatalf("the form's hash is %q", hash)
		}
		if got := h.sends(t, xu, at, at+"/approve", http.StatusForbidden, append(why, "hash", hash)...); !strings.Contains(got.Body,
			"另一个人复核") {
			t.Errorf("their own proposal: %s", got.Body)
		}
		h.sends(t, min, at, at+"/approve", http.StatusForbidden, append(why, "hash", hash)...)
		h.sends(t, ops, at, at+"/approve", http.StatusForbidden, append(why, "hash", hash)...)
		key := formOf(t, h.Page(t, bo, at).Body, at+"/approve")[:2]
		if got := h.Post(t, bo, at+"/approve",
			append(key, append(why, "hash", strings.Repeat("0", 64))...)...); got.Status != http.StatusConflict {
			t.Errorf("another hash: %d", got.Status)
		}
		h.sends(t, bo, at, at+"/withdraw", http.StatusForbidden, why...)
		if n := number(t, h.DB, "SELECT count(*) FROM approvals WHERE state = 'waiting'"); n != 1 {
			t.Fatal("a refusal changed it")
		}
		approve := append(formOf(t, h.Page(t, bo, at).Body, at+"/approve"), "reason", "compared with their console")
		for range 2 {
			if got := h.Post(t, bo, at+"/approve", approve...); got.Status != http.StatusSeeOther ||
				!strings.HasPrefix(got.Header.Get("Location"), at) {
				t.Fatalf("approve: %d %s", got.Status, got.Body)
			}
		}
		shows(xu, at, true, "It took effect", "compared with their console", "bo", hash)
		shows(bo, at, false, at+"/approve", at+"/reject", at+"/again")
		if attention, err := h.Console.Attention(t.Context()); err != nil ||
			slices.ContainsFunc(attention.Lines, func(x console.Todo) bool { return x.Matter == console.MatterApprovals }) {
			t.Errorf("a proposal still waits: %v", err)
		}
		shows(bo, x, true, "xu → bo", "Decided by", "Resolved")
		shows(bo, "/orders/2026112000000003", true, "xu → bo", `href="`+at+`"`)
		if n := number(t, h.DB, "SELECT count(*) FROM exceptions WHERE state = 'resolved' AND decided_by > 0"); n != 1 {
			t.Errorf("%d exceptions are resolved", n)
		}
		if page := rowsOf(h.Page(t, bo, "/audit?object=approval&lang=en").Body); strings.Count(page, "approved it") != 1 ||
			strings.Count(page, "proposed it") != 1 {
			t.Error("the audit does not contain each step once")
		}
	})
}

func TestAProposalIsRejectedOrTakenBack(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	change(t, h.DB, "DELETE FROM approvals")
	h.decideWith(twoPeople)
	xu, bo := h.person(t, "xu", access.Finance), h.person(t, "bo", access.Lead)
	no := "/orders/2026112000000002"
	for _, end := range []struct{ cookie, verb, state string }{{xu, "withdraw", "withdrawn"}, {bo, "reject", "rejected"}} {
		got := h.sends(t, xu, no, no+"/propose", http.StatusSeeOther, "reason", "their mail of yesterday says so", "amount", "1980",
			"params.trade_no", " T-77 ",
			"params.evidence", "line 12 <b>", "params.unverified", "1")
		at, _, _ := strings.Cut(got.Header.Get("Location"), "?")
		if page := h.Page(t, bo, at+"?lang=en").Body; !strings.Contains(page, "line 12 &lt;b&gt;") || !strings.Contains(page, ">T-77<") ||
			!strings.Contains(page, "only a lead may approve it") {
			t.Error("the page does not say what is proposed")
		}
		var params struct {
			Amount  int64
			TradeNo string `json:"trade_no"`
		}
		var raw string
		if err := h.DB.NewRaw("SELECT params FROM approvals ORDER BY id DESC LIMIT 1").Scan(t.Context(), &raw); err != nil ||
			json.Unmarshal([]byte(raw), &params) != nil || params.Amount != 1980 || params.TradeNo != "T-77" {
			t.Errorf("the parameters are %s, %v", raw, err)
		}
		h.sends(t, xu, no, no+"/propose", http.StatusConflict, "reason", "their mail of yesterday says so", "amount", "1980",
			"params.trade_no", "T", "params.evidence", "e")
		h.sends(t, end.cookie, at, at+"/"+end.verb, http.StatusSeeOther, "reason", "it was another order")
		if n := number(t, h.DB, fmt.Sprintf("SELECT count(*) FROM approvals WHERE state = '%s'", end.state)); n != 1 {
			t.Errorf("%d are %s", n, end.state)
		}
	}
	for filter, want := range map[string]int{
		"state=waiting": 0, "state=rejected": 1, "maker=xu": 2, "maker=bo": 0, "action=mark_paid": 2,
		"action=accept_late": 0, "state=rejected&maker=xu": 1,
	} {
		if page := h.Page(t, bo, "/approvals?"+filter).Body; strings.Count(page, "<tr data-row") != want {
			t.Errorf("%s lists %d, want %d", filter, strings.Count(page, "<tr data-row"), want)
		}
	}
	for path, want := range map[string]int{
		"/approvals?state=done&maker=%00": 422, "/approvals?state=open": 422, "/approvals/apr_1": 404,
		"/approvals/1": 404, "/approvals/apr_x": 404,
	} {
		if got := h.Page(t, bo, path); got.Status != want {
			t.Errorf("%s: %d, want %d", path, got.Status, want)
		}
	}
}

// What failed is run again by who approved it, or another one who may, and by nobody else.
func TestAFailedDecisionIsRunAgain(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	change(t, h.DB, "DELETE FROM approvals")
	h.decideWith(twoPeople)
	xu, bo, ops := h.person(t, "xu", access.Finance), h.person(t, "bo", access.Lead), h.SignIn(t, access.Ops)
	x := h.on(t, exception.AmountMismatch).path
	got := h.sends(t, xu, x, x+"/propose", http.StatusSeeOther, "reason", "agreed with the merchant by phone", "amount", "12.300")
	at, _, _ := strings.Cut(got.Header.Get("Location"), "?")
	why := []string{"reason", "compared with their console"}
	h.refuses = errors.New("the shelf is empty")
	h.sends(t, bo, at, at+"/approve", http.StatusSeeOther, why...)
	for name, cookie := range map[string]string{"the maker": xu, "ops": ops} {
		if page := h.Page(t, cookie, at+"?lang=en").Body; strings.Contains(page, at+"/again") ||
			!strings.Contains(page, "the shelf is empty") || !strings.Contains(page, "run 1 of at most 3") {
			t.Errorf("what %s sees of a failed one", name)
		}
		hash := formOf(t, h.Page(t, bo, at).Body, at+"/again")[3]
		h.sends(t, cookie, at, at+"/again", http.StatusForbidden, append(why, "hash", hash)...)
	}
	h.sends(t, bo, at, at+"/again", http.StatusSeeOther, why...)
	h.refuses = nil
	again := append(formOf(t, h.Page(t, bo, at).Body, at+"/again"), why...)
	for range 2 { // a double click
		if got := h.Post(t, bo, at+"/again", again...); got.Status != http.StatusSeeOther {
			t.Errorf("again: %d %s", got.Status, got.Body)
		}
	}
	if n := number(t, h.DB, "SELECT count(*) FROM approvals WHERE state = 'done' AND tries = 3"); n != 1 {
		t.Errorf("%d are done", n)
	}
	if page := h.Page(t, bo, at+"?lang=en").Body; !strings.Contains(page, "It took effect") || strings.Contains(page, at+"/again") {
		t.Error("the page does not say that it is done")
	}
	if page := h.Page(t, bo, "/orders/2026112000000003?lang=en").Body; !strings.Contains(page, "run 3 of at most 3") {
		t.Error("the story does not say how often it ran")
	}
	if page := rowsOf(h.Page(t, bo, "/audit?object=approval&lang=en").Body); strings.Count(page, "ran it again") != 2 ||
		strings.Count(page, "approved it") != 1 {
		t.Error("the audit does not contain each run")
	}
}

// A proposal that the supplier's answer refuses says which of two it was: contrary or unclear.
func TestARefusedProposalSaysWhatTheSupplierSaid(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	change(t, h.DB, "DELETE FROM approvals")
	h.decideWith(twoPeople)
	xu, x := h.person(t, "xu", access.Finance), h.on(t, exception.AmountMismatch).path
	for said, texts := range map[supplier.AnswerState][2]string{
		supplier.AnswerClosed:  {"渠道查询结果与提议相反", "渠道查询结果：已关闭"},
		supplier.AnswerUnknown: {"渠道无法查询或没有给出明确结果", "由财务主管复核"},
	} {
		h.answers = &act.Live{Answer: string(said), Contradicts: true}
		got := h.sends(t, xu, x, x+"/propose", http.StatusConflict, "reason", "agreed with the merchant by phone", "amount", "12.300")
		for _, text := range texts {
			if !strings.Contains(got.Body, text) {
				t.Errorf("after the answer %s the page does not say %q", said, text)
			}
		}
	}
}

// An exception about the books leads to the rows that differ.
func TestDifferencesLeadToTheirRows(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	change(t, h.DB,
		"INSERT INTO exceptions (id, kind, state, supplier_id, merchant_id, order_id, order_no, subject, amount, currency, detail, seen, opened_at, updated_at)"+
			" VALUES (77, 'books_differ', 'open', 0, 0, 0, '', 'I3', 0, '', ?, 1, 1, 1)",
		`{"what":"I3","detail":"orders are paid at most once: 4 violations","rows":[`+
			`{"object":"order","id":"2026112000000003"},{"object":"trade","id":"T 7"},{"object":"account","id":"merchant:m1 CNY"},{"object":"exception","id":"12"},{"object":"approval","id":"apr_9"},{"object":"callback","id":"5"}]}`)
	cookie := h.SignIn(t, access.Ops)
	for lang, title := range map[string]string{"en": "Rows that differ", "zh": "不一致的记录"} {
		page := h.Page(t, cookie, "/exceptions/77?lang="+lang).Body
		for _, want := range []string{
			title, `href="/orders/2026112000000003"`, `href="/search?q=T+7"`, "merchant:m1 CNY",
			`href="/exceptions/12"`, `href="/approvals/apr_9"`, `href="/callbacks/5"`,
		} {
			if !strings.Contains(page, want) {
				t.Errorf("%s: %s is missing", lang, want)
			}
		}
		if strings.Contains(page, "map[") {
			t.Errorf("%s: the rows are shown as they are stored", lang)
		}
	}
}

// The page says why nothing can be attached, and what is accepted instead of the message.
func TestAnExceptionWithoutItsMessageSaysSo(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	change(t, h.DB, "UPDATE exceptions SET payload = ''")
	cookie := h.SignIn(t, access.Lead)
	for kind, want := range map[string]string{
		exception.UnknownOrder:   "it cannot be attached to an order",
		exception.AmountMismatch: "amount shown above", exception.LatePayment: "amount shown above",
	} {
		change(t, h.DB,
			"INSERT INTO exceptions (id, kind, state, supplier_id, merchant_id, order_id, order_no, subject, amount, currency, detail, seen, opened_at, updated_at)"+
				" VALUES (?, ?, 'open', 1, 0, 0, 'gone', 'T', 1999, 'CNY', '{}', 1, 1, 1)", 900+len(kind), kind)
		if page := h.Page(t, cookie, fmt.Sprintf("/exceptions/%d?lang=en", 900+len(kind))).Body; !strings.Contains(page, want) {
			t.Errorf("%s: the page lacks %q", kind, want)
		}
	}
}

func TestAnExceptionShowsWhatItsMessageSaid(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	change(t, h.DB,
		"INSERT INTO exceptions (id, kind, state, supplier_id, merchant_id, order_id, order_no, subject, amount, currency, detail, seen, opened_at, updated_at, payload)"+
			" VALUES (901, 'unknown_order', 'open', 1, 0, 0, 'R-9', 'T-9', 1999, 'CNY', '{}', 1, 1, 1, ?)",
		`{"account":"1","event_key":"k","reference":"R-9","trade_no":"T-9","amount":1999,"currency":"CNY","status":"paid","raw_status":"OK","identity":{"seller":"S-1","app":"A-1"},"occurred_at":null}`)
	page := h.Page(t, h.SignIn(t, access.Lead), "/exceptions/901?lang=en").Body
	for _, want := range []string{"Number in the message", ">R-9<", ">T-9<", "app A-1 · seller S-1"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(page, "no longer available") {
		t.Error("stored content is reported as lost")
	}
}

// What a batch and a change of settings are about is said in words.
func TestAProposalSaysInWordsWhatItIsAbout(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	cookie := h.SignIn(t, access.Lead)
	for id, c := range map[int64]struct {
		action, object, params string
		want                   []string
	}{
		71: {
			"batch", "batch",
			`{"action":"resend","below":"9","filter":"/notifications?merchant=m1","object":"delivery","rows":1056,"sums":[{"amount":1225450,"currency":"CNY","rows":51},{"amount":400,"currency":"USD","rows":5}]}`,
			[]string{"Send notifications again", "1,056", "12,254.50 CNY (51)", "4.00 USD (5)", "/notifications?merchant=m1"},
		},
		72: {
			"settings.change", "setting",
			`{"changes":[{"field":"notify.urls","old":"[https://a.example]","new":"[https://b.example]"}],"digest":"ab12"}`,
			[]string{"notify.urls", "[https://a.example] → [https://b.example]", "Digest of the new values"},
		},
	} {
		change(t, h.DB,
			"INSERT INTO approvals (id, action, object, object_id, version, amount, currency, params, reason, evidence, hash, maker, state, made_at, expires_at)"+
				" VALUES (?, ?, ?, 'x', 1, 0, '', ?, 'they asked for it', '', 'h', 1, 'expired', 1, 2)", id, c.action, c.object, c.params)
		page := h.Page(t, cookie, fmt.Sprintf("/approvals/apr_%d?lang=en", id)).Body
		for _, want := range c.want {
			if !strings.Contains(page, strings.ReplaceAll(want, "&", "&amp;")) {
				t.Errorf("%s: %q is missing", c.action, want)
			}
		}
		if strings.Contains(page, "What the supplier says") || strings.Contains(page, "map[") || strings.Contains(page, "&#34;currency") {
			t.Errorf("%s shows what it is not about, or JSON", c.action)
		}
	}
}

func TestAHouseOfOneSaysSoWhereverItDecides(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	change(t, h.DB, "DELETE FROM approvals")
	h.decideWith(settings.Rules{Above: map[string]settings.Above{"KWD": {Amount: 100_000}}})
	bo := h.person(t, "bo", access.Lead)
	x := h.on(t, exception.AmountMismatch).path
	got := h.sends(t, bo, x, x+"/propose", http.StatusSeeOther, "reason", "nobody else is here today", "amount", "12.300")
	at, _, _ := strings.Cut(got.Header.Get("Location"), "?")
	for _, path := range []string{at, "/approvals", x, "/orders/2026112000000003"} {
		if page := h.Page(t, bo, path+"?lang=en").Body; !strings.Contains(page, "Decided by one person") {
			t.Errorf("%s does not say that one person decided", path)
		}
	}
}

// rowsOf returns the rows of a page's table, without the filter above them.
func rowsOf(page string) string {
	_, rows, _ := strings.Cut(page, "<tbody")
	return rows
}
