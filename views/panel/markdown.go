package panel

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/a-h/templ"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	gtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// asPages gives the parts of a document the form they have on other pages.
var asPages = strings.NewReplacer(
	"</table>", "</table></div>", "<th>", `<th scope="col">`, "<td>", `<td class="wrap">`, "<strong>", "<b>", "</strong>", "</b>",
	"\n</code></pre>", "</pre>",
)

var codeBegins = regexp.MustCompile("<pre><code[^>]*>")

// Document is a document of the program as HTML.
type Document string

// Show writes it into a page as it is: it holds no text from outside.
func (d Document) Show() templ.Component { return templ.Raw(string(d)) }

// Markdown renders a document of docs, without its title and without HTML in it. Its tables
// are labelled by the element with the given id. Of its links those within it are kept, and those into
// documents that are on the same page (own, by their names): the console has no others.
func Markdown(source, label string, own func(document string) bool) Document {
	_, source, _ = strings.Cut(source, "\n")
	md := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(
		parser.WithAutoHeadingID(), parser.WithHeadingAttribute(), parser.WithASTTransformers(util.Prioritized(ownLinks{own}, 0))))
	var b bytes.Buffer
	if err := md.Convert([]byte(source), &b, parser.WithContext(parser.NewContext(parser.WithIDs(anchors{})))); err != nil {
		panic(fmt.Sprintf("panel: a document cannot be rendered: %v", err)) // it is part of the program
	}
	html := strings.ReplaceAll(asPages.Replace(b.String()), "<table>",
		`<div class="table-wrap" tabindex="0" role="group" aria-labelledby="`+label+`"><table>`)
	return Document(codeBegins.ReplaceAllString(html, `<pre class="code wrap" tabindex="0">`))
}

// ownLinks makes links into documents of the same page links within it, and drops the others.
type ownLinks struct{ own func(document string) bool }

func (o ownLinks) Transform(doc *ast.Document, _ gtext.Reader, _ parser.Context) {
	var others []*ast.Link
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // never fails
		if l, ok := n.(*ast.Link); ok {
			page, anchor, hasAnchor := bytes.Cut(l.Destination, []byte("#"))
			if hasAnchor && (len(page) == 0 || o.own(string(page))) {
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
