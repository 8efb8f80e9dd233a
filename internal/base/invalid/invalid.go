// Package invalid says which value from outside is not valid.
package invalid

import (
	"fmt"

	"backstop/internal/base/text"
)

// FieldError names the invalid field of a request, form, script or filter, and how to fix it.
type FieldError struct {
	Field, Problem string // for programs
	// Says is the same for a person at a form; zero = Problem.
	Says text.Text
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// Field returns the error of a field with a problem that programs and people read alike.
func Field(field string, problem text.Text, args ...any) *FieldError {
	says := text.Text{ZH: fmt.Sprintf(problem.ZH, args...), EN: fmt.Sprintf(problem.EN, args...)}
	return &FieldError{Field: field, Problem: says.EN, Says: says}
}

// Telling sets what a person reads where a program reads something else, such as minor units.
func (e *FieldError) Telling(says text.Text, args ...any) *FieldError {
	e.Says = Field("", says, args...).Says
	return e
}
