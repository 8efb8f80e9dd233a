package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/settings"
	"backstop/web/webtest"

	"github.com/uptrace/bun"
)

const approvals = "/api/v1/admin/approvals"

// decisions give the server a Desk with one action, which renames a merchant.
func (h *harness) decisions(live *act.Live) {
	rename := act.Kind{
		Name: "rename", Object: "merchant", Permission: access.ProposeMoney,
		Load: act.ByID(func(ctx context.Context, q bun.IDB, id string) (act.Subject, error) {
			var at int64
			err := q.NewRaw("SELECT updated_at FROM merchants WHERE code = ?", id).Scan(ctx, &at)
			return act.Subject{ID: id, Version: at, MerchantID: 1, Amount: 1998, Currency: "CNY"}, err
		}),
		Second: &act.Second{
			Approve: access.ApproveMoney, Query: func(context.Context, act.Subject, any) (*act.Live, error) { return live, nil },
		},
		Do: act.Each(func(ctx context.Context, tx db.Tx, _ act.Input, s act.Subject) (act.Outcome, error) {
			if h.refuses != nil {
				return act.Outcome{}, h.refuses
			}
			_, err := tx.NewRaw("UPDATE merchants SET name = 'new', updated_at = updated_at + 1 WHERE code = ?", s.ID).Exec(ctx)
			return act.Outcome{Details: map[string]any{"name": "new"}}, err
		}),
	}
	h.Approvals = approval.NewDesk(approval.Options{
		DB: h.DB, Audit: h.Audit, Policy: h.Policy, Rules: func() settings.Rules { return settings.Rules{SecondPerson: true} },
		Life:      time.Hour,
		Operators: h.Operators, Log: h.Log,
	}, rename)
}

