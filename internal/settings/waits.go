package settings

import (
	"reflect"
	"slices"
	"strings"
)

// Split splits a change of an existing object into what is applied at once and the fields whose
// change waits for a second person, such as "notify.urls". Unreadable values are repaired at
// once.
func (c Change) Split() (now Change, waits []string) {
	if c.Before == nil || c.bookedOnce() {
		return c, nil
	}
	s := &splitter{diff: c.Diff()}
	if u, ok := c.Before.(interface{ Unread() []string }); ok {
		s.unread = u.Unread()
	}
	is := reflect.New(reflect.TypeOf(c.After).Elem())
	is.Elem().Set(reflect.ValueOf(c.After).Elem())
	s.keep("", reflect.ValueOf(c.Before).Elem(), is.Elem())
	now = Change{Object: c.Object, Before: c.Before, After: is.Interface()}
	if len(s.waits) > 0 {
		now.keepDerived(s.waits)
	}
	return now, s.waits
}

// splitter keeps waiting fields at their old values.
type splitter struct {
	diff   []Difference
	unread []string
	waits  []string
}

func (s *splitter) keep(path string, was, is reflect.Value) {
	for _, f := range Fields(is.Type()) {
		at := join(path, f.Word)
		switch {
		case slices.Contains(s.unread, at):
		case f.Type == reflect.TypeFor[Notify]():
			s.keep(at, f.Of(was), f.Of(is))
		case f.NeedsApproval && s.changes(at):
			s.waits = append(s.waits, at)
			f.Of(is).Set(f.Of(was))
		}
	}
}

func (s *splitter) changes(at string) bool {
	return slices.ContainsFunc(s.diff, func(d Difference) bool { return d.Field == at || strings.HasPrefix(d.Field, at+".") })
}

// keepDerived keeps values derived from waiting fields.
func (c Change) keepDerived(waits []string) {
	addresses := slices.ContainsFunc(waits, func(at string) bool {
		return strings.HasSuffix(at, "urls") ||
			strings.HasSuffix(at, "endpoints")
	})
	switch v := c.After.(type) {
	case *Supplier:
		if slices.Contains(waits, "kind") || slices.Contains(waits, "config") {
			v.account = c.Before.(*Supplier).account
		}
	case *Merchant:
		if addresses {
			v.disabled = c.Before.(*Merchant).disabled
		}
	case *Subscription:
		if addresses {
			v.disabled = c.Before.(*Subscription).disabled
		}
	}
}

// WaitingFields returns the fields whose changes wait for a second person, in the order of the
// file, such as "merchants api_key".
func WaitingFields() (all []string) {
	var walk func(section, path string, t reflect.Type)
	walk = func(section, path string, t reflect.Type) {
		for _, f := range Fields(t) {
			switch at := join(path, f.Word); {
			case f.NeedsApproval:
				all = append(all, section+" "+at)
			case f.Type == reflect.TypeFor[Notify]():
				walk(section, at, f.Type)
			}
		}
	}
	for _, section := range Fields(reflect.TypeFor[File]()) {
		walk(section.Word, "", section.Type.Elem())
	}
	return all
}
