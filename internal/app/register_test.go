package app

import "testing"

// A code used by two packages would get either text.
func TestEveryKindsTextsAreInTheCatalog(t *testing.T) {
	t.Parallel()
	known := texts()
	for _, kind := range Kinds() {
		if _, ok := known[kind.Name+".signature_holds"]; !ok && kind.Name != "sorted-params" {
			t.Errorf("the texts of %s are not known", kind.Name)
		}
	}
	if len(known) < 100 {
		t.Errorf("only %d texts", len(known))
	}
}
