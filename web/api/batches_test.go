package api

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/queue"
	"backstop/internal/base/waittest"
	"backstop/internal/compensation"
	"backstop/internal/notify"
)

const batches = "/api/v1/admin/batches"

// batch waits until a batch has a state, and returns it.
func (h *harness) batch(t *testing.T, key, id, state string) map[string]any {
	t.Helper()
	var b map[string]any
	if !waittest.Within(20*time.Second, func() bool {
		b = h.Api(t, key, http.MethodGet, batches+"/"+id, "").Object(t)
		return b["state"] == state
	}) {
		t.Fatalf("the batch does not become %s: %v", state, b)
	}
	return b
}

// outcome is the count and the sums that a plan has for an outcome.
func outcome(b map[string]any, word string) string {
	for _, o := range b["plan"].(map[string]any)["outcomes"].([]any) {
		if x := o.(map[string]any); x["outcome"] == word {
			return fmt.Sprint(x["count"], x["sums"])
		}
	}
	return "none"
}

// What ended because its address is gone is found by that cause.
func TestABatchResendsWhatIsGone(t *testing.T) {
	t.Parallel()
	h := open(t)
	for i, class := range []notify.Class{notify.Gone, notify.BadStatus, notify.Gone} {
		_, err := h.DB.NewRaw("INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status,"+
			" attempts, created_at, last_class) VALUES (?, ?, 1, 1, 'order.paid', 'webhook', '', 'exhausted', 1, ?, ?)",
			h.DB.NewID(), i, h.DB.Now(), class).Exec(t.Context())
		if err != nil {
			t.Fatal(err)
		}
	}
	b := h.Api(t, h.token(t, "compensate,monitor"), http.MethodPost, batches,
		`{"action":"resend","filter":{"cause":"gone","state":"exhausted"}}`).Object(t)
	if b["rows"] != 2. || !strings.HasPrefix(outcome(b, "will_run"), "2") {
		t.Errorf("%v", b)
	}
}

func TestABatchIsPlannedStartedAndRead(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.Nudge = func([]queue.Nudge) {}
	h.stuck(t, compensation.Dead, 5, nil)
	h.stuck(t, compensation.Done, 2, nil)
	key := h.token(t, "compensate,monitor")
	post := func(path, body string) (int, map[string]any) {
		t.Helper()
		got := h.Api(t, key, http.MethodPost, batches+path, body)
		return got.Status, got.Object(t)
	}
	for body, want := range map[string]string{
		`{"action":"redrive","filter":{"state":"running"}}`:                       "404 nothing",
		`{"action":"redrive","ids":["1"]}`:                                        "404 nothing",
		`{"action":"sell","ids":["1"]}`:                                           "422 invalid_field action",
		`{"action":"redrive"}`:                                                    "422 invalid_field ids",
		`{"action":"redrive","ids":["1"],"filter":{}}`:                            "422 invalid_field ids",
		`{"action":"redrive","filter":{"colour":"red"}}`:                          "422 invalid_field filter.colour",
		`{"action":"redrive","filter":{"state":"odd"}}`:                           "422 invalid_field filter.state",
		`{"action":"redrive","filter":{"from":"today"}}`:                          "422 invalid_field filter.from",
		`{"action":"query","filter":{"cause":"database"}}`:                        "422 invalid_field filter.cause",
		`{"action":"close","filter":{}}`:                                          "422 invalid_field action",
		`{"action":"resend","ids":["1"]}`:                                         "404 nothing",
		`{"action":"redrive","ids":[` + strings.Repeat(`"1",`, 100_000) + `"1"]}`: "413 too_large",
	} {
		if got := h.Api(t, key, http.MethodPost, batches, body).Problem(); got != want &&
			!(strings.HasPrefix(want, "413") && strings.HasPrefix(got, "413")) {
			t.Errorf("%.60s: %s, want %s", body, got, want)
		}
	}
	status, b := post("", `{"action":"redrive","filter":{"cause":"supplier_timeout"}}`)
	if status != http.StatusCreated || b["state"] != "planned" || b["rows"] != 7. || b["of"] != 5. || b["needs_second"] != false {
		t.Fatalf("%d %v", status, b)
	}
	if got := outcome(b, "will_query") + " " + outcome(b, "skip_final") + " " +
		outcome(b, "will_run"); got != "5 [map[amount:9990 currency:CNY]] 2 [map[amount:3996 currency:CNY]] 0 []" {
		t.Errorf("the plan: %s", got)
	}
	id := b["id"].(string)
	for _, c := range [][3]string{
		{"/start", `{"reason":"short"}`, "422 invalid_field reason"},
		{"/start", `{"reason":"they answer again","typed":"99.91"}`, "422 invalid_field amount"},
		{"/pause", `{"reason":"they answer again"}`, "409 state"},
	} {
		if got := h.Api(t, key, http.MethodPost, batches+"/"+id+c[0], c[1]).Problem(); got != c[2] {
			t.Errorf("%s with %s: %s, want %s", c[0], c[1], got, c[2])
		}
	}
	for _, unknown := range []string{"bat_1", "1", "x"} {
		if got := h.Api(t, key, http.MethodGet, batches+"/"+unknown, "").Problem(); got != "404 not_found" {
			t.Errorf("batch %s: %s", unknown, got)
		}
	}
	if got := h.Api(t, h.token(t, "monitor"), http.MethodPost, batches+"/"+id+"/start",
		`{"reason":"they answer again"}`).Problem(); !strings.HasPrefix(got, "403") {
		t.Errorf("a token that only reads: %s", got)
	}
	if status, b = post("/"+id+"/start", `{"reason":"they answer again","typed":"99.90"}`); status != http.StatusAccepted {
		t.Fatalf("the start: %d %v", status, b)
	}
	b = h.batch(t, key, id, "done")
	if b["done"] != 5. || fmt.Sprint(b["sums_done"]) != "[map[amount:9990 currency:CNY]]" || b["stopped_because"] != nil ||
		b["eta_seconds"] != nil {
		t.Errorf("at its end: %v", b)
	}
	if got := h.Api(t, key, http.MethodPost, batches+"/"+id+"/start", `{"reason":"they answer again"}`).Problem(); got != "409 state" {
		t.Errorf("a second start: %s", got)
	}
	rows := h.Api(t, key, http.MethodGet, batches+"/"+id+"/rows?outcome=skip_final&limit=1", "").Object(t)
	if items := rows["items"].([]any); len(items) != 1 || rows["next"] == nil || items[0].(map[string]any)["result"] != "skipped" {
		t.Errorf("rows: %v", rows)
	}
	text := h.Api(t, key, http.MethodGet, batches+"/"+id+"/rows?format=csv", "").Body
	read := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	all, err := read.ReadAll()
	if err != nil || len(all) != 9 || !strings.Contains(all[0][0], id) || !strings.Contains(all[0][0], "token:") || all[2][5] != "done" {
		t.Errorf("as CSV: %v, %v", all, err)
	}
	acts, err := audit.List(t.Context(), h.DB.Read, audit.Query{Object: "batch", ObjectID: id, Oldest: true, Limit: 9})
	if err != nil || len(acts) != 2 || acts[0].Action != "batch.start" || acts[1].Action != "batch.end" {
		t.Errorf("on the record: %+v, %v", acts, err)
	}
}

