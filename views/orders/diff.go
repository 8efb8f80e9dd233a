package orders

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// Diff compares two callbacks of an order on a page of its own.
func Diff(p *ui.Page, no string, a, b *console.Callback) templ.Component {
	return orderPart(p, no, p.T(tDiffPage), p.T(tDiffPage), DiffPanel(p, no, a, b))
}

// Raw is one callback of an order on a page of its own.
func Raw(p *ui.Page, no string, c *console.Callback) templ.Component {
	title := p.T(text.CallbackFrom)
	return orderPart(p, no, title, title+" "+strconv.FormatInt(c.ID, 36), RawPanel(p, no, c))
}

// change is one line of a comparison.
type change struct {
	sign byte // '+', '-', or ' ' where both have it
	text string
}

// maxDiffLines bounds the work of comparing two requests: it grows with the
// product of their lines.
const maxDiffLines = 300

// diff compares lines (longest common subsequence).
func diff(x, y []string) []change {
	x, y = x[:min(len(x), maxDiffLines)], y[:min(len(y), maxDiffLines)]
	common := make([][]int, len(x)+1)
	for i := range common {
		common[i] = make([]int, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if x[i] == y[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	var out []change
	i, j := 0, 0
	for i < len(x) || j < len(y) {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			out = append(out, change{' ', x[i]})
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && common[i+1][j] >= common[i][j+1]:
			out = append(out, change{'-', x[i]})
			i++
		default:
			out = append(out, change{'+', y[j]})
			j++
		}
	}
	return out
}

// fitting returns as many lines of a comparison as the page has room for.
func fitting(r *ui.ByteBudget, all []change) (shown []change, whole bool) {
	const markup = 20
	for i, c := range all {
		if r.Left -= markup + ui.HTMLLen(c.text); r.Left < 0 {
			return all[:i], false
		}
	}
	return all, true
}

// changed are the lines that only one of both has.
func changed(all []change) (only []change) {
	for _, c := range all {
		if c.sign != ' ' {
			only = append(only, c)
		}
	}
	return only
}

// compare is the comparison of two callbacks, a field a line.
func compare(a, b *console.Callback) []change { return diff(linesOf(a), linesOf(b)) }

// linesOf is a callback with one field per line, whatever its format.
func linesOf(c *console.Callback) []string {
	lines := []string{c.Method + " /callback/" + c.Supplier}
	lines = append(lines, pairs(c.Query)...)
	lines = append(lines, strings.Split(strings.TrimSpace(c.Headers), "\n")...)
	lines = append(lines, "")
	return append(lines, bodyLines(c.Body)...)
}

func bodyLines(body []byte) []string {
	text := bytes.TrimSpace(body)
	var indented bytes.Buffer
	switch {
	case len(text) == 0:
		return nil
	case json.Indent(&indented, text, "", "  ") == nil:
		return strings.Split(indented.String(), "\n")
	case text[0] == '<':
		return strings.Split(strings.ReplaceAll(string(text), "><", ">\n<"), "\n")
	case !bytes.ContainsAny(text, "\n ") && bytes.ContainsRune(text, '='):
		return pairs(string(text))
	}
	return strings.Split(string(text), "\n")
}

// pairs writes the fields of a form readably; anything else stays as
// it came.
func pairs(form string) []string {
	if form == "" {
		return nil
	}
	lines := strings.Split(form, "&")
	for i, pair := range lines {
		if plain, err := url.QueryUnescape(pair); err == nil {
			lines[i] = plain
		}
	}
	return lines
}

// Texts of this page.
var (
	tDiffPage  = text.Text{ZH: "比较回调", EN: "Compare callbacks"}
	tDiffTitle = text.Text{ZH: "不同的行：%d", EN: "Lines that differ: %d"}
	tDiffNone  = text.Text{ZH: "没有不同。", EN: "No differences."}
	tDiffHow   = text.Text{ZH: "每个字段一行，忽略空白和等价写法的差异。", EN: "One field per line; whitespace and equivalent notations are ignored."}
)
