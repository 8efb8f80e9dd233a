package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/exception"
	"backstop/internal/ledger"
	"backstop/internal/ledger/fact"
	"backstop/web/webtest"
)

const exceptionsURL = "/api/v1/admin/exceptions/"

// open opens an exception and returns its path.
func (h *harness) exception(t *testing.T, x exception.Item) string {
	t.Helper()
	x.ID, x.State, x.Seen, x.Version, x.Detail, x.OpenedAt = h.DB.NewID(), exception.Opened, 1, 1,
		exception.Detail(map[string]any{"trade_no": x.Subject}), h.DB.Now()
	if _, err := h.DB.NewInsert().Model(&x).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if id, ok := strings.CutPrefix(x.HeldRef, "held:"); ok {
		err := h.DB.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error {
			w := tx.Writes()
			e := fact.Entry(fact.Held, fact.Values{Supplier: "wx", ID: id, Amount: x.Amount, Currency: x.Currency})
			return errors.Join(ledger.New(h.DB).Post(ctx, tx, w, []ledger.Entry{e}), w.Exec(ctx))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprint(exceptionsURL, x.ID)
}

// people are bearer tokens of operators, by role.
func (h *harness) people(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, role := range access.AllRoles {
		all[role] = webtest.BearerOf(h.SignIn(t, role))
	}
	return all
}

func TestOneExceptionIsShownWithWhatThisPersonMayDo(t *testing.T) {
	t.Parallel()
	h := open(t)
	people := h.people(t)
	path := h.exception(t, exception.Item{
		Kind: exception.DuplicatePayment, SupplierID: 1, MerchantID: 1, OrderNo: "O1", Subject: "T1",
		Amount: 1998, Currency: "CNY", HeldRef: "held:1:T1",
	})
	x := h.Api(t, people[access.Finance], "GET", path, "").Object(t)
	if names := strings.Join(slices.Sorted(maps.Keys(x)),
		" "); names != "actions amount approvals assignee comments compensations currency detail id kind merchant opened_at order_no outcome reference resolved_at state supplier version" {
		t.Errorf("fields %s", names)
	}
	if x["assignee"] != nil || x["version"] != 1.0 || x["supplier"] != "wx" || x["merchant"] != "m1" {
		t.Errorf("exception %v", x)
	}
	// The supplier of this site has no keys for calls: no refund can be ordered there.
	for role, want := range map[string]string{
		access.Finance: "keep_surplus resolved_elsewhere", access.Ops: "", access.Admin: "",
		access.Auditor: "",
	} {
		var got []string
		for _, a := range h.Api(t, people[role], "GET", path, "").Object(t)["actions"].([]any) {
			offer := a.(map[string]any)
			got = append(got, offer["action"].(string))
			if offer["needs_second"] != true || offer["params"].(map[string]any)["evidence"] != "text" {
				t.Errorf("offer %v", offer)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s may %v, want %s", role, got, want)
		}
	}
	for body, want := range map[string]string{
		`{"text":"short"}`: "422 invalid_field text", `{}`: "422 invalid_field text",
		`{"text":"the bank was called","by":"me"}`: "422 invalid_field by",
	} {
		if got := h.Api(t, people[access.Support], "POST", path+"/comment", body).Problem(); got != want {
			t.Errorf("comment %s: %s, want %s", body, got, want)
		}
	}
	x = h.Api(t, people[access.Support], "POST", path+"/comment", `{"text":"the bank was called"}`).Object(t)
	if c := x["comments"].([]any); len(c) != 1 || c[0].(map[string]any)["text"] != "the bank was called" ||
		c[0].(map[string]any)["by"] != "operator:the.support" {
		t.Errorf("comments %v", c)
	}
	if x = h.Api(t, people[access.Support], "POST", path+"/assign", `{"to":"the.ops"}`).Object(t); x["assignee"] != "the.ops" ||
		x["state"] != "assigned" {
		t.Errorf("assigned %v", x)
	}
	if got := h.Api(t, people[access.Support], "POST", path+"/assign", `{"to":"nobody"}`).Problem(); got != "422 invalid_field to" {
		t.Errorf("assigned to an unknown operator: %s", got)
	}
	for _, key := range []string{people[access.Finance], webtest.MonitorToken} {
		if got := h.Api(t, key, "GET", exceptionsURL+"7", "").Problem(); got != "404 not_found" {
			t.Errorf("none: %s", got)
		}
	}
	if got := h.Api(t, webtest.MonitorToken, "GET", path, "").Object(t)["actions"].([]any); len(got) != 0 {
		t.Errorf("a service may %v", got)
	}
}

func TestAProposalIsAnsweredAsPromised(t *testing.T) {
	t.Parallel()
	h := open(t)
	people := h.people(t)
	money := exception.Item{
		Kind: exception.DuplicatePayment, SupplierID: 1, MerchantID: 1, OrderNo: "O1", Subject: "T1", Amount: 1998,
		Currency: "CNY", HeldRef: "held:1:T1",
	}
	path := h.exception(t, money)
	keep := func(changes ...any) string {
		body := map[string]any{
			"action": "keep_surplus", "params": map[string]any{"evidence": "a letter"},
			"reason": "as the buyer has written", "amount": "19.98",
		}
		for i := 0; i < len(changes); i += 2 {
			body[changes[i].(string)] = changes[i+1]
		}
		raw, _ := json.Marshal(body)
		return string(raw)
	}
	over := h.exception(t, exception.Item{
		Kind: exception.DuplicatePayment, OrderNo: "O2", Subject: "T2", Amount: 1998, Currency: "CNY",
		HeldRef: "held:1:T2",
	})
	h.exec(t, "UPDATE exceptions SET state = 'resolved' WHERE subject = 'T2'")
	for what, c := range map[string]struct{ key, path, body, want string }{
		"by a service":   {webtest.MonitorToken, path, keep(), "403 person_needed"},
		"by ops":         {people[access.Ops], path, keep(), "403 forbidden"},
		"by an auditor":  {people[access.Auditor], path, keep(), "403 forbidden"},
		"about nothing":  {people[access.Finance], exceptionsURL + "7", keep(), "404 not_found"},
		"about an order": {people[access.Finance], path, keep("action", "mark_paid"), "422 invalid_field action"},
		"of another kind": {
			people[access.Finance], path, keep("action", "accept_late", "params", map[string]any{}),
			"422 invalid_field action",
		},
		"of nothing known":    {people[access.Finance], path, keep("action", "give_away"), "422 invalid_field action"},
		"of what has a route": {people[access.Finance], path, keep("action", "query"), "422 invalid_field action"},
		"about what is over":  {people[access.Finance], over, keep(), "409 over"},
		"of before":           {people[access.Finance], path, keep("version", 7), "409 changed"},
		"by another amount":   {people[access.Finance], path, keep("amount", "1998"), "422 invalid_field amount"},
		"by no amount":        {people[access.Finance], path, keep("amount", ""), "422 invalid_field amount"},
		"for a short reason":  {people[access.Finance], path, keep("reason", "why"), "422 invalid_field reason"},
		"without evidence":    {people[access.Finance], path, keep("params", map[string]any{}), "422 invalid_field params.evidence"},
		"with another field": {
			people[access.Finance], path, keep("params", map[string]any{"evidence": "e", "amount": 1}),
			"422 invalid_field params.amount",
		},
	} {
		if got := h.Api(t, c.key, "POST", c.path+"/propose", c.body).Problem(); got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
	}
	if got := h.Api(t, people[access.Finance], "POST", path+"/propose",
		keep("version", 7)).Object(t)["object"].(map[string]any); got["version"] != 1.0 || got["state"] != "open" {
		t.Errorf("what was changed is shown as %v", got)
	}
	made := h.Api(t, people[access.Finance], "POST", path+"/propose", keep("version", 1))
	a, _ := made.Object(t)["approval"].(map[string]any)
	if made.Status != 201 || a["state"] != "waiting" || a["maker"] != "the.finance" || a["amount"] != 1998.0 ||
		!strings.HasPrefix(a["id"].(string), "apr_") {
		t.Fatalf("proposed: %d %s", made.Status, made.Body)
	}
	if x := h.Api(t, people[access.Lead], "GET", path, "").Object(t); x["state"] != "proposed" || len(x["actions"].([]any)) != 0 ||
		len(x["approvals"].([]any)) != 1 {
		t.Errorf("proposed: %v", x)
	}
	if got := h.Api(t, people[access.Lead], "POST", path+"/propose", keep()).Problem(); got != "409 proposed" {
		t.Errorf("a second proposal: %s", got)
	}
	approvals := "/api/v1/admin/approvals/" + a["id"].(string)
	verdict := fmt.Sprintf(`{"hash":%q,"reason":"compared with the letter"}`, a["hash"])
	if got := h.Api(t, people[access.Finance], "POST", approvals+"/approve", verdict).Problem(); got != "403 own_proposal" {
		t.Errorf("by its maker: %s", got)
	}
	for range 2 {
		if done := h.Api(t, people[access.Lead], "POST", approvals+"/approve", verdict); done.Status != 200 ||
			done.Object(t)["state"] != "done" {
			t.Errorf("approved: %d %s", done.Status, done.Body)
		}
	}
	if x := h.Api(t, people[access.Lead], "GET", path, "").Object(t); x["state"] != "resolved" || x["outcome"] != "keep_surplus" {
		t.Errorf("decided: %v", x)
	}

	odd := h.exception(t, exception.Item{Kind: exception.Malformed, Subject: "b1"})
	alone := h.Api(t, people[access.Ops], "POST", odd+"/propose", `{"action":"ignore","reason":"their test system"}`)
	if a, _ := alone.Object(t)["approval"].(map[string]any); alone.Status != 200 || a["state"] != "done" || a["checker"] != nil ||
		a["amount"] != nil {
		t.Errorf("ignored: %d %s", alone.Status, alone.Body)
	}
}

func TestExceptionsAreFoundByWhoseTheyAre(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.exception(t, exception.Item{Kind: exception.LatePayment, SupplierID: 1, MerchantID: 1, OrderNo: "O1", Subject: "1", Assignee: "li"})
	h.exception(t, exception.Item{Kind: exception.LatePayment, SupplierID: 1, MerchantID: 2, OrderNo: "O2", Subject: "2"})
	h.exception(t, exception.Item{Kind: exception.Malformed, OrderNo: "O3", Subject: "3"})
	for query, want := range map[string]string{
		"assignee=li": "O1", "supplier=wx": "O2 O1", "merchant=m2": "O2", "merchant=m2&assignee=li": "",
		"from=2020-01-01T00:00:00Z": "O3 O2 O1",
		"to=2020-01-01T00:00:00Z":   "", "from=2020-01-01T00:00:00Z&supplier=wx&merchant=m1": "O1",
	} {
		var got []string
		for _, x := range h.pages(t, "/api/v1/admin/exceptions?"+query) {
			got = append(got, x["order_no"].(string))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
	h.exception(t, exception.Item{Kind: exception.BooksDiffer, Subject: "4"})
	if x := h.pages(t, "/api/v1/admin/exceptions?kind="+exception.BooksDiffer)[0]; x["order_no"] != nil || x["amount"] != nil ||
		x["currency"] != nil {
		t.Errorf("without order and money: %v", x)
	}
	for query, want := range map[string]string{
		"merchant=none": "422 invalid_field merchant", "supplier=none": "422 invalid_field supplier",
		"from=yesterday": "422 invalid_field from",
	} {
		if got := h.Api(t, webtest.MonitorToken, "GET", "/api/v1/admin/exceptions?"+query, "").Problem(); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

func (h *harness) exec(t *testing.T, query string) {
	t.Helper()
	if _, err := h.DB.ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
}
