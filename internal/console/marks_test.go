package console

import (
	"fmt"
	"testing"
)

func TestNoTwoSuppliersHaveTheSameMark(t *testing.T) {
	t.Parallel()
	taken := map[Mark]bool{}
	for i := range MarkColours * len(otherLetters) {
		code := fmt.Sprintf("demo-%d", i)
		m := freeMark(code, taken)
		if taken[m] || m.Colour < 1 || m.Colour > MarkColours {
			t.Fatalf("%s: %+v", code, m)
		}
		if i < MarkColours && m.Letter != "D" {
			t.Errorf("%s: %+v, though its first letter is free", code, m)
		}
		if taken[m] = true; m != freeMark(code, without(taken, m)) {
			t.Errorf("%s: another mark with the same suppliers before it", code)
		}
	}
	if m := freeMark("demo-last", taken); m.Letter != "D" {
		t.Errorf("beyond all marks: %+v", m)
	}
}

func without(taken map[Mark]bool, m Mark) map[Mark]bool {
	rest := map[Mark]bool{}
	for x := range taken {
		rest[x] = x != m
	}
	return rest
}
