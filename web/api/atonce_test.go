package api

import (
	"encoding/json"
	"fmt"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/queue"
	"backstop/internal/compensation"
	"backstop/web/webtest"
)

// What an exception lists as an action that needs no second person is done at once when it is
// proposed, by whoever may.
func TestWhatNeedsNoSecondPersonIsDoneAtOnce(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.Nudge = func([]queue.Nudge) {}
	h.decisions(nil)
	dead := h.stuck(t, compensation.Dead, 1, nil)[0]
	call := h.stuck(t, compensation.Dead, 1, func(_ int, x *compensation.Item) { x.Kind = compensation.ReplayCall })[0]
	for i, id := range []string{dead, call} {
		if _, err := h.DB.NewRaw(
			"INSERT INTO exceptions (id, kind, state, supplier_id, merchant_id, order_id, order_no, subject, amount, currency, detail, seen, opened_at, updated_at)"+
				" VALUES (?, 'compensation_dead', 'open', 0, 1, 7, 'O1', ?, 1998, 'CNY', '{}', 1, 1, 1)", i+1,
			id).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	_, ops := h.person(t, "li", access.Ops)
	viewer := webtest.BearerOf(h.SignIn(t, access.Viewer))
	service := h.token(t, "monitor,compensate")
	const exceptions = "/api/v1/admin/exceptions/"
	actions := func(key, id string) (names []string) {
		for _, a := range h.Api(t, key, "GET", exceptions+id, "").Object(t)["actions"].([]any) {
			if x := a.(map[string]any); x["needs_second"] == false {
				names = append(names, x["action"].(string))
			}
		}
		return names
	}
	if got := fmt.Sprint(actions(ops, "1"), actions(ops, "2"), actions(viewer, "1"),
		actions(service, "1")); got != "[rerun] [retry_now] [] []" {
		t.Errorf("the actions are %s", got)
	}
	for _, c := range []struct{ key, id, body, want string }{
		{ops, "1", `{"action":"rerun"}`, "422 invalid_field reason"},
		{ops, "1", `{"action":"rerun","params":{"x":1},"reason":"the supplier is back"}`, "422 invalid_field params.x"},
		{ops, "1", `{"action":"rerun","params":[],"reason":"the supplier is back"}`, "422 invalid_field params"},
		{ops, "1", `{"action":"retry_now","reason":"the supplier is back"}`, "422 invalid_field action"},
		{ops, "1", `{"action":"query","reason":"the supplier is back"}`, "422 invalid_field action"},
		{ops, "1", `{"action":"rerun","reason":"the supplier is back","version":9}`, "409 changed"},
		{ops, "9", `{"action":"rerun","reason":"the supplier is back"}`, "404 not_found"},
		{viewer, "1", `{"action":"rerun","reason":"the supplier is back"}`, "403 forbidden"},
		{service, "1", `{"action":"rerun","reason":"the supplier is back"}`, "403 person_needed"},
	} {
		if got := h.Api(t, c.key, "POST", exceptions+c.id+"/propose", c.body).Problem(); got != c.want {
			t.Errorf("%s: %s, want %s", c.body, got, c.want)
		}
	}
	for id, x := range map[string]struct{ action, item string }{"1": {"rerun", dead}, "2": {"retry_now", call}} {
		got := h.Api(t, ops, "POST", exceptions+id+"/propose", `{"action":"`+x.action+
			`","params":{},"reason":"the supplier is back","version":1}`)
		a, _ := got.Object(t)["approval"].(map[string]any)
		result, _ := json.Marshal(a["result"])
		if got.Status != 200 || a["state"] != "done" || a["action"] != x.action || a["maker"] != "li" || a["id"] != nil ||
			a["amount"] != 1998.0 || string(result) != `{"run":["`+x.item+`"]}` {
			t.Errorf("%s: %d %s", x.action, got.Status, got.Body)
		}
		var state string
		if err := h.DB.NewRaw("SELECT state FROM compensations WHERE id = ?", x.item).Scan(t.Context(), &state); err != nil ||
			state != "waiting" {
			t.Errorf("the compensation is %s, %v", state, err)
		}
		if got := h.Api(t, ops, "POST", exceptions+id+"/propose", `{"action":"`+x.action+
			`","reason":"the supplier is back"}`).Problem(); got != "409 over" {
			t.Errorf("%s again: %s", x.action, got)
		}
	}
}
