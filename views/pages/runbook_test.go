package pages

import (
	"slices"
	"strings"
	"testing"

	"backstop/docs"
	"backstop/internal/alert"
)

// Links to chapters, from incidents and within the manual, lead somewhere.
func TestEveryChapterOfTheRunbookExists(t *testing.T) {
	t.Parallel()
	var ids []string
	words := 0
	for _, b := range runbook {
		if b.id != "" {
			ids = append(ids, b.id)
		}
		words += len(strings.Fields(b.code))
		for _, line := range append(append([][]span{b.spans}, b.items...), slices.Concat(b.rows...)...) {
			for _, s := range line {
				words += len(strings.Fields(s.text))
			}
		}
	}
	if all := len(strings.Fields(docs.Operations)); words < all*9/10 {
		t.Errorf("the page has %d of %d words", words, all)
	}
	for _, rule := range alert.Names {
		if chapter := adviceFor(rule).chapter; !slices.Contains(ids, chapter) {
			t.Errorf("%s: there is no chapter %q", rule, chapter)
		}
	}
	for _, b := range runbook {
		for _, s := range slices.Concat(append(append([][]span{b.spans}, b.items...), slices.Concat(b.rows...)...)...) {
			if s.kind == "a" && !slices.Contains(ids, strings.TrimPrefix(s.href, "#")) {
				t.Errorf("%q links to %s, which is no chapter", s.text, s.href)
			}
		}
	}
}

func TestMarkdownIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	got := parseMarkdown(
		"# Title\n\n## One `two`\n\ntext **bold** [here](#one-two) [away](https://x.test) `<b>`\n\n- a\n  b\n- c\n\n| h | i |\n|---|---|\n| 1 | a \\| b |\n\n```sh\nx | y\n```\n")
	if len(got) != 5 || got[0].id != "one-two" || got[1].kind != "p" || len(got[2].items) != 2 || len(got[3].rows) != 2 ||
		got[4].code != "x | y" {
		t.Fatalf("%+v", got)
	}
	var kinds []string
	for _, s := range got[1].spans {
		kinds = append(kinds, s.kind+":"+s.text+s.href)
	}
	if want := []string{":text ", "b:bold", ": ", "a:here#one-two", ": ", ":away", ": ", "code:<b>", ":"}; !slices.Equal(kinds, want) {
		t.Errorf("%q", kinds)
	}
	if cell := got[3].rows[1][1]; cell[0].text != "a | b" {
		t.Errorf("%+v", cell)
	}
}
