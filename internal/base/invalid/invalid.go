// Package invalid says which value from outside is not valid.
package invalid

// FieldError names the invalid field of a request, form, script or filter, and how to fix it.
type FieldError struct{ Field, Problem string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }
