package webtest

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// GoodPassword is the password of every operator.
const GoodPassword = "correct horse battery"

// fakeMonitor stands in for Asynqmon, with a page like its own.
var fakeMonitor = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/asynqmon/api/queues" {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"queues":[]}`)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w,
		`<html><head><link rel="stylesheet" href="https://fonts.example/css?family=X"/><script>window.A="1"</script></head><body></body></html>`)
})

// Post sends a form as one of our pages does.
func (h *Site) Post(t *testing.T, cookie, path string, fields ...string) Answer {
	t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		if i == 0 || fields[i] != fields[i-2] {
			form.Del(fields[i])
		}
		form.Add(fields[i], fields[i+1]) // several in a row are checkboxes
	}
	return h.Call(t, http.MethodPost, path, form.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site",
		"same-origin", "Cookie", cookie)
}

// SignIn adds an operator with this role and returns the session cookie.
func (h *Site) SignIn(t *testing.T, role string) string {
	t.Helper()
	name := "the." + strings.ReplaceAll(role, ",", ".")
	if _, err := h.Operators.Add(t.Context(), name, role, GoodPassword); err != nil {
		t.Fatal(err)
	}
	got := h.Post(t, "", "/login", "name", name, "password", GoodPassword)
	if got.Status != http.StatusSeeOther || strings.HasPrefix(got.Header.Get("Location"), "/me") {
		t.Fatalf("login as %s: %d to %q", role, got.Status, got.Header.Get("Location"))
	}
	return CookieOf(got)
}

// CookieOf returns the cookie set by a response, as a browser sends it.
func CookieOf(a Answer) string {
	cookie, _, _ := strings.Cut(a.Header.Get("Set-Cookie"), ";")
	return cookie
}

// Page gets a page as a signed-in browser does.
func (h *Site) Page(t *testing.T, cookie, path string) Answer {
	t.Helper()
	return h.Call(t, http.MethodGet, path, "", "Cookie", cookie)
}

// BearerOf returns a session's token without the cookie around it.
func BearerOf(cookie string) string {
	_, token, _ := strings.Cut(cookie, "=")
	return token
}
