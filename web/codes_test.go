package web_test

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
	"testing"
)

var codeRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (\\d{3}) \\|")

// codesOf are the codes of the errors in a folder: field Code of an Error, and the tables of errors.go.
func codesOf(t *testing.T, dir string, into map[string]string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	note := func(e ast.Expr, at token.Pos, set *token.FileSet) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			code, _ := strconv.Unquote(lit.Value)
			into[code] = set.Position(at).String()
			return
		}
		if of, ok := e.(*ast.Ident); ok {
			t.Errorf("%s: the code of an error is in %s: write it out, so that it can be found", set.Position(at), of.Name)
		}
	}
	for _, path := range files {
		if ok, _ := filepath.Match("*_test.go", filepath.Base(path)); ok {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if of, ok := n.Type.(*ast.SelectorExpr); ok && of.Sel.Name != "Error" {
					return true // of another package, and has another kind of code
				}
				for _, e := range n.Elts {
					if field, ok := e.(*ast.KeyValueExpr); ok {
						if key, ok := field.Key.(*ast.Ident); ok && key.Name == "Code" {
							note(field.Value, field.Pos(), set)
						}
					}
				}
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if (name.Name == "domainErrors" || name.Name == "statusCodes") && i < len(n.Values) {
						codesIn(n.Values[i].(*ast.CompositeLit), func(e ast.Expr) { note(e, e.Pos(), set) })
					}
				}
			}
			return true
		})
	}
}

// codesIn finds the codes of a table: the values of a map, or the third of each row.
func codesIn(table *ast.CompositeLit, note func(ast.Expr)) {
	for _, e := range table.Elts {
		switch e := e.(type) {
		case *ast.KeyValueExpr:
			note(e.Value)
		case *ast.CompositeLit:
			note(e.Elts[2])
		}
	}
}

// A code that a program may get stands in docs/errors.md, and the page has no other.
func TestEveryCodeOfAnErrorIsDocumented(t *testing.T) {
	t.Parallel()
	used := map[string]string{}
	for _, dir := range []string{".", "api", "console"} {
		codesOf(t, dir, used)
	}
	if len(used) < 60 {
		t.Fatalf("only %d codes were found", len(used))
	}
	page, err := os.ReadFile("../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, row := range codeRow.FindAllStringSubmatch(string(page), -1) {
		if documented[row[1]] {
			t.Errorf("%s is documented twice", row[1])
		}
		documented[row[1]] = true
	}
	for _, code := range slices.Sorted(maps.Keys(used)) {
		if !documented[code] {
			t.Errorf("%s: %s is not in docs/errors.md", used[code], code)
		}
		delete(documented, code)
	}
	for code := range documented {
		t.Errorf("docs/errors.md has %s, which nothing answers", code)
	}
}
