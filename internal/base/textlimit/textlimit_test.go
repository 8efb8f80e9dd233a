package textlimit_test

import (
	"testing"

	"backstop/internal/base/textlimit"
)

func TestTextsAreCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s         string
		most      int
		cut, clip string
	}{
		{"", 0, "", ""},
		{"abc", 3, "abc", "abc"},
		{"abcd", 3, "abc", "abc…"},
		{"收据", 6, "收据", "收据"},
		{"收据", 5, "收", "收…"},
		{"收据", 2, "", "…"},
		{"a\xff\xfeb", 3, "a", "a…"}, // Cut leaves out invalid bytes
	} {
		if got := textlimit.Cut(c.s, c.most); got != c.cut {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.s, c.most, got, c.cut)
		}
		if got := textlimit.Clip(c.s, c.most); got != c.clip {
			t.Errorf("Clip(%q, %d) = %q, want %q", c.s, c.most, got, c.clip)
		}
	}
}

func TestStorableTextHoldsNeitherNULNorBrokenCharacters(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{"": "", "收据": "收据", "a\x00b": "a\uFFFDb", "a\xff\xfeb": "a\uFFFDb", "\x00\xff": "\uFFFD\uFFFD"} {
		if got := textlimit.Storable(s); got != want {
			t.Errorf("Storable(%q) = %q, want %q", s, got, want)
		}
	}
}
