package access

import "testing"

func TestATokenWithoutAScopeHasNone(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"", Monitor, Control} {
		if (&Token{}).Has(scope) {
			t.Errorf("a token without a scope has %q", scope)
		}
	}
	if (&Token{Scope: Monitor}).Has("") {
		t.Error("a token has the scope without a name")
	}
}
