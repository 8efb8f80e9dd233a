package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/fund/adjust"
	"backstop/internal/ledger"
	"backstop/internal/settings"
	"backstop/web/webtest"
)

// book posts an opening balance of m1, folded, and lets two people decide about money.
func (h *harness) book(t *testing.T) {
	t.Helper()
	l := ledger.New(h.DB)
	err := h.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		if err := l.Post(ctx, tx, w, []ledger.Entry{{
			Debit: ledger.Opening, Credit: "merchant:m1", Amount: 5000, Currency: "CNY",
			Ref: "opening:m1:CNY",
		}}); err != nil {
			return err
		}
		return w.Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Fold(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.Approvals = approval.NewDesk(approval.Options{
		DB: h.DB, Audit: h.Audit, Policy: h.Policy, Rules: func() settings.Rules { return settings.Rules{SecondPerson: true} },
		Life:      time.Hour,
		Operators: h.Operators, Log: h.Log,
	}, adjust.Kinds(h.DB, l)...)
}

func wantJSON(t *testing.T, got webtest.Answer, status int, want string) {
	t.Helper()
	if got.Status != status || !strings.Contains(got.Body, want) {
		t.Errorf("%d %s\nwant %d %s", got.Status, got.Body, status, want)
	}
}

func TestAMerchantReadsItsBalanceAndItsDay(t *testing.T) {
	t.Parallel()
	h := open(t)
	wantJSON(t, h.Api(t, webtest.KeyOfGalaxy, "GET", "/api/v1/balance", ""), 200, `{"items":[]}`)
	h.book(t)
	wantJSON(t, h.Api(t, webtest.KeyOfGalaxy, "GET", "/api/v1/balance", ""), 200,
		`{"items":[{"currency":"CNY","available":5000,"pending":0,"frozen":0,"reserved":0,"in_transit":0}]}`)
	day := time.UnixMicro(h.DB.Now()).In(h.Config.Timezone).Format(time.DateOnly)
	got := h.Api(t, webtest.KeyOfGalaxy, "GET", "/api/v1/statement?currency=CNY&day="+day, "")
	wantJSON(t, got, 200, `{"day":"`+day+`","currency":"CNY","opening":0,"closing":5000,"credits":5000,"debits":0,"items":[{"id":`)
	wantJSON(t, got, 200, `"kind":"opening","ref":"opening:m1:CNY","order_no":null,"amount":5000,"fee":0,"balance":5000}],"next":null}`)
	wantJSON(t, h.Api(t, webtest.KeyOfGalaxy, "GET", "/api/v1/statement?currency=CNY&day=2020-01-01", ""), 200,
		`"opening":0,"closing":0,"credits":0,"debits":0,"items":[],"next":null}`)
	for query, want := range map[string]string{
		"currency=CNY":                        "422 invalid_field day",
		"currency=CNY&day=yesterday":          "422 invalid_field day",
		"day=" + day:                          "422 invalid_field currency",
		"currency=XXX&day=" + day:             "422 invalid_field currency",
		"currency=CNY&limit=0&day=" + day:     "422 invalid_field limit",
		"currency=CNY&merchant=m2&day=" + day: "422 invalid_field merchant",
	} {
		if got := h.Api(t, webtest.KeyOfGalaxy, "GET", "/api/v1/statement?"+query, "").Problem(); got != want {
			t.Errorf("%s is answered with %s, want %s", query, got, want)
		}
	}
}

func TestAccountsAndTheirLinesAreListed(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.book(t)
	const accounts = "/api/v1/admin/accounts"
	wantJSON(t, h.Api(t, webtest.MonitorToken, "GET", accounts+"?code=merchant:m1", ""), 200,
		`{"items":[{"code":"merchant:m1","currency":"CNY","balance":5000,"folded_at":"`)
	wantJSON(t, h.Api(t, webtest.MonitorToken, "GET", accounts+"?currency=USD", ""), 200, `{"items":[],"next":null}`)
	lines := accounts + "/" + url.PathEscape("merchant:m1") + "/lines?currency=CNY"
	wantJSON(t, h.Api(t, webtest.MonitorToken, "GET", lines, ""), 200,
		`"ref":"opening:m1:CNY","kind":"opening","other":"opening","amount":5000,"currency":"CNY","balance":5000}],"next":null}`)
	wantJSON(t, h.Api(t, webtest.MonitorToken, "GET", lines+"&to=2020-01-01T00:00:00Z", ""), 200, `{"items":[],"next":null}`)
	for path, want := range map[string]string{
		accounts + "/merchant:m1/lines":              "422 invalid_field currency",
		accounts + "/merchant:m9/lines?currency=CNY": "404 not_found",
		lines + "&from=now":                          "422 invalid_field from",
		accounts + "?name=x":                         "422 invalid_field name",
	} {
		if got := h.Api(t, webtest.MonitorToken, "GET", path, "").Problem(); got != want {
			t.Errorf("%s is answered with %s, want %s", path, got, want)
		}
	}
}

func TestTwoPeopleDecideAboutMoney(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.book(t)
	_, maker := h.person(t, "ann", access.Lead)
	_, checker := h.person(t, "bob", access.Lead)
	decide := func(path, body string) {
		t.Helper()
		made := h.Api(t, maker, "POST", path, body)
		var a struct {
			Approval struct{ ID, Hash, State string }
		}
		if made.Status != 201 || json.Unmarshal([]byte(made.Body), &a) != nil || a.Approval.State != "waiting" {
			t.Fatalf("%d %s", made.Status, made.Body)
		}
		wantJSON(t, h.Api(t, checker, "POST", approvals+"/"+a.Approval.ID+"/approve", fmt.Sprintf(`{"hash":%q,"reason":"seen and checked"}`,
			a.Approval.Hash)), 200, `"state":"done"`)
	}
	const admin = "/api/v1/admin/"
	decide(admin+"adjustments",
		`{"debit":"loss","credit":"merchant:m1","currency":"CNY","amount":70,"reason":"as agreed today","evidence":"letter 17"}`)
	decide(admin+"merchants/m1/freeze", `{"currency":"CNY","amount":1070,"reason":"as agreed today"}`)
	decide(admin+"merchants/m1/freeze", `{"currency":"CNY","all":true,"reason":"as agreed today"}`)
	decide(admin+"merchants/m1/unfreeze", `{"currency":"CNY","amount":70,"reason":"as agreed today"}`)
	wantJSON(t, h.Api(t, webtest.KeyOfGalaxy, "GET", "/api/v1/balance", ""), 200, `"available":70,"pending":0,"frozen":5000,`)
	for _, c := range [][3]string{
		{
			"adjustments",
			`{"debit":"loss","credit":"merchant:m1","currency":"CNY","amount":1.5,"reason":"as agreed today","evidence":"letter"}`,
			"422 invalid_field amount",
		},
		{
			"adjustments", `{"debit":"loss","credit":"merchant:m1","currency":"CNY","amount":1,"reason":"as agreed today"}`,
			"422 invalid_field evidence",
		},
		{
			"adjustments",
			`{"debit":"opening","credit":"merchant:m1","currency":"CNY","amount":1,"reason":"as agreed today","evidence":"letter"}`,
			"422 invalid_field debit",
		},
		{"merchants/m1/freeze", `{"currency":"CNY","reason":"as agreed today"}`, "422 invalid_field amount"},
		{"merchants/m1/freeze", `{"currency":"CNY","amount":1,"all":true,"reason":"as agreed today"}`, "422 invalid_field amount"},
		{"merchants/m1/freeze", `{"currency":"CNY","amount":71,"reason":"as agreed today"}`, "422 invalid_field amount"},
		{"merchants/m9/freeze", `{"currency":"CNY","all":true,"reason":"as agreed today"}`, "404 not_found"},
	} {
		if got := h.Api(t, maker, "POST", admin+c[0], c[1]).Problem(); got != c[2] {
			t.Errorf("%s is answered with %s, want %s", c[1], got, c[2])
		}
	}
	if got := h.Api(t, webtest.MonitorToken, "POST", admin+"adjustments", `{}`); got.Status != 403 {
		t.Errorf("a service proposes: %d %s", got.Status, got.Body)
	}
}
