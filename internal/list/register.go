package list

import (
	"slices"
	"strconv"
)

// registered are the lists of the program, each declared by New.
var registered []*Spec

// New declares a list, in a package variable. It panics on a name that another list has.
func New(s Spec) *Spec {
	if slices.ContainsFunc(registered, func(o *Spec) bool { return o.Name == s.Name }) {
		panic("list " + s.Name + " is declared twice")
	}
	registered = append(registered, &s)
	return &s
}

// Registered returns every list of the program.
func Registered() []*Spec { return slices.Clone(registered) }

// ID is a Check that accepts the id of a row.
func ID(value string) string {
	if id, err := strconv.ParseInt(value, 10, 64); err != nil || id <= 0 || strconv.FormatInt(id, 10) != value {
		return "use the id of a row, a whole number above zero"
	}
	return ""
}
