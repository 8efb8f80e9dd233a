package search

import (
	"slices"
	"strings"

	"backstop/internal/base/text"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// Place is a page, or an act, that is found by its name.
type Place struct {
	Path  string // of the page; with a fragment, of what it opens there
	Icon  string
	Label text.Text
	Also  string // other words that find it, in both languages
	// Press is a selector of the button, on every page, that carries out the act at once; "" = the
	// page does.
	Press string
}

// Matching returns the places whose names contain all words of a text, in any language. Those
// that begin with it come first.
func Matching(all []Place, q string) (found []Place) {
	q = strings.ToLower(q)
	var others []Place
	for _, x := range all {
		names := []string{strings.ToLower(x.Label.ZH + " " + x.Also), strings.ToLower(x.Label.EN + " " + x.Also)}
		if slices.ContainsFunc(strings.Fields(q), func(word string) bool {
			return !strings.Contains(names[0], word) &&
				!strings.Contains(names[1], word)
		}) {
			continue
		}
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, q) }) {
			found = append(found, x)
		} else {
			others = append(others, x)
		}
	}
	return append(found, others...)
}

// Hit is one line of what was found.
type Hit struct {
	Path, Icon    string
	Label, Detail string
	Press         string // see Place
}

// hitLink are the attributes of a line's link.
func hitLink(h Hit) templ.Attributes {
	a := templ.Attributes{"href": string(templ.URL(h.Path))}
	if h.Press != "" {
		a["data-press"] = h.Press
	}
	return a
}

// HitGroup is what was found of one kind.
type HitGroup struct {
	Label text.Text
	Hits  []Hit
}

// hitsOf are places as lines.
func hitsOf(p *ui.Page, places []Place) (all []Hit) {
	for _, x := range places {
		all = append(all, Hit{Path: x.Path, Icon: x.Icon, Label: p.T(x.Label), Press: x.Press})
	}
	return all
}
