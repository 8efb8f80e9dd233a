package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"backstop/internal/order"
	"backstop/internal/testmode"
	"backstop/web/webtest"
)

// Payments of test mode are described at the live address, too, where there are none.
func TestPaymentsOfTestModeAreDescribedAndNotLive(t *testing.T) {
	t.Parallel()
	h := open(t)
	no := h.Api(t, webtest.KeyOfGalaxy, http.MethodPost, "/api/v1/orders",
		`{"out_trade_no": "A-1", "amount": 100, "currency": "CNY", "supplier": "wx", "subject": "tea"}`).Object(t)["order_no"].(string)
	path := "/api/v1/test/orders/" + no + "/pays"
	if got := h.Api(t, webtest.KeyOfGalaxy, http.MethodPost, path, "").Problem(); got != "404 not_found" {
		t.Errorf("with a live key: %s", got)
	}
	played := testmode.Played{Answers: []testmode.Answer{{Status: http.StatusOK, Body: "success", Outcome: "taken"}, {Lost: true}}}
	for what, p := range map[string]testmode.Played{"at once": played, "late": {At: time.Now()}} {
		text, err := json.Marshal(playedOf(&order.Order{OrderNo: no, Status: order.Paid}, p))
		if err != nil {
			t.Fatal(err)
		}
		answer := webtest.Answer{Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: string(text)}
		for _, problem := range h.contradictions(t, http.MethodPost, path, "", answer) {
			t.Errorf("%s: not as described: %v\n%s", what, problem, text)
		}
		answer.Body = `{}`
		if len(h.contradictions(t, http.MethodPost, path, "", answer)) == 0 {
			t.Errorf("%s: an empty answer is as described", what)
		}
	}
	scenario := contract.Doc.Paths.Find("/api/v1/test/orders/{order_no}/{scenario}").Post.Parameters.GetByInAndName("path", "scenario")
	var described []string
	for _, value := range scenario.Schema.Value.Enum {
		described = append(described, value.(string))
	}
	if !slices.Equal(described, testmode.ScenarioNames()) {
		t.Errorf("the scenarios described are %q", described)
	}
}
