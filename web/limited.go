package web

import (
	"bytes"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/list"
	"backstop/views/ui"

	"github.com/gofiber/fiber/v2"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limit admits a caller who is limited to merchants to a route, whose handler shows nothing of
// others. Errors: act.ErrNotFound.
type Limit func(c *fiber.Ctx, by act.Actor) error

// ByHandler is the Limit of routes whose handlers filter by the caller's merchants, run an act, whose
// subject is checked, or show nothing of merchants.
func ByHandler(*fiber.Ctx, act.Actor) error { return nil }

// OwnRow is the Limit of routes about one row, whose id or number read returns. query finds the id of
// the merchant that it belongs to.
func OwnRow[T any](s *Server, query string, read func(*fiber.Ctx) (T, error)) Limit {
	return func(c *fiber.Ctx, by act.Actor) error {
		id, err := read(c)
		if err != nil {
			return err
		}
		var owner int64
		err = s.DB.Read.NewRaw(query, id).Scan(c.UserContext(), &owner)
		if errors.Is(err, sql.ErrNoRows) || err == nil && !by.Sees(owner) {
			return act.ErrNotFound
		}
		return err
	}
}

// limit checks that a route exists for its caller. Errors: act.ErrNotFound.
func (r Route) limit(c *fiber.Ctx, by act.Actor) error {
	switch {
	case by.Merchants == nil:
		return nil
	case r.Limit == nil:
		return act.ErrNotFound
	}
	return r.Limit(c, by)
}

// merchantIDs returns the merchants to which somebody is limited; nil = there is no limit.
func (s *Server) merchantIDs(m access.Merchants) []int64 {
	if m == "" {
		return nil
	}
	ids := []int64{}
	all := s.Settings.Current().Merchants
	for _, code := range m.Codes() {
		if of := all.ByCode(code); of != nil && !of.Subscriber {
			ids = append(ids, of.ID)
		}
	}
	return ids
}

// limitedHome is where "/" leads callers who are limited to merchants and may not see figures.
const limitedHome = "/orders"

// Scope returns the rows of lists that the caller may see.
func (s *Server) Scope(c *fiber.Ctx) list.Scope {
	if m := s.Actor(c).Merchants; m != nil {
		return list.Of(m...)
	}
	return list.All()
}

// Sees reports whether somebody may see what belongs to the merchant with this code.
func (s *Server) Sees(by act.Actor, code string) bool {
	if by.Merchants == nil {
		return true
	}
	m := s.Settings.Current().Merchants.ByCode(code)
	return m != nil && by.Sees(m.ID)
}

// limitedNames are the names of merchants that somebody may see, and of suppliers.
type limitedNames struct {
	ui.Names

	sees func(code string) bool
}

func (n limitedNames) MerchantName(code string) string {
	if !n.sees(code) {
		return ""
	}
	return n.Names.MerchantName(code)
}

// existsForLimited reports whether a path, which may have a query, leads to a route that exists for
// callers who are limited to merchants, or to none of the console's.
func (s *Server) existsForLimited(method, path string) bool {
	path, _, _ = strings.Cut(path, "#")
	path, _, _ = strings.Cut(path, "?")
	for _, r := range s.table {
		if r.Audience == ForOperator && r.Method == method && matches(r.Path, path) {
			return r.Limit != nil
		}
	}
	return true
}

func matches(route, path string) bool {
	want, got := strings.Split(route, "/"), strings.Split(path, "/")
	for i, part := range want {
		switch {
		case part == "*":
			return true
		case i >= len(got), part != got[i] && !strings.HasPrefix(part, ":"):
			return false
		}
	}
	return len(want) == len(got)
}

// isLost reports whether an attribute leads to what does not exist for limited readers. posts: it is one
// of a form that is posted.
func (s *Server) isLost(a html.Attribute, posts bool) bool {
	method := fiber.MethodGet
	if a.Key == "formaction" || a.Key == "action" && posts {
		method = fiber.MethodPost
	}
	return strings.HasPrefix(a.Val, "/") && a.Key != "value" && !s.existsForLimited(method, a.Val)
}

// remove takes an element out of its page, and its form too if nothing is left there to press.
func remove(n *html.Node) {
	form := n.Parent
	for form != nil && form.DataAtom != atom.Form {
		form = form.Parent
	}
	if n.Parent != nil {
		n.Parent.RemoveChild(n)
	}
	if form == nil || form.Parent == nil {
		return
	}
	for left := range form.Descendants() {
		if left.DataAtom == atom.Button {
			return
		}
	}
	form.Parent.RemoveChild(form)
}

// prune removes from a page what leads to routes that do not exist for its reader: forms and buttons go,
// links become plain text.
func (s *Server) prune(page []byte) ([]byte, error) {
	doc := &html.Node{Type: html.DocumentNode}
	if bytes.HasPrefix(bytes.TrimSpace(page), []byte("<!")) {
		whole, err := html.Parse(bytes.NewReader(page))
		if err != nil {
			return nil, err
		}
		doc = whole
	} else { // a part, which may be the row of a table
		part, err := html.ParseFragment(bytes.NewReader(page), &html.Node{Type: html.ElementNode, Data: "template", DataAtom: atom.Template})
		if err != nil {
			return nil, err
		}
		for _, n := range part {
			doc.AppendChild(n)
		}
	}
	var gone []*html.Node
	for n := range doc.Descendants() {
		all, posts, pressed := len(n.Attr), strings.EqualFold(attr(n, "method"), "post"), false
		n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool {
			lost := s.isLost(a, posts)
			pressed = pressed || lost && (a.Key == "action" || a.Key == "formaction")
			return lost
		})
		switch {
		case len(n.Attr) == all:
		case pressed, n.DataAtom == atom.A && slices.Contains(strings.Fields(attr(n, "class")), "btn"):
			gone = append(gone, n)
		case n.DataAtom == atom.A:
			n.Data, n.DataAtom = "span", atom.Span
		}
	}
	for _, n := range gone {
		remove(n)
	}
	var b bytes.Buffer
	err := html.Render(&b, doc)
	return b.Bytes(), err
}
