package operators

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"backstop/views/ui"
	"backstop/views/wording"
)

// Whatever the program keeps in the audit has words on the page, and its filter
// knows the kind of thing.
func TestEveryActHasWords(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	note := func(t *testing.T, e ast.Expr, known func(string) bool) {
		lit, ok := e.(*ast.BasicLit)
		if !ok {
			return // made of parts, or a name: its own tests look at it
		}
		text, _ := strconv.Unquote(lit.Value)
		if seen[text] = true; !known(text) {
			t.Errorf("the audit has no words for %q", text)
		}
	}
	hasAct := func(action string) bool { _, ok := wording.Acts[action]; return ok }
	hasObject := func(object string) bool { return ui.ObjectText(object).EN != object }
	for _, root := range []string{"../../web", "../../internal"} {
		err := filepath.WalkDir(root, func(name string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CompositeLit:
					if s, ok := n.Type.(*ast.SelectorExpr); !ok || s.Sel.Name != "Act" {
						return true
					}
					for _, e := range n.Elts {
						kv := e.(*ast.KeyValueExpr)
						switch kv.Key.(*ast.Ident).Name {
						case "Action":
							note(t, kv.Value, hasAct)
						case "Object":
							note(t, kv.Value, hasObject)
						}
					}
				case *ast.CallExpr: // of the commands for operators and tokens
					if s, ok := n.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "keep" && strings.Contains(name, "access") {
						note(t, n.Args[2], hasAct)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{
		"settings.apply", "file", "token.revoke", "operator.add", "secrets.reseal", "orders.import",
		"session.start",
	} {
		if !seen[want] {
			t.Errorf("%q was not found: the walk misses the program", want)
		}
	}
}
