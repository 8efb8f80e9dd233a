package pages

import (
	"regexp"
	"strings"
	"unicode"

	"backstop/docs"
	"backstop/internal/base/text"
)

// block is a part of the runbook. Its kind is "h2", "h3", "p", "ul", "ol", "code" or "table".
type block struct {
	kind, id string
	spans    []span     // of headings and paragraphs
	items    [][]span   // of lists
	rows     [][][]span // of tables; the first is the head
	code     string
}

// span is a piece of a line: plain, code, bold or a link within the runbook.
type span struct{ kind, text, href string }

// runbook is docs/operations.md; it is part of the program, so it is read once.
var runbook = parseMarkdown(docs.Operations)

var listItem = regexp.MustCompile(`^(?:- |\d+\. )`)

// parseMarkdown reads the subset of Markdown in which the operations manual is written.
func parseMarkdown(source string) (all []block) {
	lines := strings.Split(source, "\n")
	for i := 0; i < len(lines); {
		line := lines[i]
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "# "):
			i++
		case strings.HasPrefix(line, "```"):
			end := i + 1
			for end < len(lines) && !strings.HasPrefix(lines[end], "```") {
				end++
			}
			all = append(all, block{kind: "code", code: strings.Join(lines[i+1:end], "\n")})
			i = end + 1
		case strings.HasPrefix(line, "## "), strings.HasPrefix(line, "### "):
			kind, title := "h2", strings.TrimLeft(line, "# ")
			if strings.HasPrefix(line, "###") {
				kind = "h3"
			}
			all = append(all, block{kind: kind, id: anchorOf(title), spans: parseSpans(title)})
			i++
		case strings.HasPrefix(line, "|"):
			b := block{kind: "table"}
			for ; i < len(lines) && strings.HasPrefix(lines[i], "|"); i++ {
				if strings.Trim(lines[i], "|-: ") == "" {
					continue // the line below the head
				}
				var row [][]span
				for _, cell := range strings.Split(strings.ReplaceAll(strings.Trim(lines[i], "| "), `\|`, "\x00"), "|") {
					row = append(row, parseSpans(strings.ReplaceAll(strings.TrimSpace(cell), "\x00", "|")))
				}
				b.rows = append(b.rows, row)
			}
			all = append(all, b)
		case listItem.MatchString(line):
			b := block{kind: "ul"}
			if line[0] != '-' {
				b.kind = "ol"
			}
			for ; i < len(lines) && (listItem.MatchString(lines[i]) || strings.HasPrefix(lines[i], "  ")); i++ {
				if m := listItem.FindString(lines[i]); m != "" {
					b.items = append(b.items, parseSpans(lines[i][len(m):]))
				} else {
					last := &b.items[len(b.items)-1]
					*last = append(*last, parseSpans(" "+strings.TrimSpace(lines[i]))...)
				}
			}
			all = append(all, b)
		default:
			all = append(all, block{kind: "p", spans: parseSpans(line)})
			i++
		}
	}
	return all
}

var spanForm = regexp.MustCompile("`([^`]+)`|\\*\\*([^*]+)\\*\\*|\\[([^\\]]+)\\]\\(([^)]+)\\)")

// parseSpans reads code, bold text and links. Only links within the manual are kept: the console
// has no other document.
func parseSpans(line string) (all []span) {
	for {
		m := spanForm.FindStringSubmatchIndex(line)
		if m == nil {
			break
		}
		all = append(all, span{text: line[:m[0]]})
		part := func(n int) string {
			if m[2*n] < 0 {
				return ""
			}
			return line[m[2*n]:m[2*n+1]]
		}
		switch {
		case part(1) != "":
			all = append(all, span{kind: "code", text: part(1)})
		case part(2) != "":
			all = append(all, span{kind: "b", text: part(2)})
		case strings.HasPrefix(part(4), "#"):
			all = append(all, span{kind: "a", text: strings.ReplaceAll(part(3), "`", ""), href: part(4)})
		default:
			all = append(all, span{text: strings.ReplaceAll(part(3), "`", "")})
		}
		line = line[m[1]:]
	}
	return append(all, span{text: line})
}

// anchorOf is the id of a heading, as links to it are written.
func anchorOf(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, title)
}

// Texts of this page.
var tRunbookHow = text.Text{ZH: "运维手册随程序一起提供，与当前版本一致（英文）。", EN: "The operations manual of this version."}
