package web_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/web"
	"backstop/web/webtest"
)

func TestEveryRouteStandsInTheTableAndBehindItsDoor(t *testing.T) {
	t.Parallel()
	h := open(t)
	var table, reachable []string
	for _, r := range h.Routes() {
		table = append(table, r.Method+" "+r.Path)
		path := strings.NewReplacer(":supplier", "wx", ":order_no", "1", ":merchant", "m1").Replace(r.Path)
		got := h.Call(t, r.Method, path, "")
		locked := got.Status == http.StatusUnauthorized
		if want := r.Audience == web.ForMerchant || r.Audience == web.ForMonitor; locked != want {
			t.Errorf("%s %s without a key: %d", r.Method, path, got.Status)
		}
		if locked && got.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s %s does not say how to authenticate", r.Method, path)
		}
		wrong := map[web.Audience]string{web.ForMerchant: webtest.MonitorToken, web.ForMonitor: webtest.KeyOfGalaxy}[r.Audience]
		if locked && h.Api(t, wrong, r.Method, path, "").Status != http.StatusUnauthorized {
			t.Errorf("%s %s opens to the key of another audience", r.Method, path)
		}
		if r.Audience == web.ForOperator && r.Method != http.MethodPost && (got.Status != http.StatusSeeOther ||
			!strings.HasPrefix(got.Header.Get("Location"), "/login")) {
			t.Errorf("%s %s does not lead to the login: %d %s", r.Method, path, got.Status, got.Header.Get("Location"))
		}
		if (r.Audience == web.ForOperator || r.Audience == web.ForMonitor) != (r.Permission != "") {
			t.Errorf("%s %s has the permission %q", r.Method, path, r.Permission)
		}
		person := slices.Contains(forPersons, r.Method+" "+r.Path)
		if (r.Audience == web.ForMonitor && !person) != (r.Scope != "") {
			t.Errorf("%s %s has the scope %q", r.Method, path, r.Scope)
		}
		if got.Header.Get("X-Content-Type-Options") != "nosniff" || got.Header.Get("X-Request-Id") == "" || got.Header.Get("Server") != "" {
			t.Errorf("%s %s: headers %v", r.Method, path, got.Header)
		}
	}
	for _, r := range h.App().GetRoutes(true) {
		reachable = append(reachable, r.Method+" "+r.Path)
	}
	slices.Sort(table)
	slices.Sort(reachable)
	if !slices.Equal(table, reachable) {
		t.Errorf("the table has\n%v\nreachable are\n%v", table, reachable)
	}
}

// forPersons are the routes of the admin API that no service token opens.
var forPersons = []string{
	"POST /api/v1/admin/compensations/:id/cancel",
	"POST /api/v1/admin/exceptions/:id/assign", "POST /api/v1/admin/exceptions/:id/comment",
	"POST /api/v1/admin/exceptions/:exception/propose", "POST /api/v1/admin/orders/:order_no/propose",
	"POST /api/v1/admin/payouts/:payout_no/propose",
	"POST /api/v1/admin/adjustments", "POST /api/v1/admin/merchants/:code/freeze", "POST /api/v1/admin/merchants/:code/unfreeze",
	"POST /api/v1/admin/payouts/:payout_no/resolve",
	"POST /api/v1/admin/disputes/:dispute_no/evidence",
	"POST /api/v1/admin/approvals/:id/approve", "POST /api/v1/admin/approvals/:id/reject", "POST /api/v1/admin/approvals/:id/withdraw",
	"POST /api/v1/admin/approvals/:id/again",
	"GET /api/v1/admin/schema", "GET /api/v1/admin/approval", "PUT /api/v1/admin/approval",
	"GET /api/v1/admin/merchants/:code", "PUT /api/v1/admin/merchants/:code",
	"GET /api/v1/admin/suppliers/:code", "PUT /api/v1/admin/suppliers/:code",
	"GET /api/v1/admin/subscriptions/:code", "PUT /api/v1/admin/subscriptions/:code",
	"GET /api/v1/admin/payout_accounts/:code", "PUT /api/v1/admin/payout_accounts/:code",
	"GET /api/v1/admin/skus/:code", "PUT /api/v1/admin/skus/:code",
	"GET /api/v1/admin/roles/:code", "PUT /api/v1/admin/roles/:code",
}

