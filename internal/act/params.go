package act

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"

	"backstop/internal/base/field"
)

// Params declares the parameters of an act. The zero value has none.
type Params struct {
	Fields []field.Field // for forms
	read   func(json.RawMessage) (any, error)
}

// ParamsOf declares the parameters P by the tags of its fields. checks are the rules that tags
// cannot say; they return a *FieldError. It panics on a tag that it does not know.
func ParamsOf[P any](checks ...func(P) error) Params {
	fields := field.Of(reflect.TypeFor[P]())
	return Params{fields, func(raw json.RawMessage) (any, error) {
		var p P
		if err := decode(raw, &p); err != nil {
			return nil, err
		}
		v := reflect.ValueOf(&p).Elem()
		for i := range fields {
			x := v.FieldByIndex(fields[i].Index)
			if x.Kind() == reflect.String {
				x.SetString(strings.TrimSpace(x.String()))
			}
			if problem := fields[i].Problem(x); problem.EN != "" {
				return nil, &FieldError{Field: fields[i].Name, Problem: problem.EN, Says: problem}
			}
		}
		for _, check := range checks {
			if err := check(p); err != nil {
				return nil, err
			}
		}
		return p, nil
	}}
}

// Read returns the parameters as a value of their type; nil = there are none. Errors:
// *FieldError.
func (p Params) Read(raw json.RawMessage) (any, error) {
	if p.read == nil {
		return nil, nil
	}
	return p.read(raw)
}

// decode parses JSON. Unknown fields are errors; missing ones are zero. Errors: *FieldError.
func decode(raw json.RawMessage, p any) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	read := json.NewDecoder(bytes.NewReader(raw))
	read.DisallowUnknownFields()
	err := read.Decode(p)
	if err == nil && read.Decode(new(any)) != io.EOF {
		err = errors.New("more than one value")
	}
	if err == nil {
		return nil
	}
	if typed, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return &FieldError{Field: typed.Field, Problem: "not of the right type"}
	}
	if _, name, unknown := strings.Cut(err.Error(), `unknown field "`); unknown {
		return &FieldError{Field: strings.TrimSuffix(name, `"`), Problem: "there is no such field"}
	}
	return &FieldError{Field: "params", Problem: "not a JSON object"}
}
