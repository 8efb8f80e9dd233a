package api

import (
	"strings"
	"testing"
	"time"

	"backstop/internal/alert"
	"backstop/internal/base/waittest"
	"backstop/web/webtest"
)

const drawn = `{"out_payout_no":"p-1","amount":100,"currency":"CNY","supplier":"wx","account":{"code":"main"}}`

// refusedAlerts returns the count of each alert about refused payouts, once there are as many as
// wanted.
func (h *harness) refusedAlerts(t *testing.T, want int64) map[string]int64 {
	t.Helper()
	var counts map[string]int64
	waittest.Within(20*time.Second, func() bool {
		var rows []alert.Alert
		if err := h.DB.NewSelect().Model(&rows).Where("al.rule = ?", alert.PayoutRefused).Scan(t.Context()); err != nil {
			t.Fatal(err)
		}
		sum := int64(0)
		counts = map[string]int64{}
		for _, a := range rows {
			counts[a.Subject] += a.Count
			sum += a.Count
		}
		return sum >= want
	})
	return counts
}

// A stolen API key draws no money, and somebody notices that it was tried. The merchant's own
// requests go on: nothing is locked.
func TestOnlyThePayoutKeyFromItsAddressesDraws(t *testing.T) {
	t.Parallel()
	h := open(t)
	for range 3 {
		if got := h.Api(t, webtest.KeyOfGalaxy, "POST", "/api/v1/payouts", drawn).Problem(); got != "403 payout_key_needed" {
			t.Errorf("with the API key: %s", got)
		}
	}
	for call, want := range map[[3]string]string{
		{webtest.KeyOfGalaxy, "POST", "/api/v1/payouts/P404/cancel"}:        "403 payout_key_needed",
		{webtest.PayoutKeyOfOther, "POST", "/api/v1/payouts"}:               "403 address",
		{webtest.PayoutKeyOfOther, "POST", "/api/v1/payouts/P404/cancel"}:   "403 address",
		{webtest.PayoutKeyOfGalaxy, "GET", "/api/v1/orders?out_trade_no=x"}: "403 forbidden",
		{webtest.PayoutKeyOfGalaxy, "GET", "/api/v1/balance"}:               "403 forbidden",
		{"sk_nobody", "POST", "/api/v1/payouts"}:                            "401 unauthorized",
	} {
		if got := h.Api(t, call[0], call[1], call[2], drawn).Problem(); got != want {
			t.Errorf("%v: %s, want %s", call, got, want)
		}
	}
	want := map[string]int64{
		alert.RefusedPayout("m1", alert.ByKey, "127.0.0.1"): 4, alert.RefusedPayout("m2", alert.ByAddress, "127.0.0.1"): 2,
	}
	if got := h.refusedAlerts(t, 6); len(got) != len(want) || got[alert.RefusedPayout("m1", alert.ByKey, "127.0.0.1")] != 4 ||
		got[alert.RefusedPayout("m2", alert.ByAddress, "127.0.0.1")] != 2 {
		t.Errorf("alerts %v, want %v", got, want)
	}
}

// Both keys read, from anywhere.
func TestEitherKeyReadsPayouts(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, key := range []string{webtest.KeyOfGalaxy, webtest.PayoutKeyOfGalaxy, webtest.KeyOfOther, webtest.PayoutKeyOfOther} {
		for path, want := range map[string]string{
			"/api/v1/payouts/P404": "404 not_found", "/api/v1/payouts?out_payout_no=x": "404 not_found",
			"/api/v1/payouts": "422 invalid_field out_payout_no", "/api/v1/payouts?no=x": "422 invalid_field no",
		} {
			if got := h.Api(t, key, "GET", path, "").Problem(); got != want {
				t.Errorf("%s with %s: %s, want %s", path, key, got, want)
			}
		}
	}
}

func TestRequestsForPayoutsAreChecked(t *testing.T) {
	t.Parallel()
	h := open(t)
	for change, want := range map[[2]string]string{
		{`"out_payout_no":"p-1",`, ""}:                        "422 invalid_field out_payout_no",
		{`"p-1"`, `"p 1"`}:                                    "422 invalid_field out_payout_no",
		{`100`, `0`}:                                          "422 invalid_field amount",
		{`100`, `-1`}:                                         "422 invalid_field amount",
		{`100`, `1.5`}:                                        "422 invalid_field amount",
		{`100`, `"100"`}:                                      "422 invalid_field amount",
		{`100`, `1000000000000001`}:                           "422 invalid_field amount",
		{`100`, `99999999999999999999`}:                       "422 invalid_field amount",
		{`"currency":"CNY",`, ""}:                             "422 invalid_field currency",
		{`"supplier":"wx",`, ""}:                              "422 invalid_field supplier",
		{`,"account":{"code":"main"}`, ""}:                    "422 invalid_field account",
		{`{"code":"main"}`, `"main"`}:                         "422 invalid_field account",
		{`{"code":"main"}`, `{}`}:                             "422 invalid_field account.kind",
		{`{"code":"main"}`, `{"code":"main","bank":"ICBC"}`}:  "422 invalid_field account",
		{`{"code":"main"}`, `{"kind":"alipay","holder":"G"}`}: "422 invalid_field account.number",
		{`{"code":"main"}`, `{"iban":"x"}`}:                   "422 invalid_field account.iban",
		{`"supplier"`, `"fee":1,"supplier"`}:                  "422 invalid_field fee",
		{`"}}`, `"}`}:                                         "400 bad_json",
	} {
		body := strings.Replace(drawn, change[0], change[1], 1)
		if got := h.Api(t, webtest.PayoutKeyOfGalaxy, "POST", "/api/v1/payouts", body).Problem(); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}
