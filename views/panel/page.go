package panel

import "github.com/a-h/templ"

// Guarded are the attributes of a form whose rows are close together, and whose typed amounts a script checks.
var Guarded = templ.Attributes{"class": "stack-tight", "data-guard": true}

// LinkLine is a paragraph that is a link.
func LinkLine(href templ.SafeURL, said string) templ.Component {
	return Line("", Anchor(href, said))
}

func oneOrNone(part templ.Component) []templ.Component {
	if part == nil {
		return nil
	}
	return []templ.Component{part}
}
