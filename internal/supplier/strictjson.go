package supplier

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"backstop/internal/base/text"
	"backstop/internal/base/textlimit"
)

// MaxDepth bounds the nesting of JSON. A Stripe event, the deepest known, stays below 15. The
// text of tooDeep repeats the number.
const MaxDepth = 32

// DecodeJSON parses one JSON value. What CheckJSON refuses, and values of the wrong type, are
// *Refused as malformed. Numbers keep their digits (json.Number) if into allows it.
func DecodeJSON(raw []byte, into any) error {
	if err := CheckJSON(raw); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err := d.Decode(into)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return RefuseMalformed(jsonType, textlimit.Clip(wrong.Value, maxName), strconv.Quote(textlimit.Clip(wrong.Field, maxName)))
	default:
		return RefuseMalformed(jsonForm)
	}
}

// CheckJSON refuses JSON that two readers may read differently: duplicate names in one object
// at any depth (also in another case, because encoding/json reads "Amount" into the field
// "amount" and the last one wins), invalid UTF-8, NUL (escaped too), unpaired surrogate
// escapes, nesting deeper than MaxDepth, and anything after the value. Its errors are *Refused
// as malformed.
func CheckJSON(raw []byte) error {
	f := findFlaw(raw)
	if f == nil {
		return nil
	}
	if f.path == "" {
		return RefuseMalformed(jsonFlaw, f.problem)
	}
	return RefuseMalformed(jsonFlawAt, f.problem, strconv.Quote(f.path))
}

// flaw is where and why a JSON text is refused. An empty path means the whole text.
type flaw struct {
	path    string
	problem text.Code
}

func findFlaw(raw []byte) *flaw {
	switch {
	case !utf8.Valid(raw):
		return &flaw{problem: notUTF8}
	case bytes.IndexByte(raw, 0) >= 0:
		return &flaw{problem: hasNUL}
	case !json.Valid(raw): // trailing data included
		return &flaw{problem: notOneValue}
	case loneSurrogate(raw):
		return &flaw{problem: halfPair}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return walkJSON(d, "", 1)
}

// walkJSON reads one value of a well-formed text.
func walkJSON(d *json.Decoder, path string, depth int) *flaw {
	token, err := d.Token()
	if err != nil {
		return &flaw{path, noReading}
	}
	if s, ok := token.(string); ok && strings.ContainsRune(s, 0) {
		return &flaw{path, hasNUL}
	}
	open, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	if depth > MaxDepth {
		return &flaw{textlimit.Clip(path, maxName), tooDeep}
	}
	seen := map[string]bool{}
	for d.More() {
		inner := path
		if open == '{' {
			token, err := d.Token()
			name, isName := token.(string)
			if err != nil || !isName {
				return &flaw{path, noReading}
			}
			inner = join(path, name)
			switch folded := fold(name); {
			case strings.ContainsRune(name, 0):
				return &flaw{path, nameNUL}
			case seen[folded]:
				return &flaw{inner, sameName}
			default:
				seen[folded] = true
			}
		}
		if f := walkJSON(d, inner, depth+1); f != nil {
			return f
		}
	}
	if _, err := d.Token(); err != nil {
		return &flaw{path, noReading}
	}
	return nil
}

// join bounds the path: it is only displayed, and names come from outside.
func join(path, name string) string {
	if path == "" {
		return textlimit.Clip(name, maxName)
	}
	if len(path) > 120 {
		return path
	}
	return path + "." + textlimit.Clip(name, maxName)
}

// fold maps all cases of a letter to one, as encoding/json does when it looks up a struct
// field: also "ſ" to "S" and the Kelvin sign to "K".
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				return next // the smallest rune of the orbit
			}
			r = next
		}
	}, name)
}

// loneSurrogate finds \ud83d without its other half: encoding/json silently writes U+FFFD for
// each, other readers keep them or fail. raw is well formed.
func loneSurrogate(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++ // the escaped character; "\\u" is a backslash and a plain u
		if raw[i] != 'u' {
			continue
		}
		switch unit := hexUnit(raw[i+1:]); {
		case unit >= 0xDC00 && unit <= 0xDFFF:
			return true
		case unit >= 0xD800 && unit <= 0xDBFF:
			rest := raw[i+5:]
			if len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' {
				return true
			}
			if low := hexUnit(rest[2:]); low < 0xDC00 || low > 0xDFFF {
				return true
			}
			i += 6
		}
		i += 4
	}
	return false
}

func hexUnit(digits []byte) uint64 {
	unit, err := strconv.ParseUint(string(digits[:4]), 16, 16)
	if err != nil {
		return 0xDC00 // cannot happen in well-formed JSON; refused if it does
	}
	return unit
}
