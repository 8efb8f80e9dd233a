package orders

import (
	"strings"
	"testing"
)

func TestADiffHasExactlyTheLinesThatChanged(t *testing.T) {
	t.Parallel()
	got := changed(diff(strings.Split("a b c d", " "), strings.Split("a x c d e", " ")))
	want := []change{{'-', "b"}, {'+', "x"}, {'+', "e"}}
	if len(got) != len(want) {
		t.Fatalf("%v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%v, want %v", got, want)
		}
	}
	if len(changed(diff([]string{"a", "b"}, []string{"a", "b"}))) != 0 {
		t.Error("two equal texts differ")
	}
}
