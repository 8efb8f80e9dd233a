package wording_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"backstop/internal/base/text"
)

// folders are where texts are declared.
var folders = func() []string {
	views, _ := filepath.Glob("../*")
	return append(views, "../../internal/base/text", "../../internal/approval")
}()

// filesOf are the files of all folders that match the pattern, without tests.
func filesOf(t *testing.T, pattern string) (all []string) {
	t.Helper()
	for _, folder := range folders {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return slices.DeleteFunc(all, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
}

// catalog reads the texts as they are declared, by folder and name.
func catalog(t *testing.T) map[string]text.Text {
	t.Helper()
	all := map[string]text.Text{}
	for _, name := range filesOf(t, "*.go") {
		readTexts(t, name, all)
	}
	if len(all) < 600 {
		t.Fatalf("only %d texts were read", len(all))
	}
	return all
}

// readTexts adds the texts of one file: those with a name, and those that stand where
// they are used, by their line.
func readTexts(t *testing.T, name string, all map[string]text.Text) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[*ast.CompositeLit]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			if len(n.Values) == 1 {
				if lit, ok := n.Values[0].(*ast.CompositeLit); ok {
					names[lit] = n.Names[0].Name
				}
			}
		case *ast.CompositeLit:
			if both, ok := textOf(n); ok {
				key := names[n]
				if key == "" {
					key = files.Position(n.Pos()).String()
				}
				all[filepath.Dir(name)+" "+key] = both
			}
		}
		return true
	})
}

// textOf is the text that a literal is; false where it is none.
func textOf(lit *ast.CompositeLit) (both text.Text, ok bool) {
	if len(lit.Elts) != 2 {
		return both, false
	}
	values := map[string]string{}
	for _, e := range lit.Elts {
		pair, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return both, false
		}
		key, isName := pair.Key.(*ast.Ident)
		value, isText := pair.Value.(*ast.BasicLit)
		if !isName || !isText {
			return both, false
		}
		values[key.Name], _ = strconv.Unquote(value.Value)
	}
	both.ZH, ok = values["ZH"]
	both.EN = values["EN"]
	return both, ok
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
	t.Parallel()
	for key, w := range catalog(t) {
		if w.ZH == "" || w.EN == "" {
			t.Errorf("%s is empty in one language", key)
		}
		if hasHan(w.EN) && key != "../ui tOtherTongue" {
			t.Errorf("%s is Chinese in English: %q", key, w.EN)
		}
		if a, b := placeholders(w.ZH), placeholders(w.EN); !slices.Equal(a, b) {
			t.Errorf("%s has the placeholders %v and %v", key, a, b)
		}
	}
}

// declared are the lines that declare a text in both languages.
var declared = regexp.MustCompile(`(?m)^\t\w+ +(= text\.Text|= Text)\{ZH.*$`)

func TestNoWordIsUnused(t *testing.T) {
	t.Parallel()
	used := map[string]string{} // by folder
	files := append(filesOf(t, "*.go"), filesOf(t, "*.templ")...)
	menus, err := filepath.Glob("../../web/*/routes.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(files, menus...) {
		if strings.HasSuffix(name, "_templ.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		used[filepath.Dir(name)] += declared.ReplaceAllString(string(source), "")
	}
	for key := range catalog(t) {
		folder, name, _ := strings.Cut(key, " ")
		if strings.Contains(name, ":") { // stands where it is used
			continue
		}
		there := used[folder]
		if folder == "../../internal/base/text" {
			name, there = "text."+name, strings.Join(slices.Collect(maps.Values(used)), "\n")
		}
		if !regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).MatchString(there) {
			t.Errorf("%s is used by nothing", key)
		}
	}
}

// Texts are declared in both languages: what is written into a page has one only.
func TestPagesHoldNoTextOfOneLanguage(t *testing.T) {
	t.Parallel()
	files := filesOf(t, "*.templ")
	if len(files) < 20 {
		t.Fatalf("%d pages", len(files))
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if hasHan(declared.ReplaceAllString(string(text), "")) {
			t.Errorf("%s contains Chinese", name)
		}
		for _, forbidden := range []string{"style=", "<style", "onclick", "hx-on", "templ.Raw", "@templ.JSON"} {
			if strings.Contains(string(text), forbidden) {
				t.Errorf("%s contains %q", name, forbidden)
			}
		}
	}
}

// Every icon that a page names is in the sprite: one that is not is drawn as
// nothing.
func TestEveryIconIsInTheSprite(t *testing.T) {
	t.Parallel()
	sprite, err := os.ReadFile("../../static/icons.svg")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?:Icon: |(?:Icon|Empty|Submit)\(p, )"([a-z0-9-]+)"`)
	seen := 0
	for _, name := range append(filesOf(t, "*.templ"), filesOf(t, "*.go")...) {
		text, _ := os.ReadFile(name)
		for _, m := range named.FindAllSubmatch(text, -1) {
			seen++
			if !strings.Contains(string(sprite), `id="`+string(m[1])+`"`) {
				t.Errorf("%s names the icon %s, which is not in the sprite", name, m[1])
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d icons seen", seen)
	}
}
