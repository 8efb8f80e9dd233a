package pages

import (
	"encoding/json"
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

	"backstop/internal/compensation"
	"backstop/views/ui"
)

func inChinese() *ui.Page { return &ui.Page{Language: "zh"} }

func TestSentencesOfRowsAreReadInChinese(t *testing.T) {
	p := inChinese()
	for text, want := range map[string]string{
		"127.0.0.1; any address is allowed":                             "127.0.0.1；允许任何地址",
		"3826 is paying, version 2":                                     "3826 状态为“支付中”，版本 2",
		"closed: the money came late":                                   "“已关闭”：付款来迟了",
		"the buyer disputes the payment: fraudulent, lost":              "买家对这笔付款提出争议：fraudulent，lost",
		`"payout.failed" is not among the words that the adapter knows`: `"payout.failed" 不在适配器已知的类型中`,
		"208.77, not 417.52 CNY":                                        "208.77，应为 417.52 CNY",
		"the JSON has a string of the wrong type at \"a.b\"":            "JSON 中 \"a.b\" 处的 string 类型不对",
		"the JSON has a NUL at \"a\"":                                   "JSON 在 \"a\" 处有 NUL",
		`amount of X: amount is not a plain decimal number: "1e2"`:      `X 的金额 不是普通的十进制数："1e2"`,
		"something that a newer program says":                           "something that a newer program says",
		"":                                                              "",
		"; any address is allowed":                                      "; any address is allowed",
	} {
		if got := readStored(p, text); got != want {
			t.Errorf("%q is read as %q, want %q", text, got, want)
		}
	}
	if got := readStored(&ui.Page{Language: "en"}, "closed: the money came late"); got != "closed: the money came late" {
		t.Errorf("in English %q", got)
	}
}

// sources are the files whose sentences rows keep.
func sources(t *testing.T) []string {
	t.Helper()
	all := []string{"../../internal/callback/receiver.go", "../../internal/payment/decide.go", "../../internal/base/money/money.go"}
	for _, pattern := range []string{"strict*.go", "clientaddr.go", "*/adapter.go", "*/notification.go", "*/event.go", "*/dispute.go", "*/message.go", "*/signature.go"} {
		found, err := filepath.Glob("../../internal/supplier/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return slices.DeleteFunc(all, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
}

var (
	verb = regexp.MustCompile(`%[-+.0-9]*[a-zA-Z]`)
	// Of what is read at a start, and what only leads to another error.
	elsewhere = regexp.MustCompile(`^config |%w`)
)

// TestEverySentenceHasItsChinese reads the sources: a check that is added without
// its Chinese fails here.
func TestEverySentenceHasItsChinese(t *testing.T) {
	p, seen := inChinese(), 0
	for _, name := range sources(t) {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			said, at := "", 0
			if len(call.Args) == 0 {
				return true
			}
			switch f := call.Fun.(type) {
			case *ast.SelectorExpr:
				said = f.Sel.Name
			case *ast.Ident:
				said = f.Name
			}
			switch strings.ToLower(said) {
			case "pass", "fail":
				if step := literal(call.Args[0]); step != "" && stepNames[step].ZH == "" {
					t.Errorf("%s: the check %q has no Chinese name", name, step)
				}
				if at = 1; len(call.Args) < 2 { // the reader's own errors
					return true
				}
			case "refusesignature", "refusemalformed", "new", "errorf":
			default:
				return true
			}
			form := literal(call.Args[at])
			words := strings.Trim(verb.ReplaceAllString(form, ""), " :()")
			if words == "" || elsewhere.MatchString(form) || (said == "Errorf" || said == "New") && !strings.Contains(name, "/supplier/") {
				return true
			}
			seen++
			text := verb.ReplaceAllString(form, "0")
			if !hasHan(readStored(p, text)) {
				t.Errorf("%s: %q has no Chinese", name, form)
			}
			return true
		})
	}
	if seen < 60 {
		t.Errorf("only %d sentences were seen", seen)
	}
}