// Each route that changes something is closed to pages of other sites, which send the person's
// cookie but not our origin, and to the keys of other audiences.
func TestEveryActIsClosedToOtherSitesAndOtherKeys(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Admin)
	name, _, _ := strings.Cut(cookie, "=")
	acts := 0
	for _, r := range h.Routes() {
		if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions {
			continue
		}
		path := regexp.MustCompile(`:[a-z_]+`).ReplaceAllString(r.Path, "1")
		try := func(want int, what string, header ...string) {
			t.Helper()
			got := h.Call(t, r.Method, path, "reason=because+I+say+so&form_key="+what,
				append([]string{"Content-Type", "application/x-www-form-urlencoded"}, header...)...)
			if got.Status != want || want == http.StatusSeeOther && !strings.HasPrefix(got.Header.Get("Location"), "/login") {
				t.Errorf("%s %s %s: %d %s, want %d", r.Method, path, what, got.Status, got.Header.Get("Location"), want)
			}
		}
		switch r.Audience {
		case web.ForOperator, web.ForVisitor:
			acts++
			try(http.StatusForbidden, "from another site", "Cookie", cookie, "Sec-Fetch-Site", "cross-site")
			try(http.StatusForbidden, "from a sister site", "Cookie", cookie, "Sec-Fetch-Site", "same-site", "Origin",
				"https://sister.example")
			try(http.StatusForbidden, "from another origin", "Cookie", cookie, "Origin", "https://other.example")
			try(http.StatusForbidden, "from a sandbox", "Cookie", cookie, "Origin", "null")
			try(http.StatusForbidden, "from nowhere", "Cookie", cookie)
		case web.ForMerchant, web.ForMonitor:
			try(http.StatusUnauthorized, "with a cookie", "Cookie", cookie, "Sec-Fetch-Site", "same-origin")
		}
		if r.Audience != web.ForOperator {
			continue
		}
		for _, key := range []string{webtest.MonitorToken, webtest.KeyOfGalaxy} {
			try(http.StatusSeeOther, "with another audience's key", "Authorization", "Bearer "+key, "Sec-Fetch-Site", "same-origin")
			try(http.StatusSeeOther, "with another audience's key as a cookie", "Cookie", name+"="+key, "Sec-Fetch-Site", "same-origin")
		}
	}
	if acts < 15 {
		t.Errorf("only %d acts were tried", acts)
	}
}

func TestWhatIsNotInTheTableIsNotThere(t *testing.T) {
	t.Parallel()
	h := open(t)
	for request, want := range map[string]string{
		"GET /nowhere":               "404 not_found",
		"GET /callback/":             "404 not_found",
		"POST /callback/wx/more":     "404 not_found",
		"POST /Callback/wx":          "404 not_found",
		"DELETE /api/v1/orders":      "405 method_not_allowed",
		"PUT /callback/wx":           "405 method_not_allowed",
		"HEAD /callback/wx":          "405",
		"POST /healthz":              "405 method_not_allowed",
		"GET /api/v1/orders/":        "404 not_found",
		"GET /api/v1/admin/nothing?": "404 not_found",
	} {
		method, path, _ := strings.Cut(request, " ")
		if got := h.Call(t, method, path, "").Problem(); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
}

// What only the console's own script reads is closed to pages of other sites.
func TestEveryFragmentIsClosedToOtherSites(t *testing.T) {
	t.Parallel()
	h := open(t)
	cookie := h.SignIn(t, access.Lead)
	fragments := 0
	for _, r := range h.Routes() {
		if r.Method != http.MethodGet || !strings.Contains(r.Path, "/_") {
			continue
		}
		fragments++
		path := regexp.MustCompile(`:[a-z_]+`).ReplaceAllString(r.Path, "1")
		for _, site := range []string{"cross-site", "same-site", "elsewhere"} {
			got := h.Call(t, r.Method, path, "", "Cookie", cookie, "Sec-Fetch-Site", site)
			if got.Status != http.StatusForbidden {
				t.Errorf("%s from %s: %d %s", path, site, got.Status, got.Body)
			}
		}
		if r.Path == "/_/live" { // it does not end
			continue
		}
		for _, header := range [][]string{nil, {"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none"}} {
			if got := h.Call(t, r.Method, path, "", append([]string{"Cookie", cookie}, header...)...); got.Status == http.StatusForbidden {
				t.Errorf("%s with %q is refused", path, header)
			}
		}
	}
	if fragments < 15 {
		t.Errorf("only %d fragments were tried", fragments)
	}
}
