// Package field reads how the fields of a struct are declared: by tags, once at start. The
// declarations serve whoever checks, asks for or documents the values.
package field

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"backstop/internal/base/money"
	"backstop/internal/base/text"
)

// Kind is what a field holds.
type Kind string

// Kinds. Without a tag, the Go type decides.
const (
	Line   Kind = "line"   // a text without control characters
	Word   Kind = "word"   // a Line without spaces
	Text   Kind = "text"   // a text of several lines
	Choice Kind = "choice" // one of Choices
	Number Kind = "number"
	Money  Kind = "money" // minor units in JSON, 1 to money.MaxMinor; people type it as it is shown
	Flag   Kind = "flag"
	List   Kind = "list"
	Object Kind = "object"
	Raw    Kind = "raw" // any JSON, which its user reads

	ASCII  Kind = "ascii"  // visible characters: a merchant's own number
	IP     Kind = "ip"     // an address, without a port
	URL    Kind = "url"    // http or https
	Time   Kind = "time"   // RFC 3339; Unix µs
	Cursor Kind = "cursor" // of a page of a list
	Limit  Kind = "limit"  // the rows of a page
)

// types are the Go kinds that a Kind fits; the first Kind is that of a field without a tag.
var types = []struct {
	kind Kind
	fits func(reflect.Kind) bool
}{
	{Line, isText},
	{Word, isText},
	{Text, isText},
	{Choice, isText},
	{Number, isWhole},
	{Money, isWhole},
	{ASCII, isText},
	{IP, isText},
	{URL, isText},
	{Time, isWhole},
	{Cursor, isWhole},
	{Limit, isWhole},
	{Flag, func(k reflect.Kind) bool { return k == reflect.Bool }},
	{List, func(k reflect.Kind) bool { return k == reflect.Slice }},
	{Raw, func(k reflect.Kind) bool { return k == reflect.Slice }},
	{Object, func(k reflect.Kind) bool { return k == reflect.Struct || k == reflect.Map }},
}

func isText(k reflect.Kind) bool  { return k == reflect.String }
func isWhole(k reflect.Kind) bool { return k == reflect.Int || k == reflect.Int64 }

// Field is the declaration of one field.
type Field struct {
	Name     string // in JSON, or in the query of a URL
	Query    bool
	Filter   string // the word of the list that it filters, if not its name; "-" = none
	Kind     Kind
	Required bool
	Min, Max int64 // of a number, or of the characters of a text; 0 = no bound
	Choices  []string
	Default  string
	Example  string
	Doc      string
	Says     text.Text // what is said of an invalid value, instead of what is wrong with it
	Secret   bool      // a text, or a list of texts, that is sealed at rest and never shown
	PEM      bool      // a secret whose parser skips blanks and line breaks
	Index    []int     // in the struct, for reflect.Value.FieldByIndex
}

// tags read the words of a field, except its name in JSON.
var tags = map[string]func(f *Field, word string) (ok bool){
	"kind":     func(f *Field, word string) bool { f.Kind = Kind(word); return true },
	"required": func(f *Field, word string) bool { f.Required = word == "true"; return f.Required },
	"min":      func(f *Field, word string) bool { return number(word, &f.Min) },
	"max":      func(f *Field, word string) bool { return number(word, &f.Max) },
	"choices": func(f *Field, word string) bool {
		f.Choices, f.Kind = strings.Split(word, "|"), Choice
		return word != ""
	},
	"default": func(f *Field, word string) bool { f.Default = word; return true },
	"example": func(f *Field, word string) bool { f.Example = word; return true },
	"doc":     func(f *Field, word string) bool { f.Doc = word; return true },
	"says":    func(f *Field, word string) bool { f.Says.EN = word; return true },
	"says_zh": func(f *Field, word string) bool { f.Says.ZH = word; return true },
	"filter":  func(f *Field, word string) bool { f.Filter = word; return true },
	"secret": func(f *Field, word string) bool {
		f.Secret, f.PEM = true, word == "pem"
		return f.PEM || word == "true"
	},
	"query": func(f *Field, word string) bool { f.Name, f.Query = word, true; return true },
}

func number(word string, n *int64) bool {
	var err error
	*n, err = strconv.ParseInt(word, 10, 64)
	return err == nil
}

// Of returns the fields of a struct, those of embedded structs included. It panics on a tag, a
// kind or a bound that it does not know: declarations are constants of the program.
func Of(t reflect.Type) (all []Field) {
	for _, sf := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if sf.Anonymous || name == "-" {
			continue
		}
		f := Field{Name: name, Index: sf.Index}
		for key, word := range words(t, sf.Tag) {
			if read, known := tags[key]; key != "json" && (!known || !read(&f, word)) {
				panic(fmt.Sprintf("field: %v.%s: %s:%q", t, sf.Name, key, word))
			}
		}
		if f.Name == "" || !sf.IsExported() || !f.fits(sf.Type) {
			panic(fmt.Sprintf("field: %v.%s has no name or is no %s", t, sf.Name, f.Kind))
		}
		all = append(all, f)
	}
	return all
}

