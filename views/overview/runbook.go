package overview

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"backstop/docs"
	"backstop/internal/base/text"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	gtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// runbooks are the operations manual as HTML, by language; it is part of the program, so it is rendered once.
var runbooks = map[string]string{"en": renderManual("en"), "zh": renderManual("zh")}

func renderManual(language string) (html string) {
	for _, page := range docs.Operations(language) {
		html += renderMarkdown(page)
	}
	return html
}

// asPages gives the parts of the runbook the form they have on other pages.
var asPages = strings.NewReplacer(
	"<table>", `<div class="table-wrap" tabindex="0" role="group" aria-labelledby="manual-title"><table>`, "</table>", "</table></div>",
	"<th>", `<th scope="col">`, "<td>", `<td class="wrap">`, "<strong>", "<b>", "</strong>", "</b>",
	"\n</code></pre>", "</pre>",
)

var codeBegins = regexp.MustCompile("<pre><code[^>]*>")

// renderMarkdown renders what follows the title. HTML in the source is left out.
func renderMarkdown(source string) string {
	_, source, _ = strings.Cut(source, "\n")
	md := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(
		parser.WithAutoHeadingID(), parser.WithHeadingAttribute(), parser.WithASTTransformers(util.Prioritized(ownLinks{}, 0))))
	var b bytes.Buffer
	if err := md.Convert([]byte(source), &b, parser.WithContext(parser.NewContext(parser.WithIDs(anchors{})))); err != nil {
		panic(fmt.Sprintf("pages: the runbook cannot be rendered: %v", err))
	}
	return codeBegins.ReplaceAllString(asPages.Replace(b.String()), `<pre class="code wrap" tabindex="0">`)
}

// ownLinks keeps only links within the manual, whose pages are one page here: the console has no other document.
type ownLinks struct{}

func (ownLinks) Transform(doc *ast.Document, _ gtext.Reader, _ parser.Context) {
	var others []*ast.Link
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // never fails
		if l, ok := n.(*ast.Link); ok {
			page, anchor, hasAnchor := bytes.Cut(l.Destination, []byte("#"))
			if hasAnchor && !bytes.Contains(page, []byte("/")) { // the other pages are in other folders
				l.Destination = append([]byte("#"), anchor...)
			} else if entering {
				others = append(others, l)
			}
		}
		return ast.WalkContinue, nil
	})
	for _, l := range others {
		if parent := l.Parent(); parent != nil {
			for c := l.FirstChild(); c != nil; c = l.FirstChild() {
				parent.InsertBefore(parent, l, c)
			}
			parent.RemoveChild(parent, l)
		}
	}
}

// anchors are the ids of headings, as links to them are written.
type anchors struct{}

func (anchors) Generate(title []byte, _ ast.NodeKind) []byte {
	return bytes.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, title)
}

func (anchors) Put([]byte) {}

var tRunbookHow = text.Text{ZH: "当前版本的运维手册。", EN: "The operations manual of this version."}
