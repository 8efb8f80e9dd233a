package text

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Code is a text that rows store as its key and the arguments for its placeholders.
type Code struct {
	Key string
	Text
}

// Codes are the texts that a package stores in rows. The zero value is ready to use.
type Codes struct{ all []Code }

// New adds a code. Each key begins with the name of the package that declares it.
func (c *Codes) New(key string, t Text) Code {
	code := Code{key, t}
	c.all = append(c.all, code)
	return code
}

// Say returns the code with its arguments. A Code among them is formatted in the same
// language.
func (c Code) Say(args ...any) Message {
	s := Message{Code: c.Key, text: c.Text}
	for _, arg := range args {
		if inner, ok := arg.(Code); ok {
			s.Args = append(s.Args, codeMark+inner.Key)
			s.inner = append(s.inner, inner)
			continue
		}
		s.Args = append(s.Args, fmt.Sprint(arg))
	}
	return s
}

// codeMark is the prefix of an argument that is itself a code.
const codeMark = "@"

// Message is a code with its arguments, as rows store it.
type Message struct {
	Code string   `json:"code,omitempty"`
	Args []string `json:"args,omitempty"`

	text  Text   // zero if the message was read from a row
	inner []Code // the codes among the arguments; none if it was read from a row
}

// Error returns the text in English, or the code and its arguments if the message was read
// from a row.
func (s Message) Error() string {
	known := Catalog{s.Code: s.text}
	for _, c := range s.inner {
		known[c.Key] = c.Text
	}
	return known.Say(s, "en", nil)
}

// Map returns the message with every argument changed.
func (s Message) Map(change func(arg string) string) Message {
	s.Args = slices.Clone(s.Args)
	for i, arg := range s.Args {
		s.Args[i] = change(arg)
	}
	return s
}

// Of returns the Message that an error wraps; the zero Message if there is none.
func Of(err error) Message {
	var s Message
	errors.As(err, &s)
	return s
}

// Catalog finds the texts of codes.
type Catalog map[string]Text

// Join returns one catalog of several packages' codes. It panics if a key is declared twice.
func Join(all ...*Codes) Catalog {
	c := Catalog{}
	for _, codes := range all {
		for _, code := range codes.all {
			if _, twice := c[code.Key]; twice {
				panic("text: two codes " + code.Key)
			}
			c[code.Key] = code.Text
		}
	}
	return c
}

// Say formats a message in a language; word, unless nil, may translate an argument. A code
// that the catalog does not have, such as that of a newer program, is shown unchanged.
func (c Catalog) Say(s Message, language string, word func(arg string) string) string {
	args := make([]any, len(s.Args))
	for i, arg := range s.Args {
		if inner, ok := strings.CutPrefix(arg, codeMark); ok {
			if t, ok := c[inner]; ok {
				args[i] = t.In(language)
				continue
			}
		}
		if word != nil {
			arg = word(arg)
		}
		args[i] = arg
	}
	t, ok := c[s.Code]
	if !ok {
		return strings.TrimSpace(s.Code + " " + strings.Join(s.Args, " "))
	}
	if len(args) == 0 {
		return t.In(language)
	}
	return fmt.Sprintf(t.In(language), args...)
}
