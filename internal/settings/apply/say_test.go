package apply

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// Every problem that the checks write as a text of its own is said in Chinese too.
func TestProblemsAreSaidInBothLanguages(t *testing.T) {
	t.Parallel()
	own, _ := filepath.Glob("*.go")
	files, _ := filepath.Glob("../*.go")
	seen := 0
	for _, name := range append(files, own...) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "wrong" {
				return true
			}
			at := 0
			if strings.HasPrefix(name, "..") {
				at = 1 // after the field
			}
			literal, ok := call.Args[at].(*ast.BasicLit)
			if !ok {
				return true
			}
			text, _ := strconv.Unquote(literal.Value)
			if strings.Trim(text, "%vsq") == "" || text == "use %s" { // a text from elsewhere
				return true
			}
			seen++
			sample := regexp.MustCompile(`%[sdqv]`).ReplaceAllString(text, "7")
			if both := Say(sample); !strings.ContainsFunc(both.ZH, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
				t.Errorf("%s: %q is in English alone", name, text)
			}
			return true
		})
	}
	if seen < 40 {
		t.Errorf("only %d problems were seen", seen)
	}
	for problem, want := range map[string]string{
		`"sign" is among paid_values too`:                 `"sign" 也在 paid_values 中`,
		"the key has 512 bits; 1024 to 8192 are accepted": "密钥有 512 位；可用的是 1024 到 8192 位",
		"is missing":                    "必填",
		"use a duration from 1s to 10s": "请填 1s 到 10s 的时长",
		"use a percentage from 0% to 99.9999%, such as 0.6%":     "请填 0% 到 99.9999% 的百分比，例如 0.6%",
		"this is the API key of merchant m1: each needs its own": "这是商户 m1 的 API key：每个商户须各用各的",
		`"x" is not known; use status or text`:                   `没有 "x"；可用的是 status or text`,
		"character 3 of 9 is a blank: copy the value alone":      "第 3 个字符（共 9 个）是空白、换行或不可见字符（a blank）：只复制值本身",
		"at most 10 addresses are allowed":                       "最多 10 项",
		"the webhook channel says something that is not ours":    "the webhook channel says something that is not ours",
	} {
		if got := Say(problem).ZH; got != want {
			t.Errorf("%q: %q, want %q", problem, got, want)
		}
	}
}

// Every problem that a kind of supplier writes about its config is said in Chinese too.
func TestProblemsOfSuppliersAreSaidInBothLanguages(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, name := range []string{
		"keys.go", "strict.go", "wechatpay/config.go", "alipay/adapter.go", "stripe/adapter.go", "sortedparams/config.go", "sortedparams/callconfig.go",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../../supplier", name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			var about ast.Expr
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Problem" {
					about = n.Value
				}
			case *ast.CallExpr:
				switch called := n.Fun.(type) {
				case *ast.Ident:
					if called.Name == "wrong" {
						about = n.Args[1]
					}
				case *ast.SelectorExpr:
					if name == "keys.go" && (called.Sel.Name == "New" || called.Sel.Name == "Errorf") {
						about = n.Args[0]
					}
				}
			}
			literal, ok := about.(*ast.BasicLit)
			if !ok {
				return true
			}
			problem, _ := strconv.Unquote(literal.Value)
			if strings.Trim(problem, "%v") == "" { // a text from elsewhere
				return true
			}
			seen++
			sample := regexp.MustCompile(`%[sdqvT]`).ReplaceAllString(problem, "7")
			if both := Say(sample); both.ZH == both.EN {
				t.Errorf("%s: %q is in English alone", name, problem)
			}
			return true
		})
	}
	if seen < 40 {
		t.Errorf("only %d problems were seen", seen)
	}
}