func literal(e ast.Expr) string {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		text, _ := strconv.Unquote(lit.Value)
		return text
	}
	return ""
}

func TestNoSentenceIsOutOfDate(t *testing.T) {
	var all strings.Builder
	for _, name := range sources(t) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for i, w := range sentences {
		if a, b := placeholders(w.ZH), placeholders(w.EN); !slices.Equal(a, b) {
			t.Errorf("%q has the placeholders %v and %v", w.EN, a, b)
		}
		for part := range strings.SplitSeq(w.EN, "%s") {
			for said := range strings.SplitSeq(part, ": ") {
				if !strings.Contains(all.String(), said) {
					t.Errorf("nothing says %q of %q any more", said, w.EN)
				}
			}
		}
		for _, before := range sentences[:i] {
			if _, hidden := fillings(before.EN, strings.ReplaceAll(w.EN, "%s", "0")); hidden {
				t.Errorf("%q is never reached behind %q", w.EN, before.EN)
			}
		}
	}
}

func TestFactsOfAnExceptionAreForPeople(t *testing.T) {
	x := compensation.Item{Kind: compensation.AmountMismatch, Currency: "CNY", Detail: json.RawMessage(`{"difference":-5784,"got":5786,"want":11570,"supplier":"ali","trade_no":"","later":true}`)}
	if got, want := detailLine(inChinese(), x), "应为：¥115.70 CNY · 收到：¥57.86 CNY · 差额：−¥57.84 CNY · 供应商：ali · later：true"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	x.Detail = json.RawMessage(`{"status":"closed","close_reason":"timeout","last_class":"timeout","reason":"sign is missing","attempts":12}`)
	if got, want := detailLine(inChinese(), x), "原因：缺少 sign · 状态：已关闭 · 关闭原因：超时 · 尝试次数：12 · 最后结果：超时无应答"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	x = compensation.Item{Kind: compensation.DisputeOpened, Detail: json.RawMessage(`{"reason":"product_not_received","status":"needs_response","due_by":"2026-03-08T23:59:59Z","dispute_no":"du_1","type":"charge.dispute.created","supplier":"st","trade_no":"pi_1"}`)}
	for language, want := range map[string]string{
		"zh": "原因：未收到商品 · 状态：待举证 · 举证截止：2026-03-08 23:59:59.000 UTC · 争议编号：du_1 · 事件：charge.dispute.created · 供应商：st · 流水号：pi_1",
		"en": "Reason: product not received · Status: needs response · Evidence due by: 2026-03-08 23:59:59.000 UTC · Dispute number: du_1 · Event: charge.dispute.created · Supplier: st · Trade number: pi_1",
	} {
		if got := detailLine(&ui.Page{Language: language, Zone: time.UTC}, x); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	x.Detail = json.RawMessage(`{"reason":"a_new_word","status":"won","due_by":"soon"}`)
	if got, want := detailLine(inChinese(), x), "原因：a_new_word · 状态：胜诉 · 举证截止：soon"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	x.Detail = json.RawMessage(`"odd"`)
	if got := detailLine(inChinese(), x); got != `"odd"` {
		t.Errorf("%q", got)
	}
}

// What a detail says of money is money, with its dot where the currency has it.
func TestTheDetailOfAMismatchIsMoney(t *testing.T) {
	for currency, want := range map[string]string{"CNY": "Wanted: ¥86.41 CNY · Got: ¥43.21 CNY · Difference: −¥43.20 CNY", "JPY": "Wanted: ¥8,641 JPY · Got: ¥4,321 JPY · Difference: −¥4,320 JPY"} {
		x := compensation.Item{Currency: currency, Detail: []byte(`{"got":4321,"want":8641,"difference":-4320}`)}
		if got := detailLine(&ui.Page{Language: "en"}, x); got != want {
			t.Errorf("%s: %q, want %q", currency, got, want)
		}
	}
}
