package apply

import (
	"fmt"
	"reflect"
	"slices"

	"backstop/internal/settings"
	"backstop/internal/supplier"
)

// Supplier returns a supplier that a file declares, as a new installation would use it: without
// stored settings, and whatever else the file declares. The error of an invalid declaration is
// *Invalid.
func Supplier(kinds supplier.Kinds, f File, code string) (supplier.Entry, error) {
	env := settings.Env{Kinds: kinds}
	d := &declaration{
		env: env, stored: settings.Nothing(env), files: newKeyFiles(f.Dir), problems: newProblems(f.Name), seen: names{},
	}
	var codes []string
	top := parse(string(f.Text), d.problems).object(settings.Words(reflect.TypeFor[settings.File]())...)
	for _, v := range top.at("suppliers").list() {
		is := v.object(settings.Words(reflect.TypeFor[settings.Supplier]())...).at("code").peek()
		if codes = append(codes, is); is == code {
			d.entry(reflect.TypeFor[settings.Supplier](), v)
		}
	}
	for i, c := range d.changes {
		d.report(i, c.Check(env))
	}
	if err := d.problems.err(); err != nil {
		return supplier.Entry{}, err
	}
	if !slices.Contains(codes, code) {
		return supplier.Entry{}, fmt.Errorf("the file declares no supplier %q, but %q", code, codes)
	}
	return d.changes[0].After.(*settings.Supplier).Entry(kinds)
}
