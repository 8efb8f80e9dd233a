package views

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"backstop/internal/breaker"
	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/internal/notify"
	"backstop/internal/order"
)

// catalog reads the words as they are written, by key.
func catalog(t *testing.T) map[string]word {
	t.Helper()
	names, err := filepath.Glob("words*.go")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]word{}
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			readWords(t, name, all)
		}
	}
	if len(all) < 150 {
		t.Fatalf("only %d words were read", len(all))
	}
	return all
}

// readWords adds the words of one file.
func readWords(t *testing.T, name string, all map[string]word) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		lit, ok := spec.Values[0].(*ast.CompositeLit)
		if !ok || len(lit.Elts) != 2 {
			return true
		}
		var texts []string
		for _, e := range lit.Elts {
			text, _ := strconv.Unquote(e.(*ast.BasicLit).Value)
			texts = append(texts, text)
		}
		all[spec.Names[0].Name] = word{texts[0], texts[1]}
		return true
	})
}

func hasHan(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) })
}

var placeholder = regexp.MustCompile(`%(?:\[(\d+)\])?([a-z])`)

// placeholders are a text's arguments by their place: "1s", "2d".
func placeholders(text string) []string {
	var all []string
	next := 1
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		if m[1] != "" {
			next, _ = strconv.Atoi(m[1])
		}
		all = append(all, strconv.Itoa(next)+m[2])
		next++
	}
	slices.Sort(all)
	return all
}

func TestEveryWordIsThereInBothLanguages(t *testing.T) {
	for key, w := range catalog(t) {
		if w.zh == "" || w.en == "" {
			t.Errorf("%s is empty in one language", key)
		}
		if hasHan(w.en) && key != "tOtherTongue" {
			t.Errorf("%s is Chinese in English: %q", key, w.en)
		}
		if a, b := placeholders(w.zh), placeholders(w.en); !slices.Equal(a, b) {
			t.Errorf("%s has the placeholders %v and %v", key, a, b)
		}
	}
}

func TestNoWordIsUnused(t *testing.T) {
	var all strings.Builder
	files, _ := filepath.Glob("*")
	for _, name := range files {
		if strings.HasPrefix(name, "words") || strings.HasSuffix(name, "_templ.go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for key := range catalog(t) {
		if !regexp.MustCompile(`\b` + key + `\b`).MatchString(all.String()) {
			t.Errorf("%s is used by nothing", key)
		}
	}
}

// Texts stand in the catalog: what is written into a page has one language only.
func TestPagesHoldNoTextOfOneLanguage(t *testing.T) {
	files, err := filepath.Glob("*.templ")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d pages, %v", len(files), err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if hasHan(string(text)) {
			t.Errorf("%s holds Chinese", name)
		}
		for _, forbidden := range []string{"style=", "<style", "onclick", "hx-on", "templ.Raw", "@templ.JSON"} {
			if strings.Contains(string(text), forbidden) {
				t.Errorf("%s holds %q", name, forbidden)
			}
		}
	}
}

func TestEveryStateHasAWordAndAnIcon(t *testing.T) {
	sprite, err := os.ReadFile("../static/icons.svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range order.Statuses {
		if _, ok := orderStates[string(s)]; !ok {
			t.Errorf("an order that is %s looks like nothing", s)
		}
	}
	for _, kind := range []string{
		compensation.UnknownOrder, compensation.AmountMismatch, compensation.CurrencyMismatch, compensation.AccountMismatch, compensation.LatePayment,
		compensation.DuplicatePayment, compensation.UnknownRefund, compensation.DecryptFailed, compensation.Malformed, compensation.NotifyExhausted, compensation.StuckPaying, compensation.SubscriptionExhausted,
	} {
		if _, ok := exceptionKinds[kind]; !ok {
			t.Errorf("an exception %s has no word", kind)
		}
	}
	for _, s := range deliveryStatuses {
		if _, ok := deliveryStates[s]; !ok {
			t.Errorf("a delivery that is %s looks like nothing", s)
		}
	}
	for _, states := range []map[string]state{orderStates, toldStates, deliveryStates, exceptionStates, outcomes} {
		for code, s := range states {
			if !strings.Contains(string(sprite), `id="`+s.icon+`"`) {
				t.Errorf("%s has the icon %q, which is not in the sprite", code, s.icon)
			}
			if !slices.Contains([]string{"ok", "warn", "bad", "comp", "info", "idle"}, s.kind) || s.word == (word{}) {
				t.Errorf("%s looks like %+v", code, s)
			}
		}
	}
}

// Every icon that a page names is in the sprite: one that is not is drawn as
// nothing.
func TestEveryIconIsInTheSprite(t *testing.T) {
	sprite, err := os.ReadFile("../static/icons.svg")
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob("*.templ")
	seen := 0
	for _, name := range files {
		text, _ := os.ReadFile(name)
		for _, m := range regexp.MustCompile(`@(?:icon|empty)\(p, "([a-z0-9-]+)"`).FindAllSubmatch(text, -1) {
			seen++
			if !strings.Contains(string(sprite), `id="`+string(m[1])+`"`) {
				t.Errorf("%s names the icon %s, which is not in the sprite", name, m[1])
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d icons seen", seen)
	}
}

// Every rule by which an order may stand has a sentence with a mood and an icon.
func TestEveryRuleHasASentence(t *testing.T) {
	p := &Page{Language: "en", Zone: time.UTC, Now: time.UnixMicro(0)}
	for _, rule := range console.Rules {
		s := StoryData{Story: &console.Story{Order: &order.Order{}, Why: console.Why{
			Rule: rule, Exception: &compensation.Item{}, Delivery: &notify.Delivery{}, Breaker: &breaker.Row{},
		}}}
		what, then := whyTexts(p, s)
		if m := moods[rule]; what == "" || then == "" || m.kind == "" || m.icon == "" {
			t.Errorf("%s looks like %+v and says %q, %q", rule, m, what, then)
		}
		if done := p.T(tWhyDone); what == done && rule != console.WhyDone {
			t.Errorf("%s has no sentence of its own", rule)
		}
	}
}
