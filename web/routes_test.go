package web

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/stock"
)

func TestEveryRouteStandsInTheTableAndBehindItsDoor(t *testing.T) {
	h := open(t)
	var table, reachable []string
	for _, r := range h.routes() {
		table = append(table, r.method+" "+r.path)
		path := strings.NewReplacer(":supplier", "wx", ":order_no", "1", ":merchant", "m1").Replace(r.path)
		got := h.call(t, r.method, path, "")
		locked := got.status == http.StatusUnauthorized
		if want := r.door == merchantDoor || r.door == monitorDoor; locked != want {
			t.Errorf("%s %s without a key: %d", r.method, path, got.status)
		}
		if locked && got.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s %s does not say how to come in", r.method, path)
		}
		wrong := map[door]string{merchantDoor: monitorToken, monitorDoor: keyOfGalaxy}[r.door]
		if locked && h.api(t, wrong, r.method, path, "").status != http.StatusUnauthorized {
			t.Errorf("%s %s opens to the key of another door", r.method, path)
		}
		if r.door == consoleDoor && r.method != http.MethodPost && (got.status != http.StatusSeeOther || !strings.HasPrefix(got.header.Get("Location"), "/login")) {
			t.Errorf("%s %s does not lead to the login: %d %s", r.method, path, got.status, got.header.Get("Location"))
		}
		if (r.door == consoleDoor || r.door == monitorDoor) != (r.permission != "") {
			t.Errorf("%s %s has the permission %q", r.method, path, r.permission)
		}
		if (r.door == monitorDoor) != (r.scope != "") {
			t.Errorf("%s %s has the scope %q", r.method, path, r.scope)
		}
		if got.header.Get("X-Content-Type-Options") != "nosniff" || got.header.Get("X-Request-Id") == "" || got.header.Get("Server") != "" {
			t.Errorf("%s %s: headers %v", r.method, path, got.header)
		}
	}
	for _, r := range h.app.GetRoutes(true) {
		reachable = append(reachable, r.Method+" "+r.Path)
	}
	slices.Sort(table)
	slices.Sort(reachable)
	if !slices.Equal(table, reachable) {
		t.Errorf("the table says\n%v\nreachable are\n%v", table, reachable)
	}
}

// Whatever changes something is closed to pages of other sites, which send the
// person's cookie but not our origin, and to the keys of other doors.
func TestEveryActIsClosedToOtherSitesAndOtherKeys(t *testing.T) {
	h := open(t)
	cookie := h.signIn(t, access.Admin)
	name, _, _ := strings.Cut(cookie, "=")
	acts := 0
	for _, r := range h.routes() {
		if isSafe(r.method) || r.method == http.MethodOptions {
			continue
		}
		path := regexp.MustCompile(`:[a-z_]+`).ReplaceAllString(r.path, "1")
		try := func(want int, what string, header ...string) {
			t.Helper()
			got := h.call(t, r.method, path, "reason=because+I+say+so&form_key="+what, append([]string{"Content-Type", "application/x-www-form-urlencoded"}, header...)...)
			if got.status != want || want == http.StatusSeeOther && !strings.HasPrefix(got.header.Get("Location"), "/login") {
				t.Errorf("%s %s %s: %d %s, want %d", r.method, path, what, got.status, got.header.Get("Location"), want)
			}
		}
		switch r.door {
		case consoleDoor, loginDoor:
			acts++
			try(http.StatusForbidden, "from another site", "Cookie", cookie, "Sec-Fetch-Site", "cross-site")
			try(http.StatusForbidden, "from a sister site", "Cookie", cookie, "Sec-Fetch-Site", "same-site", "Origin", "https://sister.example")
			try(http.StatusForbidden, "from another origin", "Cookie", cookie, "Origin", "https://other.example")
			try(http.StatusForbidden, "from a sandbox", "Cookie", cookie, "Origin", "null")
			try(http.StatusForbidden, "from nowhere", "Cookie", cookie)
		case merchantDoor, monitorDoor:
			try(http.StatusUnauthorized, "with a cookie", "Cookie", cookie, "Sec-Fetch-Site", "same-origin")
		}
		if r.door != consoleDoor {
			continue
		}
		for _, key := range []string{monitorToken, keyOfGalaxy} {
			try(http.StatusSeeOther, "with another door's key", "Authorization", "Bearer "+key, "Sec-Fetch-Site", "same-origin")
			try(http.StatusSeeOther, "with another door's key as a cookie", "Cookie", name+"="+key, "Sec-Fetch-Site", "same-origin")
		}
	}
	if acts < 15 {
		t.Errorf("only %d acts were tried", acts)
	}
}

func TestWhatIsNotInTheTableIsNotThere(t *testing.T) {
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
		if got := h.call(t, method, path, "").problem(); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
}

func TestEveryErrorHasOneAnswer(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{order.ErrNotFound, "404 not_found "},
		{payment.ErrConflict, "409 idempotency_conflict "},
		{payment.ErrState, "409 wrong_state "},
		{stock.ErrOutOfStock, "409 out_of_stock "},
		{stock.ErrUnknownSKU, "422 invalid_field items"},
		{&payment.FieldError{Field: "currency", Problem: "unknown"}, "422 invalid_field currency"},
		{db.ErrBusy, "503 busy "},
		{db.ErrStale, "503 busy "},
		{db.ErrCommitUnknown, "503 unknown_outcome "},
		{fmt.Errorf("hunter2: %w", driver.ErrBadConn), "503 unavailable "},
		{errors.New("password is hunter2"), "500 internal "},
	} {
		for _, err := range []error{c.err, fmt.Errorf("doing it: %w", c.err)} {
			e := answerTo(err)
			if got := fmt.Sprintf("%d %s %s", e.status, e.code, e.field); got != c.want {
				t.Errorf("%v: %s, want %s", err, got, c.want)
			}
			if e.message == "" || strings.Contains(e.message, "hunter2") || strings.Contains(e.message, "doing it") {
				t.Errorf("%v is answered with %q", err, e.message)
			}
		}
	}
}
