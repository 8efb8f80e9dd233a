package ui

import (
	"backstop/internal/base/text"

	"github.com/a-h/templ"
)

// Act is what a button says.
type Act struct {
	Icon  string // "" = none
	Label text.Text
	Says  string // instead of the label; "" = the label
	Class string // beside that of all buttons
	// Writes disables the button while no act is accepted: Redis or the database is in trouble.
	Writes bool
	More   templ.Attributes
}
