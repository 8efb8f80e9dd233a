package console

import (
	"net/http"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/exception"
)

func TestARefusedFormIsShownAgainWithWhatWasTyped(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := openOn(t, d)
		seed(t, h.DB)
		change(t, h.DB, "DELETE FROM approvals")
		h.decideWith(twoPeople)
		xu, ops := h.person(t, "xu", access.Finance), h.SignIn(t, access.Ops)
		x := h.on(t, exception.AmountMismatch).path
		for action, c := range map[string]struct {
			cookie, page string
			fields, want []string
		}{
			x + "/propose": {
				xu, x,
				[]string{"reason", "agreed with <the> merchant", "amount", "12.301"},
				[]string{
					`<details class="raw decision" id="decide-accept_amount" open="">`,
					`agreed with &lt;the&gt; merchant</textarea>`, `value="12.301"`,
					`autofocus=""/><p class="err" role="alert">Type the amount exactly as it is shown</p>`,
				},
			},
			"/accounts/adjust": {
				xu, "/accounts",
				[]string{
					"debit", "bank:x", "credit", "nowhere", "currency", "CNY", "amount", "12.30", "evidence", "line 7",
					"reason", "as the bank says",
				},
				[]string{
					`value="bank:x"`, `value="nowhere"`, `value="12.30"`, `>line 7</textarea>`,
					`>as the bank says</textarea>`, `role="alert"`,
				},
			},
			orderOne + "/note": {
				ops, orderOne,
				[]string{"reason", "please look, @nobody.here"},
				[]string{
					`<dialog id="note" aria-labelledby="note-title" open="">`, `>please look, @nobody.here</textarea>`,
					"Nobody who may see this has the name @nobody.here",
				},
			},
			x + "/comment": {ops, x, []string{"reason", "short"}, []string{`>short</textarea>`, `8 to 1000 characters</p>`}},
			"/sweeps/run":  {ops, "/sweeps", []string{"reason", "short"}, []string{`>short</textarea>`, `8 to 1000 characters</p>`}},
		} {
			got := h.Post(t, c.cookie, action+"?lang=en", append(formOf(t, h.Page(t, c.cookie, c.page).Body, action), c.fields...)...)
			for _, want := range c.want {
				if got.Status != http.StatusUnprocessableEntity || !strings.Contains(got.Body, want) {
					t.Errorf("%s: %d without %s", action, got.Status, want)
				}
			}
			if strings.Count(got.Body, `role="alert"`) != 1 || strings.Contains(got.Body, `value="12.301"`) != strings.Contains(action, "propose") {
				t.Errorf("%s: the problem is not at one form: %s", action, got.Body)
			}
		}
		// The page has no such form any more.
		got := h.Post(t, xu, x+"/propose?lang=en", "form_key", "k", "version", "1", "action", "nonsense", "reason", "long enough")
		if got.Status != http.StatusUnprocessableEntity || !strings.Contains(got.Body, "There is no such action") {
			t.Errorf("without its form: %d: %s", got.Status, got.Body)
		}
	})
}
