package config

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
)

// prefix of every environment variable of the program.
const prefix = "BACKSTOP_"

// Setting describes one field of Config.
type Setting struct {
	Name    string // without prefix: "NOTIFY_TIMEOUT"
	Default string
	Empty   string // the meaning of an empty default
	Group   string // section of the documentation
	Doc     string
	Secret  bool

	oneOf    []string
	form     form
	min, max int64 // only of types in units
	field    int
}

// Env is the name as an environment variable.
func (s Setting) Env() string { return prefix + s.Name }

// settings is every setting in the order of Config.
var settings = describe(reflect.TypeFor[Config]())

func describe(config reflect.Type) []Setting {
	all := make([]Setting, 0, config.NumField())
	group := ""
	for i := range config.NumField() {
		f := config.Field(i)
		if !f.IsExported() {
			continue
		}
		group = cmp.Or(f.Tag.Get("group"), group)
		s := Setting{
			Name: f.Tag.Get("env"), Default: f.Tag.Get("default"), Empty: f.Tag.Get("empty"),
			Group: group, Doc: f.Tag.Get("doc"), Secret: f.Type == reflect.TypeFor[Secret]() || f.Type == reflect.TypeFor[[]Secret](),
			oneOf: strings.Fields(f.Tag.Get("oneof")), form: forms[f.Tag.Get("form")], field: i,
		}
		if u, ok := units[f.Type]; ok {
			s.min, _ = u.parse(f.Tag.Get("min"))
			s.max, _ = u.parse(f.Tag.Get("max"))
		}
		all = append(all, s)
	}
	return all
}

// Accepts describes the accepted values, as in "use …".
func (s Setting) Accepts() string {
	t := reflect.TypeFor[Config]().Field(s.field).Type
	if u, ok := units[t]; ok {
		return fmt.Sprintf("%s from %s to %s", u.noun, u.write(s.min), u.write(s.max))
	}
	switch {
	case len(s.oneOf) > 0:
		return nouns[t] + strings.Join(s.oneOf, ", ")
	case s.form.accepts != "":
		return nouns[t] + s.form.accepts
	}
	return nouns[t]
}

// nearest is the setting with the most similar name, for typing errors.
func nearest(name string) string {
	best, least := "", len(name)+100
	for _, s := range settings {
		if d := distance(name, s.Name); d < least {
			best, least = s.Name, d
		}
	}
	return best
}

// distance is the number of letters to insert, delete or replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