// Above the limit a batch is a proposal, which its maker cannot approve, and a service not make.
func TestALargeBatchNeedsASecondPerson(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.Nudge = func([]queue.Nudge) {}
	h.stuck(t, compensation.Dead, 2, func(_ int, x *compensation.Item) { x.Amount = 600_000 })
	_, ops := h.person(t, "li", access.Ops)
	_, lead := h.person(t, "zhou", access.Lead)
	plan := func(key string) string {
		t.Helper()
		b := h.Api(t, key, http.MethodPost, batches, `{"action":"redrive","filter":{"state":"dead"}}`).Object(t)
		if b["needs_second"] != true {
			t.Fatalf("the plan: %v", b)
		}
		return b["id"].(string)
	}
	const typed = `{"reason":"they answer again","typed":"12000.00"}`
	service := h.token(t, "compensate")
	if got := h.Api(t, service, http.MethodPost, batches+"/"+plan(service)+"/start", typed).Problem(); got != "403 person_needed" {
		t.Errorf("by a service: %s", got)
	}
	id := plan(ops)
	if got := h.Api(t, ops, http.MethodPost, batches+"/"+id+"/start",
		`{"reason":"they answer again"}`).Problem(); got != "422 invalid_field amount" {
		t.Errorf("nothing typed: %s", got)
	}
	if got := h.Api(t, lead, http.MethodPost, batches+"/"+id+"/start", typed).Problem(); !strings.HasPrefix(got, "403") {
		t.Errorf("by another operator: %s", got)
	}
	got := h.Api(t, ops, http.MethodPost, batches+"/"+id+"/start", typed)
	if got.Status != http.StatusCreated {
		t.Fatalf("the proposal: %d %s", got.Status, got.Body)
	}
	a := got.Object(t)["approval"].(map[string]any)
	if a["state"] != "waiting" || a["object_id"] != id || a["amount"] != 1_200_000. {
		t.Errorf("the proposal: %v", a)
	}
	if b := h.batch(t, ops, id, "waiting"); b["done"] != 0. || b["approval"] != a["id"] {
		t.Errorf("the batch: %v", b)
	}
	approve := fmt.Sprintf(`{"hash":%q,"reason":"I have looked at it"}`, a["hash"])
	if got := h.Api(t, ops, http.MethodPost, approvalsPath+"/"+a["id"].(string)+"/approve", approve).Problem(); got != "403 own_proposal" {
		t.Errorf("the maker approves: %s", got)
	}
	if got := h.Api(t, lead, http.MethodPost, approvalsPath+"/"+a["id"].(string)+"/approve", approve); got.Status != http.StatusOK ||
		got.Object(t)["state"] != "done" {
		t.Fatalf("the approval: %d %s", got.Status, got.Body)
	}
	if b := h.batch(t, ops, id, "done"); b["done"] != 2. {
		t.Errorf("at its end: %v", b)
	}
	// What is rejected never runs.
	if _, err := h.DB.NewRaw("UPDATE compensations SET state = 'dead', next_at = NULL").Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	id = plan(ops)
	a = h.Api(t, ops, http.MethodPost, batches+"/"+id+"/start", typed).Object(t)["approval"].(map[string]any)
	if got := h.Api(t, lead, http.MethodPost, approvalsPath+"/"+a["id"].(string)+"/reject",
		`{"reason":"not before the audit"}`); got.Status != http.StatusOK {
		t.Fatalf("the rejection: %d %s", got.Status, got.Body)
	}
	if b := h.batch(t, ops, id, "stopped"); b["done"] != 0. || b["stopped_because"] != "not_approved" {
		t.Errorf("a batch that was rejected: %v", b)
	}
}

