package config

import "reflect"

// Row is one line of `backstop config`.
type Row struct {
	Name   string `json:"name"`  // the environment variable
	Value  string `json:"value"` // "***" where secret and set
	Origin Origin `json:"origin"`
}

// Effective returns every setting with its value and origin.
func (c Config) Effective() []Row {
	rows := make([]Row, len(settings))
	for i, s := range settings {
		rows[i] = Row{Name: s.Env(), Value: show(reflect.ValueOf(c).Field(s.field)), Origin: c.origins[s.Name]}
	}
	return rows
}