// fits reports whether the kind, or that of the type if there is none, fits the type.
func (f *Field) fits(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for _, x := range types {
		if x.fits(t.Kind()) && (f.Kind == "" || f.Kind == x.kind) {
			if f.Kind = x.kind; f.Kind == Money {
				f.Min, f.Max = max(f.Min, 1), cmp.Or(f.Max, money.MaxMinor)
			}
			return (f.Kind == Choice) == (f.Choices != nil)
		}
	}
	return false
}

// words splits a struct tag, which reflect only looks up.
func words(t reflect.Type, tag reflect.StructTag) map[string]string {
	all := map[string]string{}
	for rest := strings.TrimSpace(string(tag)); rest != ""; rest = strings.TrimSpace(rest) {
		key, after, ok := strings.Cut(rest, ":")
		quoted, err := strconv.QuotedPrefix(after)
		if !ok || err != nil {
			panic(fmt.Sprintf("field: %v has the tag %s", t, tag))
		}
		all[key], _ = strconv.Unquote(quoted)
		rest = after[len(quoted):]
	}
	return all
}

// Problem says what is wrong with a value of the field; zero = nothing.
func (f *Field) Problem(v reflect.Value) text.Text {
	problem := tRequired
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return f.says(f.Required, problem)
		}
		v = v.Elem()
	} else if v.IsZero() && (!f.Required || !isWhole(v.Kind())) {
		return f.says(f.Required, problem)
	}
	switch {
	case isWhole(v.Kind()):
		problem = f.ofNumber(v.Int())
	case isText(v.Kind()):
		problem = f.ofText(v.String())
	case f.Kind == List && f.Max > 0 && int64(v.Len()) > f.Max:
		problem = filled(tItems, f.Max)
	default:
		return text.Text{}
	}
	return f.says(problem != text.Text{}, problem)
}

// What is said of invalid values.
var (
	tRequired = text.Text{ZH: "必填", EN: "this field is required"}
	tItems    = text.Text{ZH: "最多 %d 项", EN: "use at most %d items"}
	tAtLeast  = text.Text{ZH: "请填不小于 %d 的整数", EN: "use a number of at least %d"}
	tBetween  = text.Text{ZH: "请填 %d 到 %d 的整数", EN: "use a number from %d to %d"}
	tLonger   = text.Text{ZH: "最多 %d 个字", EN: "use at most %d characters"}
	tShorter  = text.Text{ZH: "至少 %d 个字", EN: "use at least %d characters"}
	tOneOf    = text.Text{ZH: "只能是 %s", EN: "use %s"}
	tControl  = text.Text{ZH: "不得含有控制字符", EN: "use no control characters"}
	tVisible  = text.Text{ZH: "请用 1 到 %d 个可见的 ASCII 字符", EN: "use 1 to %d visible ASCII characters"}
	tIP       = text.Text{ZH: "请填 IP 地址", EN: "use an IP address"}
	tURL      = text.Text{ZH: "请填 http 或 https 地址", EN: "use an http or https URL"}
)

func filled(t text.Text, args ...any) text.Text {
	return text.Text{ZH: fmt.Sprintf(t.ZH, args...), EN: fmt.Sprintf(t.EN, args...)}
}

// says returns what is said if a value is invalid.
func (f *Field) says(invalid bool, problem text.Text) text.Text {
	if invalid && f.Says != (text.Text{}) {
		return f.Says
	}
	if invalid {
		return problem
	}
	return text.Text{}
}

func (f *Field) ofNumber(n int64) text.Text {
	switch {
	case n >= f.Min && (f.Max == 0 || n <= f.Max):
		return text.Text{}
	case f.Max == 0:
		return filled(tAtLeast, f.Min)
	}
	return filled(tBetween, f.Min, f.Max)
}

func (f *Field) ofText(s string) text.Text {
	refused := map[Kind]func(rune) bool{
		Line: unicode.IsControl, ASCII: unicode.IsControl, IP: unicode.IsControl, URL: unicode.IsControl,
		Word: func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) },
		Text: func(r rune) bool { return r == 0 },
	}[f.Kind]
	switch n := int64(utf8.RuneCountInString(s)); {
	case f.Max > 0 && n > f.Max:
		return filled(tLonger, f.Max)
	case f.Kind == Choice && !slices.Contains(f.Choices, s):
		return filled(tOneOf, strings.Join(f.Choices, ", "))
	case n < f.Min:
		return filled(tShorter, f.Min)
	case !utf8.ValidString(s) || refused != nil && strings.ContainsFunc(s, refused):
		return tControl
	}
	return f.ofForm(s)
}

// ofForm checks the kinds of text that have a form.
func (f *Field) ofForm(s string) text.Text {
	switch f.Kind {
	case ASCII:
		if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			return filled(tVisible, f.Max)
		}
	case IP:
		if _, err := netip.ParseAddr(s); err != nil {
			return tIP
		}
	case URL:
		if u, err := url.Parse(s); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return tURL
		}
	}
	return text.Text{}
}