// What ran out of tries is found as an exception too, by its kind or by its id, and by a person
// alone.
func TestExceptionsAreRunAgainByABatch(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.Nudge = func([]queue.Nudge) {}
	ids := h.stuck(t, compensation.Dead, 3, nil)
	if _, err := h.DB.NewRaw("INSERT INTO exceptions (id, kind, state, subject, amount, currency, detail, opened_at, updated_at)" +
		" SELECT id - 1000000000, 'compensation_dead', 'open', CAST(id AS TEXT), amount, currency, '{}', opened_at, opened_at FROM compensations").Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	var exceptions []string
	if err := h.DB.NewRaw("SELECT id FROM exceptions ORDER BY id").Scan(t.Context(), &exceptions); err != nil {
		t.Fatal(err)
	}
	_, ops := h.person(t, "li", access.Ops)
	for body, want := range map[string]string{
		`{"action":"redrive","filter":{"kind":"late_payment"}}`:                                "422 invalid_field filter.kind",
		`{"action":"redrive","filter":{"kind":"compensation_dead","state":"dead"}}`:            "422 invalid_field filter.state",
		`{"action":"redrive","filter":{"kind":"compensation_dead","cause":"payload"}}`:         "404 nothing",
		`{"action":"redrive","filter":{"kind":"compensation_dead","supplier":"none-such"}}`:    "404 nothing",
		`{"action":"redrive","filter":{"kind":"notify_exhausted"}}`:                            "404 nothing",
		`{"action":"redrive","filter":{"kind":"notify_exhausted","cause":"supplier_timeout"}}`: "404 nothing",
		`{"action":"redrive","ids":["` + ids[0] + `","` + exceptions[1] + `"]}`:                "422 invalid_field ids",
	} {
		if got := h.Api(t, ops, http.MethodPost, batches, body).Problem(); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	const filter = `{"action":"redrive","filter":{"kind":"compensation_dead","state":"needs","cause":"supplier_timeout"}}`
	if got := h.Api(t, h.token(t, "compensate"), http.MethodPost, batches, filter).Problem(); !strings.HasPrefix(got, "403") {
		t.Errorf("by a service: %s", got)
	}
	for body, n := range map[string]float64{filter: 3, `{"action":"redrive","ids":["` + exceptions[0] + `","` + exceptions[2] + `"]}`: 2} {
		b := h.Api(t, ops, http.MethodPost, batches, body).Object(t)
		if b["object"] != "exception" || b["of"] != n {
			t.Errorf("%s: %v", body, b)
		}
	}
	b := h.Api(t, ops, http.MethodPost, batches, filter).Object(t)
	if got := h.Api(t, ops, http.MethodPost, batches+"/"+b["id"].(string)+"/start",
		`{"reason":"they answer again","typed":"59.94"}`); got.Status != http.StatusAccepted {
		t.Fatalf("the start: %d %s", got.Status, got.Body)
	}
	if b = h.batch(t, ops, b["id"].(string), "done"); b["done"] != 3. {
		t.Errorf("at its end: %v", b)
	}
	var left int
	if err := h.DB.NewRaw(
		"SELECT (SELECT count(*) FROM exceptions WHERE state <> 'resolved') + (SELECT count(*) FROM compensations WHERE state <> 'waiting')").Scan(t.Context(), &left); err != nil || left != 0 {
		t.Errorf("%d are as they were, %v", left, err)
	}
}
