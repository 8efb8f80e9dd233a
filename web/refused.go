package web

import (
	"bytes"
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
	"golang.org/x/net/html"
)

// errNoForm means that the page no longer has the form that was refused.
var errNoForm = errors.New("the page does not have this form")

// pageOf returns the route of the page that has the form of a request: the page at the form's path,
// or nearest above it. nil = the form stands elsewhere, or the person may not open the page.
func (s *Server) pageOf(c *fiber.Ctx) *Route {
	op, path := Operator(c), c.Route().Path
	if strings.Contains(path, ":list") { // which is on every list
		return nil
	}
	for ; path != ""; path = path[:strings.LastIndex(path, "/")] {
		at := slices.IndexFunc(s.table, func(r Route) bool { return r.Method == http.MethodGet && r.Path == path })
		if at >= 0 && s.Policy.Allows(op.Roles, s.table[at].Permission) && s.table[at].limit(c, s.Actor(c)) == nil {
			return &s.table[at]
		}
	}
	return nil
}

// refusals are the statuses of forms that may be sent again.
var refusals = []int{http.StatusUnprocessableEntity, http.StatusConflict, http.StatusServiceUnavailable}

// showAgain shows the page of a form once more if it is refused, with what was typed. Where that
// is not possible, the error is returned.
func (s *Server) showAgain(c *fiber.Ctx) error {
	err := c.Next()
	if err == nil {
		return nil
	}
	e, page := answerTo(err), s.pageOf(c)
	if page == nil || !slices.Contains(refusals, e.Status) {
		return err
	}
	c.Locals(localRefused, &refused{Error: e, problem: failure(c, e).Problem(s.Page(c))})
	defer c.Locals(localRefused, nil)
	if page.Handler(c) != nil {
		return err
	}
	s.logFailure(c, e, err)
	return nil
}

// refused is a form that was refused, and what its page says about it.
type refused struct {
	*Error

	problem string
}

// fill enters into the form of a page what was typed, and the problem at the field at fault.
// Errors: errNoForm.
func (r *refused) fill(c *fiber.Ctx, page []byte) ([]byte, error) {
	doc, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		return nil, err
	}
	var form *html.Node
	for n := range doc.Descendants() {
		if n.Data == "form" && attr(n, "method") == "post" && attr(n, "action") == c.Path() && isFor(n, Field(c, "action")) {
			form = n
			break
		}
	}
	if form == nil {
		return nil, errNoForm
	}
	parent, place, at := form, form.FirstChild, cmp.Or(r.field, r.at)
	for n := range form.Descendants() {
		name := attr(n, "name")
		if name == "" || attr(n, "type") == "hidden" {
			continue
		}
		typeInto(n, c.Request().PostArgs().PeekMulti(name))
		if at == name || at == "params."+name {
			setAttr(n, "aria-invalid", "true")
			setAttr(n, "autofocus", "")
			parent, place = n.Parent, n.NextSibling
		}
	}
	problem := &html.Node{Type: html.ElementNode, Data: "p"}
	setAttr(problem, "class", "err")
	setAttr(problem, "role", "alert")
	problem.AppendChild(&html.Node{Type: html.TextNode, Data: r.problem})
	parent.InsertBefore(problem, place)
	for n := range form.Ancestors() {
		if n.Data == "details" || n.Data == "dialog" {
			setAttr(n, "open", "")
		}
	}
	var b bytes.Buffer
	err = html.Render(&b, doc)
	return b.Bytes(), err
}

// isFor reports whether a form is for this action; "" = it has none.
func isFor(form *html.Node, action string) bool {
	for n := range form.Descendants() {
		if attr(n, "name") == "action" {
			return attr(n, "value") == action
		}
	}
	return action == ""
}

// typeInto gives a field of a form the values that were sent.
func typeInto(n *html.Node, values [][]byte) {
	has := func(value string) bool {
		return slices.ContainsFunc(values, func(v []byte) bool { return string(v) == value })
	}
	mark := func(n *html.Node, key string, on bool) {
		n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool { return a.Key == key })
		if on {
			setAttr(n, key, "")
		}
	}
	first := string(bytes.Join(values[:min(len(values), 1)], nil))
	switch kind := attr(n, "type"); {
	case n.Data == "select":
		for option := range n.Descendants() {
			mark(option, "selected", option.Data == "option" && has(attr(option, "value")))
		}
	case n.Data == "textarea":
		for n.FirstChild != nil {
			n.RemoveChild(n.FirstChild)
		}
		n.AppendChild(&html.Node{Type: html.TextNode, Data: first})
	case n.Data == "input" && (kind == "checkbox" || kind == "radio"):
		mark(n, "checked", has(attr(n, "value")))
	case n.Data == "input" && kind != "password":
		setAttr(n, "value", first)
	}
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func setAttr(n *html.Node, key, value string) {
	n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool { return a.Key == key })
	n.Attr = append(n.Attr, html.Attribute{Key: key, Val: value})
}
