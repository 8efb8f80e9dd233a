package panel

import "github.com/a-h/templ"

// Tight are the attributes of a form whose rows are close together, and whose typed amounts a script checks.
var Tight = templ.Attributes{"class": "stack-tight", "data-guard": true}

// LinkLine is a paragraph that is a link.
func LinkLine(class, said string, href templ.SafeURL) templ.Component {
	return Paragraph("", Anchor(class, said, href))
}

func oneOrNone(part templ.Component) []templ.Component {
	if part == nil {
		return nil
	}
	return []templ.Component{part}
}
