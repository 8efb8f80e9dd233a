package overview

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"backstop/internal/alert"
)

// Links to chapters, from incidents and within the manual, lead somewhere.
func TestEveryChapterOfTheRunbookExists(t *testing.T) {
	t.Parallel()
	for language, document := range runbooks {
		runbook := string(document)
		for _, rule := range alert.Names {
			if chapter := adviceFor(rule).chapter; !strings.Contains(runbook, ` id="`+chapter+`"`) {
				t.Errorf("%s, %s: there is no chapter %q", language, rule, chapter)
			}
		}
		links := regexp.MustCompile(`<a href="([^"]*)"`).FindAllStringSubmatch(runbook, -1)
		if len(links) == 0 {
			t.Errorf("%s: no links", language)
		}
		for _, link := range links {
			if id, own := strings.CutPrefix(link[1], "#"); !own || !strings.Contains(runbook, ` id="`+id+`"`) {
				t.Errorf("%s: a link leads to %s, which is no chapter", language, link[1])
			}
		}
	}
}

// Each rule of Prometheus links to a chapter.
func TestTheRulesOfPrometheusLinkToTheRunbook(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile("../../deploy/prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Split(string(rules), "- alert: ")[1:]
	for _, rule := range all {
		name, _, _ := strings.Cut(rule, "\n")
		link := regexp.MustCompile(`runbook_url: "\{\{ \$externalLabels\.backstop \}\}/runbook#([a-z-]+)"`).FindStringSubmatch(rule)
		if link == nil || !strings.Contains(string(runbooks["en"]), ` id="`+link[1]+`"`) || !strings.Contains(string(runbooks["zh"]), ` id="`+link[1]+`"`) {
			t.Errorf("%s: %q leads nowhere", name, link)
		}
	}
	if len(all) < 15 {
		t.Errorf("only %d rules", len(all))
	}
}

// Both languages have the same chapters, and in each the same paragraphs, points, rows and examples.
func TestTheRunbookIsWholeInBothLanguages(t *testing.T) {
	t.Parallel()
	parts := regexp.MustCompile(`<(?:h[2-6] id="[^"]*"|p|li|tr|pre)[ >]`)
	en, zh := parts.FindAllString(string(runbooks["en"]), -1), parts.FindAllString(string(runbooks["zh"]), -1)
	chapter := ""
	for i := range min(len(en), len(zh)) {
		if en[i] != zh[i] {
			t.Fatalf("part %d behind %s is %s in English and %s in Chinese", i, chapter, en[i], zh[i])
		}
		if strings.Contains(en[i], "id=") {
			chapter = en[i]
		}
	}
	if len(en) != len(zh) || len(en) < 300 {
		t.Errorf("%d parts in English, %d in Chinese", len(en), len(zh))
	}
}
