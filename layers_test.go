package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// districts are the console's pages. They do not import each other, so that a change of one compiles
// no other again.
var districts = []string{"views/orders", "views/partners", "views/funds", "views/work", "views/overview", "views/figures", "views/operators", "views/reference"}

// layers are the allowed imports: a package imports only packages of lines above its own, or of
// its own line (the compiler refuses circles). "x/*" = the folders below x.
var layers = [][]string{
	{"migrations", "static", "docs", "client", "internal/base/*", "internal/base/db/bulk"},
	{"internal/supplier", "internal/list", "internal/recipient", "internal/simulator", "internal/forecast"},
	{
		"internal/supplier/*", "internal/act", "internal/order", "internal/merchant", "internal/stock", "internal/ledger", "internal/ledger/fact",
		"internal/fund", "internal/fee", "internal/breaker", "internal/alert", "internal/access", "internal/audit", "internal/report",
		"internal/comparison", "internal/evidence", "internal/exception", "internal/inbox", "internal/savedview", "internal/pause", "internal/operator", "internal/signin", "internal/passkey",
	},
	{"internal/alert/*", "internal/approval", "internal/batch", "internal/suppliercall", "internal/settings", "internal/compensation"},
	{"internal/notify"},
	{
		"internal/notify/*", "internal/payment", "internal/sandbox", "internal/settings/apply", "internal/compensation/*", "internal/fund/booking",
		"internal/fund/adjust", "internal/fund/refund", "internal/fund/payout", "internal/fund/dispute",
	},
	{
		"internal/orderquery", "internal/decision", "internal/analytics", "internal/dailyreport", "internal/callback", "internal/console", "internal/sweep",
		"internal/verify", "internal/testmode", "views/ui", "views/chart", "views/link", "views/wording", "views/panel",
	},
	districts,
	{"views/search"},
	{"web", "web/console/live", "jobs"},
	{"web/api", "web/console"},
	{"web/routes"},
	{"internal/command/*"},
	{"internal/app"},
	{"internal/cli"},
	{".", "internal/testrun", "tools/*"},
}

// forTests are packages that only tests may import.
var forTests = []string{
	"internal/base/text/texttest", "internal/base/db/dbtest", "internal/base/moves/movestest",
	"internal/base/seal/sealtest", "internal/base/servertest", "internal/base/waittest", "internal/base/queue/queuetest",
	"internal/supplier/suppliertest", "internal/notify/channeltest",
	"internal/payment/paymenttest", "internal/signin/signintest", "web/webtest", "web/console/live/livetest", "internal/e2e",
}

func TestEveryNameOfTheTableIsAPackage(t *testing.T) {
	for _, name := range slices.Concat(append(layers, forTests)...) {
		if found, err := filepath.Glob(filepath.Join(strings.TrimSuffix(name, "/*"), "*")); err != nil || len(found) == 0 {
			t.Errorf("%s is in the table and nowhere else: %v", name, err)
		}
	}
}

// layer returns the line of a package, or -1.
func layer(pkg string) int {
	for _, pattern := range []string{pkg, path.Dir(pkg) + "/*"} {
		for i, line := range layers {
			for _, p := range line {
				if p == pattern {
					return i
				}
			}
		}
	}
	return -1
}

func isForTests(pkg string) bool {
	for _, p := range forTests {
		if p == pkg {
			return true
		}
	}
	return false
}

// misplaced returns what is wrong with an import, or "".
func misplaced(pkg, imported string) string {
	switch {
	case isForTests(pkg):
		return ""
	case isForTests(imported):
		return fmt.Sprintf("%s imports %s, which is for tests only", pkg, imported)
	case layer(pkg) < 0:
		return fmt.Sprintf("%s is in no line of layers: add it to layers_test.go where it belongs", pkg)
	case slices.Contains(districts, pkg) && slices.Contains(districts, imported):
		return fmt.Sprintf("%s imports %s: what districts share is in views/panel, views/wording, views/link, views/chart or views/ui", pkg, imported)
	case layer(imported) > layer(pkg):
		return fmt.Sprintf("%s (line %d) imports %s (line %d): imports go one way", pkg, layer(pkg), imported, layer(imported))
	}
	return ""
}

