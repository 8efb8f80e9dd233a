package api

import (
	"fmt"
	"html"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/web/webtest"
)

// While the supplier gives no clear answer, the page says so, everybody who may query it can ask
// again, and a lead other than the maker may approve; a contrary answer is never overruled.
func TestAnUnclearAnswerIsNoDeadEnd(t *testing.T) {
	t.Parallel()
	h := open(t)
	live := &act.Live{Answer: "closed"}
	h.decisions(live)
	by, maker := h.person(t, "li", access.Lead)
	*live = act.Live{}
	cookies := map[string]string{}
	for _, role := range access.AllRoles {
		cookies[role] = h.SignIn(t, role)
	}
	lead, finance := webtest.BearerOf(cookies[access.Lead]), webtest.BearerOf(cookies[access.Finance])
	a, err := h.Approvals.Propose(t.Context(), approval.Proposal{
		Action: "rename", ObjectID: "m1", Reason: "they asked for it", Amount: "19.98", By: by, Params: []byte(`{"unverified":true}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	// The proposal itself claims nothing: the supplier fell silent only after it was made.
	change(t, h, "UPDATE approvals SET params = '{}'")
	a.Params = []byte("{}")
	if a.Hash, err = approval.Sum(a); err != nil {
		t.Fatal(err)
	}
	change(t, h, "UPDATE approvals SET hash = ?", a.Hash)
	path, page := approvals+"/"+a.No()+"/approve", "/approvals/"+a.No()
	plain := fmt.Sprintf(`{"hash":%q,"reason":"seen and checked"}`, a.Hash)
	unverified := strings.Replace(plain, "{", `{"unverified":true,`, 1)
	says := func(key, body, want, answer string) {
		t.Helper()
		got := h.Api(t, key, "POST", path, body)
		is, _ := got.Object(t)["error"].(map[string]any)
		if got.Problem() != want || answer != "" && is["answer"] != answer {
			t.Errorf("%s: %d %s, want %s", body, got.Status, got.Body, want)
		}
	}
	shows := func(role, lang string, want bool, texts ...string) {
		t.Helper()
		body := html.UnescapeString(h.Page(t, cookies[role], page+"?lang="+lang).Body)
		for _, text := range texts {
			if strings.Contains(body, text) != want {
				t.Errorf("%s in %s shows %q: %t", role, lang, text, !want)
			}
		}
	}
	live.Answer = "unknown"
	says(lead, plain, "409 live_says", "unknown")
	says(finance, unverified, "403 role", "")
	says(maker, unverified, "403 own_proposal", "")
	form, box := page+`/query"`, `name="unverified"`
	for _, role := range access.AllRoles {
		may := role != access.Viewer && role != access.Admin && role != access.Auditor
		shows(role, "en", may, form)
		shows(role, "en", role == access.Lead, box)
	}
	shows(access.Lead, "en", true, "could not be reached or gave no clear answer")
	shows(access.Lead, "zh", true, "渠道无法查询或没有给出明确结果", "再次查单")
	// Asked again, it contradicts.
	*live = act.Live{Answer: "paid", Contradicts: true}
	if got := h.Post(t, cookies[access.Support], page+"/query", "form_key", "again", "reason", "is it back by now?"); got.Status != 303 {
		t.Errorf("asked again: %d", got.Status)
	}
	if got := h.Post(t, cookies[access.Viewer], page+"/query", "form_key", "viewer", "reason", "is it back by now?"); got.Status != 403 {
		t.Errorf("asked again by a viewer: %d", got.Status)
	}
	shows(access.Lead, "en", true, "the supplier said: paid. This contradicts the proposal", form)
	shows(access.Lead, "zh", true, "渠道结果为“已支付”，与这份提议相反", form)
	shows(access.Lead, "en", false, box)
	says(lead, unverified, "409 live_says", "paid")
	got := h.Post(t, cookies[access.Lead], page+"/approve", "form_key", "f", "hash", a.Hash, "reason", "seen and checked", "unverified", "1")
	if got.Status != 409 || !strings.Contains(got.Body, page+"/query") {
		t.Errorf("the refused form does not lead on: %d", got.Status)
	}
	*live = act.Live{Answer: "unknown"}
	if got := h.Api(t, lead, "POST", path, unverified); got.Status != 200 || got.Object(t)["hash"] != a.Hash {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	shows(access.Lead, "en", true, "the checker took responsibility")
}
