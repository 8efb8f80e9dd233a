package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/web/webtest"
)

// maker is somebody who proposed something.
type maker struct {
	name string
	kind string
	id   int64
	role string // when proposing; "" = none, which must not stand for any
	now  string // "" = none, or gone
}

// mayApprove is who may approve what, as the contract says it: of money, a lead what anybody else
// asked for, and finance only what a lead proposed; of settings, a lead. What a person proposed
// holds as long as that person may propose it; a command proposes settings only.
func mayApprove(a act.Kind, policy *access.Policy, by maker, checker string) bool {
	settings := a.Second.Approve == access.ApproveSettings
	switch {
	case by.kind == "service", by.kind == "operator" && by.id == 0 && !settings:
		return false
	case by.kind == "operator" && by.id != 0 && !policy.Allows(access.RolesOf(by.now), a.Permission):
		return false
	case checker == access.Lead:
		return true
	}
	return checker == access.Finance && !settings && by.kind == "operator" && by.id != 0 && by.role == access.Lead
}

// makers returns one maker of each kind and role. Stored roles of those who have none are there,
// too: rows that were written by hand must not count.
func (h *harness) makers(t *testing.T) []maker {
	t.Helper()
	all := []maker{
		{"a merchant", "merchant", 1, "", ""},
		{"a merchant with a role", "merchant", 1, access.Lead, ""},
		{"a command", "operator", 0, "", ""},
		{"a command with a role", "operator", 0, access.Lead, ""},
		{"an operator who is removed", "operator", 999, access.Lead, ""},
		{"an unknown role", "operator", 999, "root", ""},
	}
	for _, role := range access.AllRoles {
		all = append(all, maker{role, "operator", h.operator(t, "another."+role, role), role, role})
	}
	gone := h.operator(t, "gone", access.Lead)
	change(t, h, "UPDATE operators SET disabled_at = 1 WHERE id = ?", gone)
	return append(all, maker{"an operator who is disabled", "operator", gone, access.Lead, ""},
		maker{"a lead, finance by now", "operator", h.operator(t, "demoted", access.Finance), access.Lead, access.Finance},
		maker{"finance, a lead by now", "operator", h.operator(t, "promoted", access.Lead), access.Finance, access.Lead},
		maker{"one without a stored role", "operator", h.operator(t, "older", access.Lead), "", access.Lead})
}

func (h *harness) operator(t *testing.T, name, role string) int64 {
	t.Helper()
	by, _ := h.person(t, name, role)
	return by.ID
}