// person adds an operator and returns the actor and a personal token.
func (h *harness) person(t *testing.T, name, role string) (act.Actor, string) {
	t.Helper()
	if _, err := h.Operators.Add(t.Context(), name, role, ""); err != nil { // with a one-time password that nobody used
		t.Fatal(err)
	}
	key, err := access.NewPersonalTokens(h.DB, h.Keys).Add(t.Context(), name, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	id, err := access.IDOf(t.Context(), h.DB, name)
	if err != nil {
		t.Fatal(err)
	}
	return act.Actor{Name: "operator:" + name, ID: id, Roles: access.RolesOf(role)}, key
}

func TestPeopleDecideByTheirOwnTokens(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.decisions(nil)
	fang, maker := h.person(t, "fang", access.Finance)
	_, lead := h.person(t, "li", access.Lead)
	_, ops := h.person(t, "otto", access.Ops)
	a, err := h.Approvals.Propose(t.Context(), approval.Proposal{
		Action: "rename", ObjectID: "m1", Reason: "they asked for it",
		Amount: "19.98", By: fang,
	})
	if err != nil {
		t.Fatal(err)
	}
	path := approvals + "/" + a.No()
	body := fmt.Sprintf(`{"hash":%q,"reason":"seen and checked"}`, a.Hash)
	service := h.token(t, "monitor,control,compensate")
	for _, c := range []struct{ key, verb, body, want string }{
		{maker, "approve", body, "403 own_proposal"},
		{maker, "reject", body[:1] + `"reason":"seen and checked"}`, "403 own_proposal"},
		{ops, "approve", body, "403 role"},
		{service, "approve", body, "403 person_needed"},
		{service, "withdraw", "", "403 person_needed"},
		{lead, "withdraw", "", "403 forbidden"},
		{lead, "approve", `{"hash":"00","reason":"seen and checked"}`, "409 hash"},
		{lead, "approve", `{"reason":"seen and checked"}`, "409 hash"},
		{lead, "approve", strings.Replace(body, "seen and checked", "yes", 1), "422 invalid_field reason"},
		{lead, "approve", `{"hash":7}`, "422 invalid_field hash"},
		{lead, "approve", `{"no":7}`, "422 invalid_field no"},
		{"bso_forged", "approve", body, "401 unauthorized"},
	} {
		if got := h.Api(t, c.key, "POST", path+"/"+c.verb, c.body).Problem(); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.verb, c.body, got, c.want)
		}
	}
	for _, no := range []string{"apr_1", "apr_x", a.No()[4:], "apr_0"} {
		for _, got := range []webtest.Answer{
			h.Api(t, lead, "GET", approvals+"/"+no, ""),
			h.Api(t, lead, "POST", approvals+"/"+no+"/approve", body),
		} {
			if got.Status != 404 {
				t.Errorf("%s: %d", no, got.Status)
			}
		}
	}
	waiting := h.Api(t, service, "GET", path, "").Object(t)
	for field, want := range map[string]any{
		"id": a.No(), "action": "rename", "object": "merchant", "object_id": "m1", "amount": 1998.0, "currency": "CNY",
		"reason": "they asked for it", "hash": a.Hash, "maker": "fang",
		"checker": nil, "alone": false, "state": "waiting", "evidence": nil, "decided_at": nil, "done_at": nil, "error": nil, "result": nil,
		"version": 0.0,
	} {
		if got, there := waiting[field]; !there || got != want {
			t.Errorf("%s is %v, want %v", field, got, want)
		}
	}
	if len(waiting) != 21 || waiting["made_at"] == nil || waiting["expires_at"] == nil || fmt.Sprint(waiting["params"]) != "map[]" {
		t.Errorf("%d fields: %v", len(waiting), waiting)
	}
	var first string
	for range 2 { // a second time: the same answer, and nothing runs
		got := h.Api(t, lead, "POST", path+"/approve", body)
		x := got.Object(t)
		if got.Status != 200 || x["state"] != "done" || x["checker"] != "li" || fmt.Sprint(x["result"]) != "map[name:new]" || first != "" &&
			got.Body != first {
			t.Errorf("%d %s", got.Status, got.Body)
		}
		first = got.Body
	}
	var at int64
	if err := h.DB.NewRaw("SELECT updated_at FROM merchants WHERE code = 'm1'").Scan(t.Context(), &at); err != nil || at != 1 {
		t.Errorf("it ran %d times, %v", at, err)
	}
	// Another lead is told that it is approved, and by whom.
	_, lead2 := h.person(t, "lu", access.Lead)
	if got := h.Api(t, lead2, "POST", path+"/approve", body); got.Status != 200 || got.Body != first {
		t.Errorf("approved by another lead: %d %s", got.Status, got.Body)
	}
	other := h.Api(t, lead2, "POST", path+"/approve", `{"hash":"00","reason":"seen and checked"}`)
	if is, _ := other.Object(t)["approval"].(map[string]any); other.Problem() != "409 over" || is["state"] != "done" || is["checker"] != "li" {
		t.Errorf("approved by another lead who saw another proposal: %d %s", other.Status, other.Body)
	}
	if got := h.Api(t, ops, "POST", path+"/approve", body).Problem(); got != "403 role" {
		t.Errorf("approved by ops: %s", got)
	}
	for verb, key := range map[string]string{"reject": lead, "withdraw": maker} {
		if got := h.Api(t, key, "POST", path+"/"+verb, `{"reason":"seen and checked"}`).Problem(); got != "409 over" {
			t.Errorf("%s of what is done: %s", verb, got)
		}
	}
	list := func(query string) (nos []string) {
		t.Helper()
		var page struct {
			Items []struct{ ID string }
			Next  *string
		}
		if got := h.Api(t, ops, "GET", approvals+query, ""); got.Status != 200 || json.Unmarshal([]byte(got.Body), &page) != nil {
			t.Fatalf("%s: %d %s", query, got.Status, got.Body)
		}
		for _, x := range page.Items {
			nos = append(nos, x.ID)
		}
		if page.Next != nil {
			nos = append(nos, "next "+*page.Next)
		}
		return nos
	}
	b, err := h.Approvals.Propose(t.Context(), approval.Proposal{
		Action: "rename", ObjectID: "m2", Reason: "they asked for it",
		Amount: "19.98", By: fang,
	})
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string][]string{
		"": {b.No(), a.No()}, "?state=waiting": {b.No()}, "?state=done&maker=fang&kind=rename": {a.No()}, "?maker=li": nil,
		"?maker=command": nil, "?maker=merchant:m1": nil,
	} {
		if got := list(query); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	got := list("?limit=1")
	_, cursor, _ := strings.Cut(got[1], " ")
	if second := list("?limit=1&cursor=" + cursor); got[0] != b.No() || !slices.Equal(second, []string{a.No()}) {
		t.Errorf("pages: %q, %q", got, second)
	}
	for query, want := range map[string]string{
		"?state=over": "422 invalid_field state", "?maker=nobody": "422 invalid_field maker",
		"?maker=merchant:none": "422 invalid_field maker", "?kind=burn": "422 invalid_field kind", "?no=1": "422 invalid_field no",
	} {
		if got := h.Api(t, lead, "GET", approvals+query, "").Problem(); got != want {
			t.Errorf("%s: %s", query, got)
		}
	}
	// What has changed meanwhile is in the answer, as it is.
	exec := func(query string) {
		t.Helper()
		if _, err := h.DB.NewRaw(query).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	exec("UPDATE merchants SET updated_at = updated_at + 5 WHERE code = 'm2'")
	changed := h.Api(t, lead, "POST", approvals+"/"+b.No()+"/approve", fmt.Sprintf(`{"hash":%q,"reason":"seen and checked"}`, b.Hash))
	if is, _ := changed.Object(t)["object"].(map[string]any); changed.Problem() != "409 changed" || len(is) != 5 ||
		is["object"] != "merchant" || is["id"] != "m2" ||
		is["version"] != float64(b.Version+5) || is["amount"] != 1998.0 || is["currency"] != "CNY" {
		t.Errorf("%d %s", changed.Status, changed.Body)
	}
	exec("UPDATE merchants SET updated_at = updated_at - 5 WHERE code = 'm2'")
	h.decisions(&act.Live{Answer: "paid", Contradicts: true})
	answer := h.Api(t, lead, "POST", approvals+"/"+b.No()+"/approve", fmt.Sprintf(`{"hash":%q,"reason":"seen and checked"}`, b.Hash))
	if said, _ := answer.Object(t)["error"].(map[string]any); answer.Problem() != "409 live_says" || said["answer"] != "paid" {
		t.Errorf("%d %s", answer.Status, answer.Body)
	}
	if got := h.Api(t, maker, "POST", approvals+"/"+b.No()+"/withdraw", ""); got.Status != 200 || got.Object(t)["state"] != "withdrawn" {
		t.Errorf("%d %s", got.Status, got.Body)
	}
}

// What was approved and failed is run again by the same route, with the hash that is shown.
func TestAFailedApprovalIsRunAgain(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.decisions(nil)
	fang, maker := h.person(t, "fang", access.Finance)
	_, lead := h.person(t, "li", access.Lead)
	_, ops := h.person(t, "otto", access.Ops)
	service := h.token(t, "monitor,control,compensate")
	a, err := h.Approvals.Propose(t.Context(), approval.Proposal{
		Action: "rename", ObjectID: "m1", Reason: "they asked for it",
		Amount: "19.98", By: fang,
	})
	if err != nil {
		t.Fatal(err)
	}
	path, body := approvals+"/"+a.No(), fmt.Sprintf(`{"hash":%q,"reason":"seen and checked"}`, a.Hash)
	if got := h.Api(t, lead, "POST", path+"/again", body).Problem(); got != "409 over" {
		t.Errorf("of one that waits: %s", got)
	}
	h.refuses = errors.New("the disk is on fire")
	failed := func(verb string, tries int) {
		t.Helper()
		got := h.Api(t, lead, "POST", path+"/"+verb, body)
		if x := got.Object(t); got.Status != 200 || x["state"] != "failed" || x["error"] != "the disk is on fire" {
			t.Errorf("%s: %d %s", verb, got.Status, got.Body)
		}
		var n int
		if err := h.DB.NewRaw("SELECT tries FROM approvals").Scan(t.Context(), &n); err != nil || n != tries {
			t.Errorf("%d tries, want %d, %v", n, tries, err)
		}
	}
	failed("approve", 1)
	for _, c := range []struct{ key, body, want string }{
		{maker, body, "403 own_proposal"},
		{ops, body, "403 role"},
		{service, body, "403 person_needed"},
		{lead, `{"hash":"00","reason":"seen and checked"}`, "409 hash"},
		{lead, strings.Replace(body, "seen and checked", "yes", 1), "422 invalid_field reason"},
		{lead, `{"no":7}`, "422 invalid_field no"},
	} {
		if got := h.Api(t, c.key, "POST", path+"/again", c.body).Problem(); got != c.want {
			t.Errorf("%s: %s, want %s", c.body, got, c.want)
		}
	}
	failed("again", 2)
	h.refuses = nil
	if got := h.Api(t, lead, "POST", path+"/again", body); got.Status != 200 || got.Object(t)["state"] != "done" {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	if got := h.Api(t, lead, "POST", path+"/again", body).Problem(); got != "409 over" {
		t.Errorf("of one that is done: %s", got)
	}
	// The third failure is the last one.
	b, err := h.Approvals.Propose(t.Context(), approval.Proposal{
		Action: "rename", ObjectID: "m2", Reason: "they asked for it",
		Amount: "19.98", By: fang,
	})
	if err != nil {
		t.Fatal(err)
	}
	h.refuses = errors.New("the disk is on fire")
	path, body = approvals+"/"+b.No(), fmt.Sprintf(`{"hash":%q,"reason":"seen and checked"}`, b.Hash)
	for i, verb := range []string{"approve", "again", "again"} {
		got := h.Api(t, lead, "POST", path+"/"+verb, body)
		if got.Status != 200 || got.Object(t)["state"] != "failed" {
			t.Errorf("run %d: %d %s", i+1, got.Status, got.Body)
		}
	}
	if got := h.Api(t, lead, "POST", path+"/again", body).Problem(); got != "409 over" {
		t.Errorf("a fourth run: %s", got)
	}
}
