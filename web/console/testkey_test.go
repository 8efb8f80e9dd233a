package console

import (
	"net/http"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/web/webtest"

	"github.com/valyala/fasthttp"
)

// A merchant's key of test mode is made on its page, once for each form, and only while test mode is on.
func TestAKeyOfTestModeIsMadeOnTheMerchantsPage(t *testing.T) {
	t.Parallel()
	h := open(t)
	admin, ops := h.SignIn(t, access.Admin), h.SignIn(t, access.Ops)
	const page, path = "/merchants/m2?lang=en", "/merchants/m2/test_key"
	if strings.Contains(h.Page(t, admin, page).Body, path) {
		t.Error("it is offered without test mode")
	}
	form := []string{"form_key", "k", "reason", because}
	if got := h.Post(t, admin, path, form...); got.Status != http.StatusServiceUnavailable {
		t.Errorf("without test mode: %d", got.Status)
	}
	h.TestMode = func() fasthttp.RequestHandler { return nil }
	if strings.Contains(h.Page(t, ops, page).Body, path) || !strings.Contains(h.Page(t, admin, page).Body, path) {
		t.Error("it is offered to the wrong people")
	}
	if got := h.Post(t, ops, path, form...); got.Status != http.StatusForbidden {
		t.Errorf("ops: %d", got.Status)
	}
	form[1] = "k2"
	if got := h.Post(t, admin, path, form...); got.Status != http.StatusOK || !strings.Contains(got.Body, webtest.TestKey) {
		t.Errorf("made: %d %s", got.Status, got.Body)
	}
	if got := h.Post(t, admin, path, form...); got.Status != http.StatusSeeOther || strings.Contains(got.Body, webtest.TestKey) {
		t.Errorf("the form sent twice: %d", got.Status)
	}
	var actors []string
	err := h.DB.NewRaw("SELECT actor FROM audit WHERE action = 'merchant.test_key' AND object_id = 'm2'").Scan(t.Context(), &actors)
	if err != nil || len(actors) != 1 || actors[0] != "operator:the.admin" {
		t.Errorf("the audit has %v, %v", actors, err)
	}
}
