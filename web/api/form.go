package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"backstop/internal/base/textlimit"
	"backstop/internal/supplier"
	"backstop/web"
)

// maxURL bounds a URL, in characters.
const maxURL = 2048

// form is a JSON object that is read field by field; the first problem is kept.
type form struct {
	path   string // of the object inside the body: "items[2]."
	fields map[string]json.RawMessage
	err    error
}

// readForm parses an object. encoding/json would accept "Amount" for "amount", and the last of two,
// so names are compared here, exactly.
func readForm(body []byte) (*form, error) {
	if err := supplier.CheckJSON(body); err != nil {
		return nil, &web.Error{Status: 400, Code: "bad_json", Message: err.Error()}
	}
	f := &form{}
	if json.Unmarshal(body, &f.fields) != nil || f.fields == nil { // nil means null
		return nil, &web.Error{Status: 400, Code: "bad_json", Message: "the JSON is not an object"}
	}
	return f, nil
}

func (f *form) onlyKnown(known []string) {
	for _, name := range slices.Sorted(maps.Keys(f.fields)) {
		if !slices.Contains(known, name) {
			f.blame(textlimit.Clip(name, 40), "unknown field; known are "+strings.Join(known, ", "))
			return
		}
	}
}

// blame keeps a problem with a field; "" is the object itself.
func (f *form) blame(field, problem string) {
	if f.err == nil {
		f.err = web.InvalidField(strings.TrimSuffix(f.path+field, "."), problem)
	}
}

// raw returns a field's JSON. null counts as missing.
func (f *form) raw(name string, required bool) (json.RawMessage, bool) {
	raw, ok := f.fields[name]
	if ok && string(raw) != "null" {
		return raw, true
	}
	if required {
		f.blame(name, "this field is required")
	}
	return nil, false
}

func (f *form) text(name string, required bool, limit int) string {
	raw, ok := f.raw(name, required)
	if !ok {
		return ""
	}
	var text string
	switch err := json.Unmarshal(raw, &text); {
	case err != nil:
		f.blame(name, "use a text")
	case required && text == "":
		f.blame(name, "this field is required")
	case utf8.RuneCountInString(text) > limit:
		f.blame(name, fmt.Sprintf("use at most %d characters", limit))
	case !web.IsStorable(text):
		f.blame(name, "use no control characters")
	}
	return text
}

// flag returns a field that is true or false; missing = false.
func (f *form) flag(name string) (on bool) {
	if raw, ok := f.raw(name, false); ok && json.Unmarshal(raw, &on) != nil {
		f.blame(name, "use true or false")
	}
	return on
}

// number reads an integer. JSON's 1e3 and 5.0 are refused: an amount written like that was
// computed as a fraction.
func (f *form) number(name string, required bool, minimum, maximum int64) int64 {
	raw, ok := f.raw(name, required)
	if !ok {
		return 0
	}
	var n int64
	err := json.Unmarshal(raw, &n)
	switch {
	case err != nil && strings.Contains(string(raw), "."):
		f.blame(name, "use a whole number, without a decimal point: amounts are in minor units, such as 1999 for 19.99")
	case err != nil && strings.Trim(string(raw), "-0123456789") != "":
		f.blame(name, "use a whole number, without quotes")
	case err != nil, n < minimum, n > maximum: // err: more than 64 bits
		f.blame(name, fmt.Sprintf("use a number from %d to %d", minimum, maximum))
	}
	return n
}
