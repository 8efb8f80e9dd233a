package ui

import (
	"backstop/internal/base/text"

	"github.com/a-h/templ"
)

// Act is what a button says.
type Act struct {
	Icon  string // "" = none
	Label text.Text
	Class string // beside that of all buttons
	More  templ.Attributes
}
