package api

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/compensation"
	"backstop/web/webtest"
)

const compensations = "/api/v1/admin/compensations"

var steps = compensation.Schedule{1e9, 2e9, 3e9}

// stuck opens compensations and brings them to a state.
func (h *harness) stuck(t *testing.T, state compensation.State, n int, change func(i int, x *compensation.Item)) []string {
	t.Helper()
	var ids []string
	err := h.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
		var items []*compensation.Item
		for i := range n {
			x := &compensation.Item{
				Kind: compensation.Rerun, Cause: compensation.SupplierTimeout, SubjectKind: compensation.OfOrder, SubjectID: h.DB.NewID(),
				OrderNo: "O1", MerchantID: 1, SupplierID: 1, Amount: 1998, Currency: "CNY", MadeBy: "advance",
				Payload: json.RawMessage(`{"order":7}`),
			}
			if change != nil {
				change(i, x)
			}
			items = append(items, x)
		}
		w := tx.Writes()
		steps.Open(w, h.DB, items...)
		if err := w.Exec(ctx); err != nil {
			return err
		}
		for _, x := range items {
			ids = append(ids, fmt.Sprint(x.ID))
		}
		if state == compensation.Waiting {
			return nil
		}
		_, err := tx.NewRaw("UPDATE compensations SET state = ?, attempts = 3, last_class = 'supplier_timeout', last_error = 'no answer',"+
			" next_at = CASE WHEN ? = 'running' THEN next_at END, finished_at = ? WHERE state = 'waiting' AND id >= ?", state, state,
			h.DB.Now(), items[0].ID).Exec(ctx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// token makes one with scopes.
func (h *harness) token(t *testing.T, scopes string) string {
	t.Helper()
	secret, err := access.NewTokens(h.DB, h.Keys).Add(t.Context(), strings.ReplaceAll(scopes, ",", "-"), scopes)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestCompensationsAreListedAsTheyAre(t *testing.T) {
	t.Parallel()
	h := open(t)
	token := h.token(t, "monitor")
	get := func(path string) webtest.Answer { return h.Api(t, token, "GET", compensations+path, "") }
	if got := strings.TrimSpace(get("").Body); got != `{"items":[],"next":null}` {
		t.Errorf("none: %s", got)
	}
	dead := h.stuck(t, compensation.Dead, 2, func(i int, x *compensation.Item) {
		x.OrderNo = fmt.Sprint("O", i)
		if i == 1 {
			x.Kind, x.Cause, x.SupplierID, x.Currency, x.Amount, x.OrderNo = compensation.Resend, compensation.MerchantUnreachable, 0, "",
				0, ""
		}
	})
	waiting := h.stuck(t, compensation.Waiting, 1, nil)
	_, err := h.DB.NewRaw(
		"INSERT INTO compensation_tries (id, compensation_id, number, at, took_us, class, error, call_id) VALUES (1, ?, 1, 1, 1500, 'supplier_timeout', 'no answer', 77)", dead[0]).Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ids := func(path string) string {
		var all []string
		for _, x := range get(path).Object(t)["items"].([]any) {
			all = append(all, x.(map[string]any)["id"].(string))
		}
		return strings.Join(all, " ")
	}
	for path, want := range map[string]string{
		"": waiting[0] + " " + dead[1] + " " + dead[0], "?state=dead": dead[1] + " " + dead[0], "?state=dead&kind=resend": dead[1],
		"?cause=supplier_timeout": waiting[0] + " " + dead[0], "?order_no=O0": dead[0], "?merchant=m1&limit=1": waiting[0],
		"?supplier=wx&state=dead": dead[0], "?state=done": "", "?state=cancelled&supplier=wx": "",
	} {
		if got := ids(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	for path, want := range map[string]string{
		"?state=stuck": "422 invalid_field state", "?kind=x": "422 invalid_field kind", "?cause=x": "422 invalid_field cause",
		"?supplier=x": "422 invalid_field supplier",
		"?merchant=x": "422 invalid_field merchant", "?status=dead": "422 invalid_field status", "?limit=201": "422 invalid_field limit",
		"/groups?state=x": "422 invalid_field state",
		"/7":              "404 not_found", "/x": "404 not_found",
	} {
		if got := get(path).Problem(); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	next := get("?limit=2").Object(t)["next"].(string)
	if got := ids("?limit=2&cursor=" + next); got != dead[0] {
		t.Errorf("the second page has %q", got)
	}
	one := get("/" + dead[1]).Object(t)
	for _, name := range []string{"order_no", "supplier", "next_at", "amount", "currency"} {
		if v, there := one[name]; !there || v != nil {
			t.Errorf("%s is %v (%t), want null", name, v, there)
		}
	}
	one = get("/" + dead[0]).Object(t)
	try := one["tries"].([]any)[0].(map[string]any)
	if one["subject"] == "" || one["supplier"] != "wx" || one["merchant"] != "m1" || one["amount"] != 1998.0 ||
		one["max_attempts"] != 3.0 || one["made_by"] != "advance" ||
		try["took_ms"] != 1.5 || try["call"] != "77" || try["class"] != "supplier_timeout" ||
		one["payload"].(map[string]any)["order"] != 7.0 {
		t.Errorf("one: %v", one)
	}
	groups := get("/groups").Object(t)["items"].([]any)
	if len(groups) != 2 {
		t.Fatalf("groups: %v", groups)
	}
	for _, g := range groups {
		g := g.(map[string]any)
		if g["kind"] == "rerun" && (g["supplier"] != "wx" || g["count"] != 1.0 ||
			fmt.Sprint(g["sums"]) != "[map[amount:1998 currency:CNY]]" || g["oldest_at"] == nil) ||
			g["kind"] == "resend" && (g["supplier"] != nil || g["cause"] != "merchant_unreachable" || fmt.Sprint(g["sums"]) != "[]") {
			t.Errorf("group: %v", g)
		}
	}
}

const why = `"reason":"the supplier is back"`

func TestACompensationIsRunAgainOnTheRecord(t *testing.T) {
	t.Parallel()
	h := open(t)
	var nudged []queue.Nudge
	h.Nudge = func(n []queue.Nudge) { nudged = append(nudged, n...) }
	token := h.token(t, "monitor,compensate")
	run := func(key, id, what, body string) webtest.Answer {
		return h.Api(t, key, "POST", compensations+"/"+id+"/"+what, body)
	}
	dead := h.stuck(t, compensation.Dead, 1, nil)[0]
	_, err := h.DB.NewRaw(
		"INSERT INTO exceptions (id, kind, state, supplier_id, merchant_id, order_id, order_no, subject, amount, currency, detail, seen, opened_at, updated_at)"+
			" VALUES (1, 'compensation_dead', 'open', 0, 1, 7, 'O1', ?, 1998, 'CNY', '{}', 1, 1, 1)", dead).Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ key, id, body, want string }{
		{token, dead, "", "422 invalid_field reason"},
		{token, dead, `{"reason":"why"}`, "422 invalid_field reason"},
		{token, dead, `{"reasons":"why"}`, "422 invalid_field reasons"},
		{token, "12", "{" + why + "}", "404 not_found"},
		{webtest.MonitorToken, dead, "{" + why + "}", "403 forbidden scope"},
		{token, h.stuck(t, compensation.Running, 1, nil)[0], "{" + why + "}", "409 running"},
		{token, h.stuck(t, compensation.Done, 1, nil)[0], "{" + why + "}", "409 over"},
		{token, h.stuck(t, compensation.Cancelled, 1, nil)[0], "{" + why + "}", "409 over"},
	} {
		if got := run(c.key, c.id, "run", c.body).Problem(); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.id, c.body, got, c.want)
		}
	}
	if len(nudged) != 0 {
		t.Errorf("a refusal nudged %v", nudged)
	}
	got := run(token, dead, "run", "{"+why+"}")
	if x := got.Object(t); got.Status != 202 || x["state"] != "waiting" || x["attempts"] != 3.0 || x["next_at"] == nil ||
		x["finished_at"] != nil {
		t.Errorf("%d %v", got.Status, x)
	}
	if len(nudged) != 1 || fmt.Sprint(nudged[0].Delivery) != dead || nudged[0].Recipient != 1 {
		t.Errorf("nudged %v", nudged)
	}
	var state string
	if err := h.DB.NewRaw("SELECT state FROM exceptions WHERE id = 1").Scan(t.Context(), &state); err != nil || state != "resolved" {
		t.Errorf("the exception is %s, %v", state, err)
	}
	rows, err := audit.List(t.Context(), h.DB.Read, audit.Query{Limit: 5})
	if err != nil || rows[0].Action != compensation.RunAct || rows[0].ObjectID != dead ||
		!strings.Contains(rows[0].Params, "the supplier is back") {
		t.Errorf("the audit has %+v, %v", rows[0], err)
	}
	// Only a lead cancels, and no token.
	if got := run(token, dead, "cancel", "{"+why+"}").Problem(); got != "403 person_needed" {
		t.Error(got)
	}
	lead, ops := webtest.BearerOf(h.SignIn(t, access.Lead)), webtest.BearerOf(h.SignIn(t, access.Ops))
	if got := run(ops, dead, "cancel", "{"+why+"}").Status; got != 403 {
		t.Errorf("ops cancels: %d", got)
	}
	if got := run(lead, dead, "cancel", "{"+why+"}"); got.Status != 200 || got.Object(t)["state"] != "cancelled" {
		t.Errorf("%d %s", got.Status, got.Body)
	}
}

func TestARedriveCountsWhatItDoes(t *testing.T) {
	t.Parallel()
	h := open(t)
	token := h.token(t, "compensate")
	redrive := func(body string) webtest.Answer {
		return h.Api(t, token, "POST", compensations+"/redrive", "{"+body+","+why+"}")
	}
	counts := func(body, want string) {
		t.Helper()
		got := redrive(body)
		if x := got.Object(t); got.Status != 202 || fmt.Sprint(x["matched"], x["queued"], x["skipped"]) != want {
			t.Errorf("%s: %d %s, want %s", body, got.Status, got.Body, want)
		}
	}
	dead := h.stuck(t, compensation.Dead, 5, nil)
	h.stuck(t, compensation.Dead, 2, func(_ int, x *compensation.Item) { x.Kind = compensation.Resend })
	running, done := h.stuck(t, compensation.Running, 1, nil)[0], h.stuck(t, compensation.Done, 1, nil)[0]
	for body, want := range map[string]string{
		`"filter":{"state":"stuck"}`: "422 invalid_field filter.state", `"filter":{"status":"dead"}`: "422 invalid_field status",
		`"filter":{"supplier":"x"}`:     "422 invalid_field filter.supplier",
		`"filter":{"from":"yesterday"}`: "422 invalid_field filter.from", `"ids":["x"]`: "422 invalid_field ids",
		`"ids":[]`:                "422 invalid_field ids",
		`"ids":["1"],"filter":{}`: "422 invalid_field ids", `"filter":{"state":"dead","cause":"poison"}`: "404 not_found",
		`"ids":["1","2"]`:                        "404 not_found",
		`"filter":{"to":"2001-01-01T00:00:00Z"}`: "404 not_found", `"all":true`: "422 invalid_field all",
	} {
		if got := redrive(body).Problem(); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	if got := h.Api(t, token, "POST", compensations+"/redrive",
		`{"filter":{"state":"dead"}}`).Problem(); got != "422 invalid_field reason" {
		t.Error(got)
	}
	counts(`"ids":["`+dead[0]+`","`+running+`","`+done+`"]`, "3 1 2")
	counts(`"filter":{"state":"dead","kind":"rerun","cause":"supplier_timeout","supplier":"wx","merchant":"m1","from":"2020-01-01T00:00:00Z"}`, "4 4 0")
	counts(`"filter":{}`, "9 7 2") // those that wait are due at once
	// Of two dead ones with one subject, one runs again.
	twins := h.stuck(t, compensation.Dead, 1, func(_ int, x *compensation.Item) { x.SubjectID = 5 })
	twins = append(twins, h.stuck(t, compensation.Dead, 1, func(_ int, x *compensation.Item) { x.SubjectID = 5 })...)
	counts(`"ids":["`+strings.Join(twins, `","`)+`"]`, "2 1 1")
	counts(`"ids":["`+twins[0]+`"]`, "1 0 1")

	many := make([]string, 1001)
	for i := range many {
		many[i] = `"` + fmt.Sprint(i+1) + `"`
	}
	if got := redrive(`"ids":[` + strings.Join(many, ",") + `]`).Problem(); got != "409 use_a_batch" {
		t.Errorf("1,001 ids, of which there is none: %s", got)
	}
	h.stuck(t, compensation.Dead, 1001, nil)
	if got := redrive(`"filter":{"state":"dead"}`).Problem(); got != "409 use_a_batch" {
		t.Error(got)
	}
	var n int
	if err := h.DB.NewRaw("SELECT count(*) FROM compensations WHERE state = 'dead'").Scan(t.Context(), &n); err != nil || n != 1002 {
		t.Errorf("%d are dead, %v", n, err)
	}
}
