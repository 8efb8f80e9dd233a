package api

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/waittest"
	"backstop/internal/callback"
	"backstop/internal/exception"
	"backstop/web/webtest"
)

// pages follows next to the end and returns all items.
func (h *harness) pages(t *testing.T, path string) (items []map[string]any) {
	t.Helper()
	cursor := ""
	for range 50 {
		got := h.Api(t, webtest.MonitorToken, "GET", path+"&cursor="+cursor, "")
		if got.Status != 200 {
			t.Fatalf("%s: %+v", path, got)
		}
		o := got.Object(t)
		for _, item := range o["items"].([]any) {
			items = append(items, item.(map[string]any))
		}
		if o["next"] == nil {
			return items
		}
		cursor = o["next"].(string)
	}
	t.Fatalf("%s does not end", path)
	return nil
}

func TestExceptionsAreListedAsPromised(t *testing.T) {
	t.Parallel()
	h := open(t)
	items := []*exception.Item{}
	for i := range 5 {
		items = append(items, &exception.Item{
			Kind: []string{exception.LatePayment, exception.AmountMismatch}[i%2], OrderNo: fmt.Sprintf("O%d", i), Subject: "W",
			Amount: int64(100 + i), Currency: "CNY", Detail: exception.Detail(map[string]any{"trade_no": "W"}),
		})
	}
	err := h.DB.Tx(context.Background(), func(ctx context.Context, tx db.Tx) error {
		w := tx.Writes()
		exception.Open(tx, w, h.DB, items)
		return w.Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"?limit=2":                              "O4 O3 O2 O1 O0",
		"?kind=late_payment&limit=2":            "O4 O2 O0",
		"?kind=late_payment&order_no=O1":        "",
		"?state=open&kind=amount_mismatch":      "O3 O1",
		"?state=resolved":                       "",
		"?order_no=O2&kind=late_payment&state=": "O2",
	} {
		var got []string
		for _, x := range h.pages(t, "/api/v1/admin/exceptions"+path) {
			got = append(got, x["order_no"].(string))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", path, got, want)
		}
	}
	x := h.pages(t, "/api/v1/admin/exceptions?order_no=O2")[0]
	if names := slices.Sorted(maps.Keys(x)); strings.Join(names, " ") != "amount currency detail id kind opened_at order_no state" {
		t.Errorf("fields %v", names)
	}
	if x["id"] != fmt.Sprint(items[2].ID) || x["amount"] != 102.0 || x["state"] != "open" ||
		x["detail"].(map[string]any)["trade_no"] != "W" || !strings.HasSuffix(x["opened_at"].(string), "Z") {
		t.Errorf("exception %v", x)
	}
}

func TestCallbacksAreListedAsPromised(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx := context.Background()
	for _, q := range []string{
		"INSERT INTO callbacks (id, supplier_id, order_id, order_no, trade_no, event_key, digest, outcome, received_at, remote_addr, method, query, headers, body, steps)" +
			` VALUES (9007199254740993, 1, 1, 'O1', 'W', '', '', 'paid', 1792828800123456, '192.0.2.1', 'POST', '', '', ?, 'signature	0	')`,
		"INSERT INTO refused_callbacks (id, supplier, outcome, received_at, remote_addr, method, query, headers, body, steps)" +
			` VALUES (9007199254740994, 'wx', 'bad_signature', 1, '', 'POST', '', '', ?, 'signature	0		!	no')`,
	} {
		if _, err := h.DB.NewRaw(q, []byte{0}).Exec(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"?order_no=O1": "paid", "?refused=true": "bad_signature paid", "?refused=false": "paid", "?": "bad_signature paid",
		"?supplier=wx&refused=1&limit=1":    "bad_signature paid",
		"?outcome=" + callback.BadSignature: "bad_signature", "?order_no=O2": "", "?supplier=none": "",
	} {
		var got []string
		for _, x := range h.pages(t, "/api/v1/admin/callbacks"+path) {
			got = append(got, x["outcome"].(string))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", path, got, want)
		}
	}
	x := h.pages(t, "/api/v1/admin/callbacks?order_no=O1")[0]
	if names := slices.Sorted(maps.Keys(x)); strings.Join(names, " ") != "id order_no outcome received_at remote_addr steps supplier" {
		t.Errorf("fields %v", names)
	}
	if got := fmt.Sprint(
		x); got != "map[id:9007199254740993 order_no:O1 outcome:paid received_at:2026-10-24T08:00:00.123Z remote_addr:192.0.2.1 steps:[map[detail: name:signature ok:true]] supplier:wx]" {
		t.Errorf("callback %s", got)
	}
}

func TestAWrongFilterIsNamed(t *testing.T) {
	t.Parallel()
	h := open(t)
	for query, field := range map[string]string{
		"limit=0": "limit", "limit=201": "limit", "limit=x": "limit", "cursor=!": "cursor", "cursor=-1": "cursor", "cursor=0": "cursor",
		"order_no=%00": "order_no", "order_no=%ff": "order_no", "order_no=" + strings.Repeat("x", 257): "order_no",
	} {
		for _, list := range []string{"exceptions", "callbacks"} {
			if got := h.Api(t, webtest.MonitorToken, "GET", "/api/v1/admin/"+list+"?"+query, "").Problem(); got != "422 invalid_field "+
				field {
				t.Errorf("%s?%s: %s", list, query, got)
			}
		}
	}
	for query, field := range map[string]string{
		"callbacks?refused=perhaps": "refused", "callbacks?outcome=payed": "outcome", "exceptions?kind=late": "kind",
		"exceptions?state=opened":                       "state",
		"merchant-callback-monitor/logs?class=timeouts": "class", "merchant-callback-monitor/logs?status=0": "status",
		"merchant-callback-monitor/logs?merchant=nobody": "merchant", "merchant-callback-monitor/merchants?merchant=nobody": "merchant",
		"merchant-callback-monitor/breakers?merchant=nobody": "merchant",
		// An unknown parameter must not look like a filter that everything passes.
		"exceptions?order=O1": "order", "callbacks?order=O1": "order", "merchant-callback-monitor/logs?order=O1": "order",
		"exceptions?state=open&state=resolved": "state", "callbacks?limit=5&limit=6": "limit",
		"merchant-callback-monitor/merchants?code=m1": "code", "merchant-callback-monitor/breakers?code=m1": "code",
	} {
		if got := h.Api(t, webtest.MonitorToken, "GET", "/api/v1/admin/"+query, "").Problem(); got != "422 invalid_field "+field {
			t.Errorf("%s: %s", query, got)
		}
	}
	if got := h.Api(t, webtest.MonitorToken, "GET", "/api/v1/admin/exceptions?limit=200", "").Object(t); len(got["items"].([]any)) != 0 ||
		got["next"] != nil {
		t.Errorf("an empty page: %v", got)
	}
}

func TestOnlyAMonitorsTokenOpensTheAdminAPI(t *testing.T) {
	t.Parallel()
	h := open(t)
	ask := func(token string) string {
		return h.Api(t, token, "GET", "/api/v1/admin/exceptions", "").Problem()
	}
	if got := ask(webtest.OddToken); got != "403 forbidden scope" {
		t.Errorf("another scope: %s", got)
	}
	if got := ask(webtest.KeyOfGalaxy); got != "401 unauthorized" {
		t.Errorf("a merchant's key: %s", got)
	}
	if got := ask(webtest.MonitorToken); got != "200" {
		t.Fatalf("a monitor's token: %s", got)
	}
	if _, err := h.DB.ExecContext(context.Background(), "UPDATE api_tokens SET revoked_at = 1 WHERE id = 1"); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "a revoked token works no longer", func() bool { return ask(webtest.MonitorToken) == "401 unauthorized" })
}
