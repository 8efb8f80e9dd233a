package panel

import "github.com/a-h/templ"

// Guarded are the attributes of a form whose rows are close together, and whose typed amounts a script checks.
var Guarded = templ.Attributes{"class": "stack-tight", "data-guard": true}

// GuardedForm acts once. Where it has something to type as it is shown, its button waits for that.
func GuardedForm(action templ.SafeURL, key string, parts ...templ.Component) templ.Component {
	return PostForm(string(action), Guarded, append([]templ.Component{FormKey(key)}, parts...)...)
}

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
