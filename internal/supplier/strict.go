package supplier

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"backstop/internal/base/textlimit"
)

// CheckSigned checks a message whose signature covers its time and its whole body: the signature,
// by verify, then the query, which nothing signs, then the time. It records these steps.
func CheckSigned(req *Request, t *Trace, window time.Duration, verify func(*Request, *Trace) (time.Time, error)) error {
	signedAt, err := verify(req, t)
	if err != nil {
		t.FailBy("signature", err)
		return err
	}
	if err := CheckUnsignedQuery(req); err != nil {
		t.FailBy("unsigned", err)
		return err
	}
	return CheckWindow(t, signedAt, req.ReceivedAt, window)
}

// CheckWindow refuses a message whose signed time differs from now by more than window, in
// either direction: an old one may be a replay, and one from the future could be replayed until
// its time comes. The edge itself passes. It records the step "time window".
func CheckWindow(t *Trace, at, now time.Time, window time.Duration) error {
	const step = "time window"
	age := now.Sub(at)
	var err error
	switch {
	case at.IsZero():
		err = RefuseSignature(noTime)
	case at.Before(now.Add(-window)):
		err = RefuseSignature(tooOld, age.Round(time.Second), window)
	case at.After(now.Add(window)):
		err = RefuseSignature(tooEarly, (-age).Round(time.Second), window)
	default:
		t.Pass(step, inTime)
		return nil
	}
	t.FailBy(step, err)
	return err
}

// DecodeConfig parses a supplier's config into a struct. Unknown and duplicate fields and
// values of the wrong type are *FieldError; names are compared exactly. No config counts as an
// empty one, so that the kind reports what is missing. Errors never repeat a value, which may
// be a key.
func DecodeConfig(raw json.RawMessage, into any) error {
	if text := bytes.TrimSpace(raw); len(text) == 0 || string(text) == "null" {
		raw = json.RawMessage("{}")
	}
	if f := findFlaw(raw); f != nil {
		if f.path == "" {
			return fmt.Errorf("config %s", f.problem.EN)
		}
		return &FieldError{Field: f.path, Problem: f.problem.EN}
	}
	if err := knownFields(raw, reflect.TypeOf(into).Elem(), ""); err != nil {
		return err
	}
	err := json.Unmarshal(raw, into)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && wrong.Field != "":
		got, _, _ := strings.Cut(wrong.Value, " ") // "number 12" would repeat the value
		return &FieldError{Field: wrong.Field, Problem: fmt.Sprintf("a %s is wanted here, not a %s", jsonWord(wrong.Type), got)}
	default:
		return errors.New("config is not a set of named fields")
	}
}

// knownFields compares the names in raw with the struct's, level by level. encoding/json can
// refuse unknown names too, but reports only the last part of the path, only in the error text,
// and accepts other cases of a name. Lists of structs are not checked; no config has any.
func knownFields(raw json.RawMessage, into reflect.Type, path string) error {
	if into.Kind() == reflect.Pointer {
		into = into.Elem()
	}
	var got map[string]json.RawMessage
	if into.Kind() != reflect.Struct || json.Unmarshal(raw, &got) != nil {
		return nil // a leaf, or a wrong type that the decoder reports
	}
	known := map[string]reflect.Type{}
	var names []string
	for _, f := range reflect.VisibleFields(into) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && !f.Anonymous && name != "-" {
			name = cmp.Or(name, f.Name)
			known[name] = f.Type
			names = append(names, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		field, ok := known[name]
		if !ok {
			return &FieldError{Field: path + textlimit.Clip(name, maxName), Problem: "unknown field; known are " +
				strings.Join(names, ", ")}
		}
		if err := knownFields(got[name], field, path+name+"."); err != nil {
			return err
		}
	}
	return nil
}

// jsonWord names a Go type in YAML terms.
func jsonWord(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text (in quotes)"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "list"
	case reflect.Struct, reflect.Map:
		return "set of named fields"
	default:
		return "number"
	}
}

// maxName bounds how much of a hostile name is logged.
const maxName = 40