func change(t *testing.T, h *harness, query string, args ...any) {
	t.Helper()
	if _, err := h.DB.NewRaw(query, args...).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Every action × every maker × every checker: the decision itself, without a database.
func TestWhoMayApproveIsAsTheContractSays(t *testing.T) {
	t.Parallel()
	h := open(t)
	makers := append(h.makers(t), maker{"a service", "service", 7, access.Lead, ""}, maker{"nobody", "", 0, access.Lead, ""})
	var words []string
	for _, w := range approval.Decisions {
		words = append(words, w.Kind)
	}
	if names := h.Approvals.Names(); !slices.Equal(names, slices.Sorted(slices.Values(words))) {
		t.Errorf("the server decides %q, there are words for %q", names, words)
	}
	cases, allowed := 0, 0
	for _, a := range h.Approvals.Kinds() {
		for _, by := range makers {
			row := &approval.Approval{
				Action: a.Name, Object: a.Object, Params: json.RawMessage("{}"), Maker: by.id, MakerKind: by.kind,
				MakerRole: access.RolesOf(by.role), Second: true, State: approval.Waiting,
			}
			checkers := []act.Actor{{Name: "token:x", Token: &access.Token{Scope: access.Control}}, {Name: "command", Roles: access.Lead}}
			for i, role := range append([]string{"", "root"}, access.AllRoles...) {
				checkers = append(checkers, act.Actor{Name: "operator:x", ID: int64(5000 + i), Roles: access.RolesOf(role)})
			}
			if by.kind == "operator" && by.id != 0 {
				checkers = append(checkers, act.Actor{Name: "operator:self", ID: by.id, Roles: access.Lead})
			}
			for _, checker := range checkers {
				self := checker.ID == by.id && by.kind == "operator"
				want := checker.ID != 0 && !self && by.kind != "" && mayApprove(a, h.Policy, by, string(checker.Roles))
				got := h.Approvals.May(checker, row, access.RolesOf(by.now))
				if got.Approve != want {
					t.Errorf("%s of %s that %s proposed, by %q of role %q: offered %t", a.Name, a.Object, by.name, checker.Name, checker.Roles, got.Approve)
				}
				if got.Unverified || got.Query {
					t.Errorf("%s: a supplier's answer is overruled that nobody asked for", a.Name)
				}
				cases++
				if want {
					allowed++
				}
			}
		}
	}
	t.Logf("%d cases, %d of them allowed", cases, allowed)
}

// The same through the console and the API, for an action of each pair of permissions: a button is
// shown if and only if both let its form past the check of roles.
func TestAButtonIsShownToWhoMayApprove(t *testing.T) {
	t.Parallel()
	h := open(t)
	makers := h.makers(t)
	service := h.token(t, "monitor,control,compensate")
	cookies := map[string]string{}
	ids := map[string]int64{}
	for _, role := range access.AllRoles {
		cookies[role] = h.SignIn(t, role)
		id, err := access.IDOf(t.Context(), h.DB, "the."+role)
		if err != nil {
			t.Fatal(err)
		}
		ids[role] = id
		makers = append(makers, maker{"the same " + role, "operator", id, role, role})
	}
	classes := map[[2]access.Permission]act.Kind{}
	for _, a := range h.Approvals.Kinds() {
		classes[[2]access.Permission{a.Permission, a.Second.Approve}] = a
	}
	n := int64(700)
	for _, a := range slices.SortedFunc(maps.Values(classes), func(a, b act.Kind) int { return strings.Compare(a.Name, b.Name) }) {
		for _, by := range makers {
			n++
			change(t, h, "INSERT INTO approvals (id, action, object, object_id, version, amount, currency, params, reason, evidence, hash, maker,"+
				" maker_kind, maker_role, second, state, made_at, expires_at) VALUES (?, ?, ?, ?, 1, 0, '', '{}', 'they asked for it', '', 'h',"+
				" ?, ?, ?, TRUE, 'waiting', 1, ?)", n, a.Name, a.Object, fmt.Sprint(n), by.id, by.kind, by.role, h.DB.Now()+3_600_000_000)
			no := fmt.Sprintf("apr_%d", n)
			path, page := approvals+"/"+no+"/approve", "/approvals/"+no
			// What another proposal was approved for is refused after the roles were checked.
			const body = `{"hash":"00","reason":"seen and checked"}`
			if got := h.Api(t, service, "POST", path, body).Problem(); got != "403 person_needed" {
				t.Errorf("%s by a service: %s", a.Name, got)
			}
			for _, role := range access.AllRoles {
				want := map[bool]string{true: "409 hash", false: "403 role"}[mayApprove(a, h.Policy, by, role)]
				if by.kind == "operator" && by.id == ids[role] {
					want = "403 own_proposal"
				}
				got := h.Api(t, webtest.BearerOf(cookies[role]), "POST", path, body).Problem()
				shown := strings.Contains(h.Page(t, cookies[role], page).Body, `action="`+page+`/approve"`)
				form := h.Post(t, cookies[role], page+"/approve", "form_key", no+role, "hash", "00", "reason", "seen and checked").Status
				if got != want || shown != (want == "409 hash") || fmt.Sprint(form) != want[:3] {
					t.Errorf("%s that %s proposed, by %s: %s, by the console %d, button %t, want %s", a.Name, by.name, role, got, form, shown, want)
				}
			}
		}
	}
	t.Logf("%d proposals of %d actions, by %d checkers", n-700, len(classes), len(cookies)+1)
}

// No service proposes what people decide, so no proposal has one as its maker.
func TestAServiceProposesNothing(t *testing.T) {
	t.Parallel()
	h := open(t)
	service := h.token(t, "monitor,control,compensate")
	for _, path := range []string{"/api/v1/admin/orders/2026112000000001/propose", "/api/v1/admin/exceptions/1/propose"} {
		if got := h.Api(t, service, "POST", path, `{"action":"mark_paid","reason":"they asked for it"}`).Problem(); got != "403 person_needed" {
			t.Errorf("%s: %s", path, got)
		}
	}
}
