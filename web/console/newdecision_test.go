package console

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/fund/dispute"
	"backstop/internal/settings"
	"backstop/web"
	"backstop/web/api"
	"backstop/web/webtest"

	"github.com/uptrace/bun"
)

// concede is a decision about an object that nothing was decided about before: declared here, and
// registered, nothing else.
func concede(done *[]string) act.Kind {
	return act.Kind{
		Name: "dispute.concede", Object: "dispute", Permission: access.ProposeMoney,
		Params: act.ParamsOf[struct {
			Reference string `json:"reference" max:"9" required:"true"`
		}](),
		Load: act.ByID(func(ctx context.Context, q bun.IDB, no string) (act.Subject, error) {
			d, err := dispute.ByNo(ctx, q, no)
			if err != nil {
				return act.Subject{}, act.ErrNotFound
			}
			return act.Subject{Row: d.ID, ID: no, Version: d.Version, MerchantID: d.MerchantID, Value: d}, nil
		}),
		Do: act.Each(func(_ context.Context, _ db.Tx, in act.Input, s act.Subject) (act.Outcome, error) {
			*done = append(*done, s.ID)
			return act.Outcome{Details: map[string]any{"by": in.By.Name}}, nil
		}),
		Second: &act.Second{Approve: access.ApproveMoney},
	}
}

// A decision about a kind of object that had none is offered, proposed, refused, rejected and
// approved, in the console and by the API, once its kind is registered.
func TestADecisionAboutANewObjectIsRegisteredAndNothingElse(t *testing.T) {
	t.Parallel()
	h, done := &harness{}, []string{}
	h.Site = webtest.Open(t, dbtest.Default(t), func(s *web.Server) []web.Route {
		s.Approvals = approval.NewDesk(approval.Options{
			DB: s.DB, Audit: s.Audit, Policy: s.Policy, Operators: s.Operators, Life: time.Hour, Log: s.Log,
			Rules: func() settings.Rules { return twoPeople },
		}, append(slices.Clone(s.Approvals.Kinds()), concede(&done))...)
		h.in = newHandlers(s)
		return append(api.Routes(s), h.in.routes()...)
	})
	seed(t, h.DB)
	var no string
	if err := h.DB.Read.NewRaw("SELECT dispute_no FROM disputes ORDER BY id LIMIT 1").Scan(t.Context(), &no); err != nil {
		t.Fatal(err)
	}
	xu, bo, viewer := h.person(t, "xu", access.Finance), h.person(t, "bo", access.Lead), h.SignIn(t, access.Viewer)
	page := "/disputes/" + no
	if got := h.Page(t, viewer, "/openapi.yaml"); got.Status != 200 || !strings.Contains(got.Body, "Proposes a decision about a dispute:") {
		t.Errorf("the API does not describe the decision: %d", got.Status)
	}
	why := []string{"reason", "agreed with the bank by phone"}

	if shown := h.Page(t, viewer, page).Body; strings.Contains(shown, page+"/propose") {
		t.Error("a viewer is offered the decision")
	}
	h.sends(t, viewer, page, page+"/propose", 403, append(why, "action", "dispute.concede", "version", "1")...)
	h.sends(t, xu, page, page+"/propose", 422, append(why, "params.reference", "")...)
	got := h.sends(t, xu, page, page+"/propose", 303, append(why, "params.reference", "R1")...)
	proposal, _, _ := strings.Cut(got.Header.Get("Location"), "?")
	h.sends(t, bo, proposal, proposal+"/reject", 303, why...)

	path, body := "/api/v1/admin/disputes/"+no+"/propose", `{"action":"dispute.concede","params":{"reference":"R2"},"reason":"agreed by phone"}`
	offered := h.Api(t, webtest.BearerOf(xu), "GET", path, "").Object(t)
	if actions := offered["actions"].([]any); offered["object"] != "dispute" || len(actions) != 1 ||
		actions[0].(map[string]any)["needs_second"] != true {
		t.Errorf("offered: %v", offered)
	}
	if got := h.Api(t, webtest.BearerOf(xu), "POST", path, strings.Replace(body, "R2", "too long a word", 1)).Problem(); got !=
		"422 invalid_field params.reference" {
		t.Errorf("a long reference: %s", got)
	}
	made := h.Api(t, webtest.BearerOf(xu), "POST", path, body).Object(t)["approval"].(map[string]any)
	if len(done) != 0 {
		t.Error("one person decided it")
	}
	approve := "/api/v1/admin/approvals/" + made["id"].(string) + "/approve"
	verdict := `{"hash":"` + made["hash"].(string) + `","reason":"seen and checked"}`
	if got := h.Api(t, webtest.BearerOf(xu), "POST", approve, verdict).Problem(); got != "403 own_proposal" {
		t.Errorf("approved by its maker: %s", got)
	}
	if got := h.Api(t, webtest.BearerOf(bo), "POST", approve, verdict).Object(t); got["state"] != "done" || !slices.Equal(done, []string{no}) {
		t.Errorf("approved: %v, %v", got, done)
	}
}
