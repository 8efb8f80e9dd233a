package panel

import (
	"backstop/internal/base/text"

	"github.com/a-h/templ"
)

// Input is a field of a form.
type Input struct {
	ID    string
	Name  string // "" = the id
	Label text.Text
	Hint  string
	Value string
	More  templ.Attributes // of its control
}

// Choice is one that a field offers.
type Choice struct {
	Value, Label string
	More         templ.Attributes
}
