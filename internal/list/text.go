package list

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/uptrace/bun"
)

// MaxText bounds the text of a filter, in bytes.
const MaxText = 500

// Word is one word of a filter's text: `merchant:m1`, `merchant:"Green Tea"`, or only a value.
type Word struct {
	Text  string // as written
	Field string // what precedes the colon; "" = nothing
	Value string // without quotes
}

// Fault is why a word of a filter's text cannot be used.
type Fault string

// All faults.
const (
	UnknownField Fault = "unknown_field" // Hints: the fields
	NoValue      Fault = "no_value"
	WrongValue   Fault = "wrong_value" // Hints: the known values
	BadValue     Fault = "bad_value"   // Hints: what the field wants
	Ambiguous    Fault = "ambiguous"   // Hints: the values that it can mean
	Repeated     Fault = "repeated"
	NoField      Fault = "no_field" // Hints: the fields
	WrongTime    Fault = "wrong_time"
	WrongOrder   Fault = "wrong_order" // the end precedes the beginning
	TooFar       Fault = "too_far"     // more days than one list covers
	Unreadable   Fault = "unreadable"  // the text is too long, or has control characters
)

// Problem is a word with its fault.
type Problem struct {
	Word  Word
	Fault Fault
	Hints []string
}

// Words splits the text of a filter at its spaces. A value with spaces is quoted; in quotes, a
// backslash precedes a quote or a backslash. Colons and quotes may be those of Chinese
// keyboards. Text without a closing quote ends with it.
func Words(text string) (all []Word) {
	for text = strings.TrimLeft(text, spaces); text != ""; text = strings.TrimLeft(text, spaces) {
		w, n := word(text)
		all, text = append(all, w), text[n:]
	}
	return all
}

const spaces = " \t\r\n\u3000"

// word reads the first word of a text, and returns its length.
func word(text string) (w Word, n int) {
	var value strings.Builder
	quoted, escaped := false, false
	for n < len(text) {
		r, size := utf8.DecodeRuneInString(text[n:])
		switch {
		case escaped:
			escaped = false
			value.WriteRune(r)
		case quoted && r == '\\':
			escaped = true
		case isQuote(r):
			quoted = !quoted
		case !quoted && strings.ContainsRune(spaces, r):
			w.Text, w.Value = text[:n], value.String()
			return w, n
		case !quoted && w.Field == "" && (r == ':' || r == '：') && value.Len() > 0:
			w.Field = value.String()
			value.Reset()
		default:
			value.WriteString(text[n : n+size])
		}
		n += size
	}
	w.Text, w.Value = text[:n], value.String()
	return w, n
}

func isQuote(r rune) bool { return r == '"' || r == '“' || r == '”' }

// Text writes terms as the text of a filter, which Words reads back.
func Text(terms []Term) string {
	var all []string
	for _, t := range terms {
		all = append(all, t.Name+":"+quote(t.Value))
	}
	return strings.Join(all, " ")
}

func quote(value string) string {
	if value != "" && !strings.ContainsAny(value, spaces+"\"“”\\") {
		return value
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "“", `\“`, "”", `\”`).Replace(value) + `"`
}

// Reading makes terms of words.
type Reading struct {
	Spec *Spec
	// Choices are the values that exist, by field; see Suggestions.
	Choices map[string][]Choice
	// Alias returns the fields that a word can mean other than by its own name, such as its name
	// in the operator's language; nil = none.
	Alias func(string) []string
	// Labels returns how a value of a field is displayed, in each language; nil = as it is.
	Labels func(field, value string) []string
}

// Field returns the field that a word names; nil = none.
func (r Reading) Field(name string) *Field {
	name = strings.ToLower(name)
	names := []string{name}
	if same, ok := synonyms[name]; ok {
		names = append(names, same)
	}
	if r.Alias != nil {
		names = append(names, r.Alias(name)...)
	}
	for _, n := range names {
		if f := r.Spec.field(n); f != nil && !f.Hidden {
			return f
		}
	}
	return nil
}

// synonyms are words that lists use for the same.
var synonyms = map[string]string{"state": "status", "status": "state", "order_no": "no", "order": "no", "no": "order_no"}

// Term makes a term of a word. A value may be the name of what has it.
func (r Reading) Term(w Word) (Term, *Problem) {
	if w.Field == "" {
		return r.bare(w)
	}
	f := r.Field(w.Field)
	if f == nil {
		return Term{}, &Problem{w, UnknownField, r.Fields()}
	}
	if w.Value == "" {
		return Term{}, &Problem{w, NoValue, r.values(f, "")}
	}
	value, all := r.value(f, w.Value)
	if value == "" && len(all) == 0 {
		value, all = r.labelled(f, w.Value)
	}
	switch {
	case len(all) > 1:
		return Term{}, &Problem{w, Ambiguous, all}
	case value == "" && len(f.Values) > 0 && f.Suggest == nil:
		return Term{}, &Problem{w, WrongValue, r.values(f, "")}
	case value == "":
		value = w.Value // of a row that is no longer suggested, or free text
	}
	if problem := f.problem(value); problem != "" {
		return Term{}, &Problem{w, BadValue, []string{problem}}
	}
	return Term{f.Name, value}, nil
}

