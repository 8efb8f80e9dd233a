package api

import (
	"testing"

	"backstop/web/webtest"
)

func TestRequestsForRefundsAreChecked(t *testing.T) {
	t.Parallel()
	h := open(t)
	made := h.Api(t, webtest.KeyOfGalaxy, "POST", "/api/v1/orders", wanted())
	no, _ := made.Object(t)["order_no"].(string)
	path := "/api/v1/orders/" + no + "/refunds"
	for body, want := range map[string]string{
		`{"amount":1,"reason":"r"}`:                                      "422 invalid_field out_refund_no",
		`{"out_refund_no":"a","reason":"r"}`:                             "422 invalid_field amount",
		`{"out_refund_no":"a","amount":0,"reason":"r"}`:                  "422 invalid_field amount",
		`{"out_refund_no":"a","amount":1.5,"reason":"r"}`:                "422 invalid_field amount",
		`{"out_refund_no":"a","amount":1}`:                               "422 invalid_field reason",
		`{"out_refund_no":"a","amount":1,"reason":"r","currency":"CNY"}`: "422 invalid_field currency",
		`{"out_refund_no":"a","amount":1,"reason":"r"`:                   "400 bad_json",
	} {
		if got := h.Api(t, webtest.KeyOfGalaxy, "POST", path, body).Problem(); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	for call, want := range map[[2]string]string{
		{"GET", "/api/v1/refunds/R404"}:            "404 not_found",
		{"POST", "/api/v1/refunds/R404/cancel"}:    "404 not_found",
		{"GET", "/api/v1/orders/nobody-1/refunds"}: "404 not_found",
	} {
		if got := h.Api(t, webtest.KeyOfGalaxy, call[0], call[1], "").Problem(); got != want {
			t.Errorf("%v: %s, want %s", call, got, want)
		}
	}
	const good = `{"out_refund_no":"a","amount":1,"reason":"r"}`
	if got := h.Api(t, webtest.KeyOfGalaxy, "POST", "/api/v1/orders/nobody-1/refunds", good).Problem(); got != "404 not_found" {
		t.Errorf("no such order: %s", got)
	}
	if got := h.Api(t, webtest.MonitorToken, "GET", "/api/v1/admin/refunds?state=odd", "").Problem(); got != "422 invalid_field state" {
		t.Errorf("an unknown state: %s", got)
	}
	if items, _ := h.Api(t, webtest.MonitorToken, "GET", "/api/v1/admin/refunds?state=succeeded&order_no=x",
		"").Object(t)["items"].([]any); items == nil || len(items) != 0 {
		t.Errorf("the list: %v", items)
	}
}
