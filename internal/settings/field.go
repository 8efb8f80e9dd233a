package settings

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"backstop/internal/base/text"
	"backstop/internal/base/textlimit"
	"backstop/internal/fee"
)

// Field is one field of an object, described by the tags of its Go field. The apply file, its
// documentation and schema, checks, differences and export are all derived from it.
type Field struct {
	Word          string    // tag apply: its name in the file
	Doc           string    // what it is
	Help          text.Text // Doc in both languages; of the fields of forms
	Label         text.Text // what a form calls it
	Default       string    // value if null, or omitted in a new entry; may name a setting of the program
	Empty         string    // meaning of an unset field without a default
	Need          string    // the problem if a new entry omits it; "" = optional
	Example       string    // YAML
	Many          string    // name of the entries of its list
	OneOf         []string  // accepted values
	Form          string    // the form of a text: "code", "url" or "pem"; of a secret: "key" (hashed), "pem" or "number"
	Min           int64     // of a number or a duration (ns)
	Max           int64     // the same; for a text its bytes, for a list its entries
	Identity      bool      // a part of what identifies the object; it never changes
	NeedsApproval bool      // a change waits for a second person if Rules.Apply says so
	Type          reflect.Type

	index []int
}

// maxText bounds a text without a limit of its own, in bytes.
const maxText = 200

var fields sync.Map // reflect.Type → []Field

// Fields returns the fields of an object's type, in the order of the file. Fields of an
// embedded struct are fields of the object.
func Fields(t reflect.Type) []Field {
	if known, ok := fields.Load(t); ok {
		return known.([]Field)
	}
	var all []Field
	for i := range t.NumField() {
		g := t.Field(i)
		if g.Anonymous && g.Type.Kind() == reflect.Struct {
			for _, f := range Fields(g.Type) {
				f.index = append([]int{i}, f.index...)
				all = append(all, f)
			}
			continue
		}
		if g.Tag.Get("apply") == "" {
			continue
		}
		f := Field{
			Word: g.Tag.Get("apply"), Doc: g.Tag.Get("doc"), Default: g.Tag.Get("default"), Empty: g.Tag.Get("empty"),
			Need: g.Tag.Get("need"), Example: g.Tag.Get("example"), Many: g.Tag.Get("many"), Form: g.Tag.Get("form"),
			OneOf: strings.Fields(g.Tag.Get("oneof")), Identity: g.Tag.Get("id") == "true", NeedsApproval: g.Tag.Get("waits") == "true",
			Type: g.Type, index: []int{i},
		}
		f.Help = text.Text{ZH: g.Tag.Get("doc_zh"), EN: f.Doc}
		f.Label = text.Text{ZH: g.Tag.Get("label_zh"), EN: g.Tag.Get("label")}
		if f.Min, f.Max = f.bound(g.Tag.Get("min")), f.bound(g.Tag.Get("max")); f.Max == 0 && g.Type.Kind() == reflect.String {
			f.Max = maxText
		}
		all = append(all, f)
	}
	fields.Store(t, all)
	return all
}