// The files are parsed here: a test that runs `go list` would pass from the test cache after a
// change that it should catch.
func TestImportsGoOneWay(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && file != "." || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		files++
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range parsed.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			if imported, ours := strings.CutPrefix(name, "backstop/"); ours {
				if wrong := misplaced(filepath.ToSlash(filepath.Dir(file)), imported); wrong != "" {
					t.Error(wrong)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 50 {
		t.Errorf("only %d files seen: the walk does not see the program", files)
	}
}

// The negative control: the table detects misplaced imports.
func TestMisplacedImportsAreSeen(t *testing.T) {
	for _, c := range [][2]string{
		{"internal/order", "internal/payment"},
		{"internal/base/db", "web"},
		{"web", "internal/app"},
		{"internal/payment", "internal/base/db/dbtest"},
		{"internal/newcomer", "internal/base/db"},
		{"views/orders", "views/funds"},
	} {
		if misplaced(c[0], c[1]) == "" {
			t.Errorf("%s may import %s", c[0], c[1])
		}
	}
	if wrong := misplaced("web", "internal/payment"); wrong != "" {
		t.Error(wrong)
	}
}

// makesEntries lists where a file makes an entry of the ledger by itself, not by the table
// of internal/ledger/fact.
func makesEntries(files *token.FileSet, file *ast.File) (where []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.SelectorExpr:
			if pkg, ok := x.X.(*ast.Ident); ok && pkg.Name == "ledger" && x.Sel.Name == "Entry" {
				where = append(where, files.Position(x.Pos()).String())
			}
		case *ast.CompositeLit:
			if t, ok := x.Type.(*ast.SelectorExpr); !ok || t.Sel.Name != "Entries" {
				return true
			}
			for _, e := range x.Elts {
				if _, ok := e.(*ast.CompositeLit); ok {
					where = append(where, files.Position(e.Pos()).String())
				}
			}
		}
		return true
	})
	return where
}

func TestOnlyTheTableOfFactsMakesEntries(t *testing.T) {
	files := token.NewFileSet()
	seen := 0
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		switch pkg := filepath.ToSlash(filepath.Dir(file)); {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && file != "." || entry.Name() == "testdata"):
			return fs.SkipDir
		case !strings.HasSuffix(file, ".go"), strings.HasSuffix(file, "_test.go"), isForTests(pkg), pkg == "internal/ledger",
			pkg == "internal/ledger/fact":
			return nil
		}
		seen++
		parsed, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, at := range makesEntries(files, parsed) {
			t.Errorf("%s makes an entry of its own: add the fact to the table of internal/ledger/fact, and use fact.Entry", at)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 50 {
		t.Errorf("only %d files seen: the walk does not see the program", seen)
	}
}

// The negative control.
func TestEntriesMadeElsewhereAreSeen(t *testing.T) {
	for source, want := range map[string]int{
		`var e = ledger.Entry{Ref: "a"}`:                      1,
		`var e = []ledger.Entry{{Ref: "a"}}`:                  1,
		`func f(e *ledger.Entry) { e.Amount = 1 }`:            1,
		`var e = fact.Entries{{Ref: "a"}, {Ref: "b"}}`:        2,
		`var e = fact.Entries{fact.Entry(fact.Paid, v)}`:      0,
		`var e = fact.Entry(fact.Paid, fact.Values{})`:        0,
		`func f() { var e fact.Entries; e.Add(fact.Fee, v) }`: 0,
	} {
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, "x.go", "package x\n"+source, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := makesEntries(files, parsed); len(got) != want {
			t.Errorf("%s: seen at %q, want %d places", source, got, want)
		}
	}
}