// bare makes a term of a value without a field, if only one field has it.
func (r Reading) bare(w Word) (Term, *Problem) {
	var found []Term
	for i := range r.Spec.Fields {
		f := &r.Spec.Fields[i]
		if f.Hidden {
			continue
		}
		if value, _ := r.value(f, w.Value); value != "" {
			found = append(found, Term{f.Name, value})
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Term{}, &Problem{w, NoField, r.Fields()}
	}
	var hints []string
	for _, t := range found {
		hints = append(hints, Text([]Term{t}))
	}
	return Term{}, &Problem{w, Ambiguous, hints}
}

// Fields returns the names of the fields that a text can use.
func (r Reading) Fields() (names []string) {
	for _, f := range r.Spec.Fields {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	}
	return names
}

// maxHints bounds the values that are named with a problem.
const maxHints = 12

func (r Reading) values(f *Field, part string) (all []string) {
	for _, c := range r.matching(f, part) {
		if all = append(all, c.Value); len(all) == maxHints {
			break
		}
	}
	return all
}

// value finds the value of a field that a text means: itself, a name or a label. If only a part
// of one name fits, that one; if several, all of them.
func (r Reading) value(f *Field, text string) (value string, several []string) {
	if text == "" {
		return "", nil
	}
	choices := r.Choices[f.Name]
	for _, same := range []func(Choice) bool{
		func(c Choice) bool { return c.Value == text },
		func(c Choice) bool { return strings.EqualFold(c.Value, text) },
	} {
		if i := slices.IndexFunc(choices, same); i >= 0 {
			return choices[i].Value, nil
		}
	}
	value, several = r.oneOf(f, func(c Choice) bool {
		return strings.EqualFold(c.Name, text) || r.hasLabel(f, c, text, strings.EqualFold)
	})
	if value != "" || len(several) > 0 || utf8.RuneCountInString(text) < leastPart {
		return value, several
	}
	return r.oneOf(f, func(c Choice) bool { return c.Name != "" && contains(c.Name, text) })
}

// labelled finds the value of a field of whose label a text is a part; if there are several, all
// of them.
func (r Reading) labelled(f *Field, text string) (value string, several []string) {
	if utf8.RuneCountInString(text) < leastPart {
		return "", nil
	}
	return r.oneOf(f, func(c Choice) bool { return r.hasLabel(f, c, text, contains) })
}

// oneOf returns the only choice of a field that matches; if several do, as many of them as are
// named with a problem.
func (r Reading) oneOf(f *Field, matches func(Choice) bool) (value string, several []string) {
	for _, c := range r.Choices[f.Name] {
		if matches(c) {
			several = append(several, c.Value)
		}
	}
	if len(several) == 1 {
		return several[0], nil
	}
	return "", several[:min(len(several), maxHints)]
}

// leastPart is how many characters of a name stand for it.
const leastPart = 2

func contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// hasLabel reports whether a label of a choice matches a text.
func (r Reading) hasLabel(f *Field, c Choice, text string, match func(label, text string) bool) bool {
	return r.Labels != nil && slices.ContainsFunc(r.Labels(f.Name, c.Value), func(label string) bool { return match(label, text) })
}

// matching returns the choices of a field that contain a text in value, name or label.
func (r Reading) matching(f *Field, part string) (all []Choice) {
	for _, c := range r.Choices[f.Name] {
		if contains(c.Value, part) || contains(c.Name, part) || r.hasLabel(f, c, part, contains) {
			all = append(all, c)
		}
	}
	return all
}

// Proposal is one way in which the last word of a text can go on.
type Proposal struct {
	Text  string // of the whole filter with it
	Field string // whose value is proposed; "" = a field is
	Choice
}

// Propose returns how the last word of a text can go on, at most max ways: with a field, or with
// a value of its field. A text that ends with a space begins a new word.
func (r Reading) Propose(text string, max int) (all []Proposal) {
	words := Words(text)
	var last Word
	before := text
	if n := len(words); n > 0 && strings.HasSuffix(text, words[n-1].Text) {
		last = words[n-1]
		before = strings.TrimSuffix(text, last.Text)
	}
	add := func(p Proposal) {
		if len(all) < max {
			all = append(all, p)
		}
	}
	if last.Field != "" {
		if f := r.Field(last.Field); f != nil {
			for _, c := range r.matching(f, last.Value) {
				add(Proposal{before + last.Field + ":" + quote(c.Value) + " ", f.Name, c})
			}
		}
		return all
	}
	for i := range r.Spec.Fields {
		f := &r.Spec.Fields[i]
		if !f.Hidden && (contains(f.Name, last.Value) || r.isAlias(f.Name, last.Value)) {
			add(Proposal{before + f.Name + ":", "", Choice{Value: f.Name}})
		}
	}
	if utf8.RuneCountInString(last.Value) < leastPart {
		return all
	}
	for i := range r.Spec.Fields {
		f := &r.Spec.Fields[i]
		if f.Hidden {
			continue
		}
		for _, c := range r.matching(f, last.Value) {
			add(Proposal{before + f.Name + ":" + quote(c.Value) + " ", f.Name, c})
		}
	}
	return all
}

func (r Reading) isAlias(field, text string) bool {
	return text != "" && r.Alias != nil && slices.Contains(r.Alias(strings.ToLower(text)), field)
}

// ReadText makes terms of words; each field may be given once.
func (r Reading) ReadText(words []Word) (terms []Term, problems []Problem) {
	for _, w := range words {
		t, problem := r.Term(w)
		switch {
		case problem != nil:
			problems = append(problems, *problem)
		case slices.ContainsFunc(terms, func(o Term) bool { return o.Name == t.Name }):
			problems = append(problems, Problem{Word: w, Fault: Repeated})
		default:
			terms = append(terms, t)
		}
	}
	return terms, problems
}

// NewReading reads the choices of a list's fields.
func NewReading(ctx context.Context, s *Spec, q bun.IDB) (Reading, error) {
	choices, err := s.Suggestions(ctx, q)
	return Reading{Spec: s, Choices: choices}, err
}