func (f Field) bound(text string) int64 {
	if d, err := time.ParseDuration(text); err == nil && f.Type == reflect.TypeFor[time.Duration]() {
		return int64(d)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if text != "" && err != nil {
		panic("settings: invalid bound " + text + " of " + f.Word)
	}
	return n
}

// Of returns the field's value in an object, which is a struct.
func (f Field) Of(object reflect.Value) reflect.Value { return object.FieldByIndex(f.index) }

// Words returns the names of an object's fields.
func Words(t reflect.Type) (words []string) {
	for _, f := range Fields(t) {
		words = append(words, f.Word)
	}
	return words
}

// Accepts describes accepted values, as in "use …".
func (f Field) Accepts() string {
	switch f.Type {
	case reflect.TypeFor[bool]():
		return "true or false"
	case reflect.TypeFor[time.Duration]():
		return fmt.Sprintf("a duration from %s to %s", time.Duration(f.Min), time.Duration(f.Max))
	case reflect.TypeFor[fee.PPM]():
		return "a percentage from 0% to 99.9999%, such as 0.6%"
	case reflect.TypeFor[Rate]():
		return fmt.Sprintf("a rate from %d/s to %d/s", f.Min, f.Max)
	case reflect.TypeFor[int](), reflect.TypeFor[int64](), reflect.TypeFor[*int]():
		return fmt.Sprintf("a whole number from %d to %d", f.Min, f.Max)
	}
	return strings.Join(f.OneOf, " or ")
}

// Set sets a value from a scalar of the file and returns the problem, or "". Bounds are left to
// Check, except for optional numbers, whose 0 means unset.
func (f Field) Set(to reflect.Value, text string) (problem string) {
	var n int64
	var err error
	switch to.Interface().(type) {
	case bool:
		switch strings.ToLower(text) {
		case "true", "false":
			to.SetBool(strings.EqualFold(text, "true"))
			return ""
		}
		return "use true or false"
	case time.Duration:
		var d time.Duration
		d, err = time.ParseDuration(text)
		n = int64(d)
	case fee.PPM:
		rate, err := fee.ParseRate(text)
		if err != nil {
			return err.Error()
		}
		to.SetInt(int64(rate))
		return ""
	case Rate:
		digits, ok := strings.CutSuffix(text, "/s")
		if n, err = strconv.ParseInt(digits, 10, 64); !ok {
			err = strconv.ErrSyntax
		}
	case int, int64, *int:
		n, err = strconv.ParseInt(text, 10, 64)
	default:
		to.SetString(text)
		return ""
	}
	if err != nil || f.Optional() && (n < f.Min || n > f.Max) {
		return "use " + f.Accepts()
	}
	if to.Kind() == reflect.Pointer {
		whole := int(n)
		to.Set(reflect.ValueOf(&whole))
	} else {
		to.SetInt(n)
	}
	return ""
}

// Optional reports whether the zero value means "not set".
func (f Field) Optional() bool { return f.Default == "" && f.Need == "" }

// problem returns what is wrong with a value according to the field's tags, or "".
func (f Field) problem(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case string:
		return f.textProblem(x)
	case Channel:
		return f.textProblem(string(x))
	case time.Duration, Rate, int, int64:
		if n := v.Int(); (n != 0 || !f.Optional()) && (n < f.Min || n > f.Max) {
			return "use " + f.Accepts()
		}
	case *int:
		if x != nil && (int64(*x) < f.Min || int64(*x) > f.Max) {
			return "use " + f.Accepts()
		}
	}
	if k := v.Kind(); f.Max > 0 && (k == reflect.Slice || k == reflect.Map) && int64(v.Len()) > f.Max {
		return strings.Replace(fmt.Sprintf("at most %d %s are allowed", f.Max, f.Many), "  ", " ", 1)
	}
	return ""
}

func (f Field) textProblem(text string) string {
	switch {
	case text == "" && f.Need != "":
		return f.Need
	case int64(len(text)) > f.Max:
		return fmt.Sprintf("at most %d characters are allowed", f.Max)
	case f.Form == "pem" && strings.ContainsRune(text, 0):
		return "NUL is not allowed here"
	case f.Form != "pem" && strings.ContainsFunc(text, unicode.IsControl):
		return "control characters and line breaks are not allowed here"
	case f.Form == "code" && !code.MatchString(text):
		return fmt.Sprintf("%q: use 1 to 64 of a-z, 0-9, - and _, beginning with a letter or digit", textlimit.Clip(text, maxShown))
	case len(f.OneOf) > 0 && !slices.Contains(f.OneOf, text):
		return unknownWord(text, f.OneOf)
	}
	return ""
}

func unknownWord(text string, known []string) string {
	return fmt.Sprintf("%q is not known; use %s", textlimit.Clip(text, maxShown), strings.Join(known, " or "))
}

// maxShown bounds how much of an invalid text is shown.
const maxShown = 60

// Text returns a value as written in the apply file; "" = not set.
func Text(v any) string {
	switch x := v.(type) {
	case time.Duration:
		return durationText(x)
	case Rate:
		if x > 0 {
			return fmt.Sprintf("%d/s", x)
		}
		return ""
	case *int:
		if x != nil {
			return strconv.Itoa(*x)
		}
		return ""
	case Followed:
		if x == nil {
			return "all"
		}
		return Text([]string(x))
	case []string:
		return "[" + strings.Join(x, ", ") + "]"
	case []netip.Prefix:
		texts := make([]string, len(x))
		for i, p := range x {
			texts[i] = p.String()
		}
		return Text(texts)
	case Fee:
		if x == NewFee() {
			return none
		}
		return entryText(reflect.ValueOf(x))
	case []TypedAbove, []SecondAbove, []MerchantFee, []PayoutFee, []Limit:
		var texts []string
		for _, e := range reflect.ValueOf(v).Seq2() {
			texts = append(texts, entryText(e))
		}
		return Text(texts)
	}
	return fmt.Sprint(v)
}

// entryText returns a list entry in braces.
func entryText(e reflect.Value) string {
	var texts []string
	for _, f := range Fields(e.Type()) {
		texts = append(texts, f.Word+": "+Text(f.Of(e).Interface()))
	}
	return "{" + strings.Join(texts, ", ") + "}"
}

// durationText is text.Duration, with 0 as "".
func durationText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return text.Duration(d)
}
