package ui

import "github.com/a-h/templ"

// Current marks the chosen one of several links.
func Current(is bool) templ.Attributes {
	if is {
		return templ.Attributes{"aria-current": "true"}
	}
	return nil
}
