package cli

import (
	"strings"
	"testing"
)

func TestAnOperatorIsLinkedToTheProvider(t *testing.T) {
	install(t)
	for _, name := range []string{"li", "glass"} {
		if code, _, stderr := backstop(t.Context(), "operator", "add", name, "--role", "viewer"); code != exitDone {
			t.Fatal(stderr)
		}
	}
	link := func(name, want string) {
		t.Helper()
		if code, _, stderr := backstop(t.Context(), "operator", "link", name, "s-1"); code == exitDone != (want == "") || !strings.Contains(stderr, want) {
			t.Errorf("link %s: exit %d, %q; want %q", name, code, stderr, want)
		}
	}
	link("li", "set BACKSTOP_OIDC_ISSUER")
	t.Setenv("BACKSTOP_OIDC_ISSUER", "https://id.example.com")
	t.Setenv("BACKSTOP_OIDC_CLIENT_ID", "backstop")
	t.Setenv("BACKSTOP_OIDC_ROLES", "a=viewer")
	t.Setenv("BACKSTOP_BREAK_GLASS", "glass")
	link("glass", "must keep the password")
	link("nobody", "no such name")
	link("li", "")
	link("li", "is linked already")
	if code, _, stderr := backstop(t.Context(), "operator", "reset-password", "li"); code == exitDone || !strings.Contains(stderr, "are set there") {
		t.Errorf("a password for who signs in at the provider: exit %d, %q", code, stderr)
	}
}
