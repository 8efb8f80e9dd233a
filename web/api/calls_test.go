package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/orderquery"
	"backstop/internal/supplier"
	"backstop/web/webtest"
)

func TestASupplierIsAskedByServicesThatMay(t *testing.T) {
	t.Parallel()
	h := open(t)
	no := h.Api(t, webtest.KeyOfGalaxy, "POST", "/api/v1/orders", wanted()).Object(t)["order_no"].(string)
	token, err := access.NewTokens(h.DB, h.Keys).Add(t.Context(), "asker", access.Compensate)
	if err != nil {
		t.Fatal(err)
	}
	path := "/api/v1/admin/orders/" + no + "/query"
	for _, c := range []struct{ key, path, body, want string }{
		{webtest.MonitorToken, path, `{"reason": "the buyer called us"}`, "403 forbidden scope"},
		{token, path, `{"reason": "short"}`, "422 invalid_field reason"},
		{token, path, `{}`, "422 invalid_field reason"},
		{token, path, `{"reason": "the buyer called us", "force": true}`, "422 invalid_field force"},
		{token, "/api/v1/admin/orders/unknown/query", `{"reason": "the buyer called us"}`, "404 not_found"},
		{token, path, `{"reason": "the buyer called us"}`, "409 cannot_be_asked"},
		{webtest.KeyOfGalaxy, path, `{"reason": "the buyer called us"}`, "401 unauthorized"},
	} {
		if got := h.Api(t, c.key, "POST", c.path, c.body).Problem(); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.path, c.body, got, c.want)
		}
	}
	if got := h.Api(t, token, "GET", "/api/v1/admin/supplier-calls", "").Problem(); got != "403 forbidden scope" {
		t.Errorf("the scope compensate reads: %s", got)
	}
}

func TestOnlyAnAnswerAboutAPaymentHasMoney(t *testing.T) {
	t.Parallel()
	for state, want := range map[supplier.AnswerState]string{
		supplier.AnswerPaid: "t1 1999 CNY", supplier.AnswerPaying: "t1 1999 CNY", supplier.AnswerNotFound: "null null null",
		supplier.AnswerUnknown: "null null null",
	} {
		v := viewAnswer(orderquery.Answer{Answer: supplier.Answer{State: state, Says: supplier.Callback{
			TradeNo: "t1", Amount: 1999,
			Currency: "CNY",
		}}})
		raw := make([]string, 3)
		for i, x := range []any{v.TradeNo, v.Amount, v.Currency} {
			text, err := json.Marshal(x)
			if err != nil {
				t.Fatal(err)
			}
			raw[i] = strings.Trim(string(text), `"`)
		}
		if got := strings.Join(raw, " "); got != want {
			t.Errorf("%s: %s, want %s", state, got, want)
		}
	}
}

func TestCallsToSuppliersAreListed(t *testing.T) {
	t.Parallel()
	h := open(t)
	no := h.Api(t, webtest.KeyOfGalaxy, "POST", "/api/v1/orders", wanted()).Object(t)["order_no"].(string)
	for i, row := range []string{
		"'query', '%[1]s', 'ended', 'ok', 'paying', 200, 'GET /q', '{}', 5, 7000",
		"'query', 'other', 'ended', 'timeout', 'unknown', 0, '', '', 6, 8000000",
		"'pay', '%[1]s', 'begun', '', '', 0, '', '', 7, NULL",
	} {
		order := "0"
		if i != 1 {
			order = "(SELECT id FROM orders WHERE order_no = '%[1]s')"
		}
		q := fmt.Sprintf(
			"INSERT INTO supplier_calls (id, supplier_id, order_id, op, reference, state, class, status, http_status, request, answer, started_at, took_us, node)"+
				" VALUES (%[2]d, 1, "+order+", "+row+", 'n1')", no, i+1)
		if _, err := h.DB.NewRaw(q).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[string]int{
		"": 3, "?order_no=" + no: 2, "?supplier=wx": 3, "?supplier=nobody": 0, "?op=pay": 1, "?class=timeout": 1, "?order_no=unknown": 0,
		"?limit=1": 1,
	} {
		got := h.Api(t, webtest.MonitorToken, "GET", "/api/v1/admin/supplier-calls"+query, "").Object(t)
		if items, _ := got["items"].([]any); len(items) != want {
			t.Errorf("%q: %v", query, got)
		}
	}
	items := h.Api(t, webtest.MonitorToken, "GET", "/api/v1/admin/supplier-calls?order_no="+no, "").Object(t)["items"].([]any)
	newest, oldest := items[0].(map[string]any), items[1].(map[string]any)
	if newest["op"] != "pay" || newest["class"] != nil || newest["took_ms"] != nil || newest["supplier"] != "wx" ||
		newest["answer"] != nil {
		t.Errorf("without an end: %v", newest)
	}
	if oldest["class"] != "ok" || oldest["status"] != "paying" || oldest["took_ms"] != 7.0 || oldest["request"] != "GET /q" ||
		oldest["node"] != "n1" {
		t.Errorf("ended: %v", oldest)
	}
	for _, query := range []string{"?op=dance", "?class=fine"} {
		if got := h.Api(t, webtest.MonitorToken, "GET", "/api/v1/admin/supplier-calls"+query, "").Status; got != 422 {
			t.Errorf("%s: %d", query, got)
		}
	}
}

func TestARequestToPayIsReadExactly(t *testing.T) {
	t.Parallel()
	h := open(t)
	no := h.Api(t, webtest.KeyOfGalaxy, "POST", "/api/v1/orders", wanted()).Object(t)["order_no"].(string)
	for _, c := range []struct{ body, want string }{
		{`[]`, "400 bad_json"},
		{`{"method": "cash"}`, "422 invalid_field method"},
		{`{"client_ip": "localhost"}`, "422 invalid_field client_ip"},
		{`{"return_url": "javascript:alert(1)"}`, "422 invalid_field return_url"},
		{`{"supplier": 7}`, "422 invalid_field supplier"},
		{`{"amount": 1}`, "422 invalid_field amount"},
	} {
		if got := h.Api(t, webtest.KeyOfGalaxy, "POST", "/api/v1/orders/"+no+"/pay", c.body).Problem(); got != c.want {
			t.Errorf("%s: %s, want %s", c.body, got, c.want)
		}
	}
	body := `{"method": "qr", "supplier": "wx", "return_url": "https://shop.example/back", "client_ip": "203.0.113.9", "payer": "o-1"}`
	if got := h.Api(t, webtest.KeyOfGalaxy, "POST", "/api/v1/orders/"+no+"/pay", body); got.Status != 200 {
		t.Errorf("%+v", got)
	}
	if p := h.Payments.Paid; p.Method != "qr" || p.Supplier != "wx" || p.ReturnURL != "https://shop.example/back" ||
		p.ClientIP != "203.0.113.9" || p.Payer != "o-1" {
		t.Errorf("requested with %+v", p)
	}
}
