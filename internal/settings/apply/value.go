package apply

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/base/textlimit"
	"backstop/internal/settings"

	"gopkg.in/yaml.v3"
)

// value is a place in the file: its path, and its node or nil if the file has no value there.
type value struct {
	node *yaml.Node
	line int // of the node, or of its parent
	path string
	all  *problems
	bad  bool // it already has a problem: further ones are left out
}

func (v value) wrong(format string, args ...any) {
	if !v.bad {
		v.all.add(v.line, v.path, format, args...)
	}
}

// given reports whether the file has a value here; null is no value.
func (v value) given() bool { return v.node != nil }

var yamlLine = regexp.MustCompile(`line (\d+)`)

// parse reads the file's single document. Problems do not contain the YAML library's own
// errors: these may quote the text, which may be a secret.
func parse(text string, all *problems) value {
	top := value{line: 1, all: all}
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var document, more yaml.Node
	err := decoder.Decode(&document)
	switch {
	case errors.Is(err, io.EOF):
		return top
	case err != nil:
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
			top.line, _ = strconv.Atoi(m[1])
		}
		top.wrong("not valid YAML here or just before: fix it, or put the value in quotes")
		return top
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		top.wrong("the file contains more than one document: remove everything from the second --- on")
		return top
	}
	return top.child(document.Content[0], "")
}

// child returns the value at a node. Aliases, merge keys and tags, which YAML parsers read
// differently, are refused.
func (v value) child(n *yaml.Node, path string) value {
	c := value{node: n, line: n.Line, path: path, all: v.all}
	switch {
	case n.Kind == yaml.AliasNode:
		c.wrong("aliases (*name) are not supported: write the value out")
		c.node, c.bad = nil, true
	case n.Style&yaml.TaggedStyle != 0:
		c.wrong("tags (!name) are not supported: leave the tag out")
		c.node, c.bad = nil, true
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		c.node = nil
	}
	return c
}

// object reads a set of named fields. Unknown and duplicate names are problems; if known is
// empty, all names are accepted.
func (v value) object(known ...string) object {
	o := object{value: v, fields: map[string]value{}}
	if !v.given() {
		return o
	}
	if v.node.Kind != yaml.MappingNode {
		v.wrong("%s", strings.TrimSuffix("must be a set of named fields: "+strings.Join(known, ", "), ": "))
		o.node, o.bad = nil, true
		return o
	}
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		key := v.node.Content[i]
		path := join(v.path, textlimit.Clip(key.Value, maxShown))
		switch _, twice := o.fields[key.Value]; {
		case known != nil && !slices.Contains(known, key.Value):
			v.all.add(key.Line, path, "unknown field; known fields are %s", strings.Join(known, ", "))
		case twice:
			v.all.add(key.Line, path, "set twice: keep one of them")
		default:
			o.fields[key.Value] = v.child(v.node.Content[i+1], path)
			o.names = append(o.names, key.Value)
		}
	}
	return o
}

// object is a set of named fields of the file.
type object struct {
	value
	fields map[string]value
	names  []string // in the order of the file
}

// at returns the named field; a missing field has the line of its object.
func (o object) at(name string) value {
	if f, ok := o.fields[name]; ok {
		return f
	}
	return value{line: o.line, path: join(o.path, name), all: o.all, bad: o.bad}
}

// leftOut reports whether the file does not have the field, so that it keeps its value. A
// field that is null returns to its default.
func (o object) leftOut(name string) bool {
	_, named := o.fields[name]
	return !named
}

// list returns the entries of a list.
func (v value) list() []value {
	if !v.given() {
		return nil
	}
	if v.node.Kind != yaml.SequenceNode {
		v.wrong("must be a list: lines that begin with a dash, or [a, b]")
		return nil
	}
	entries := make([]value, len(v.node.Content))
	for i, n := range v.node.Content {
		entries[i] = v.child(n, fmt.Sprintf("%s[%d]", v.path, i))
	}
	return entries
}

// text returns a scalar as written, even if it looks like a number.
func (v value) text() string {
	if !v.given() {
		return ""
	}
	if v.node.Kind != yaml.ScalarNode {
		v.wrong("must be a single value, not a list or a set of fields")
		return ""
	}
	return v.node.Value
}

// peek returns the text, or "" without adding a problem.
func (v value) peek() string {
	if !v.given() || v.node.Kind != yaml.ScalarNode {
		return ""
	}
	return v.node.Value
}

// secret returns a required text, or the text of the file in "file:PATH".
func (v value) secret(files *keyFiles) string {
	text := v.text()
	if path, isFile := strings.CutPrefix(text, filePrefix); isFile {
		var err error
		if text, err = files.read(path); err != nil {
			v.wrong("%v", err)
			return ""
		}
	}
	if text == "" && !v.all.covers(v.path) {
		v.wrong("missing")
	}
	return text
}

// stored is secret in the form in which it is stored: hashed, or to be sealed.
func (v value) stored(files *keyFiles, hashed bool) settings.Secret {
	if s, ok := files.keeps(v.peek()); ok {
		return s
	}
	text := v.secret(files)
	if files.kept != nil && strings.HasPrefix(text, keptPrefix) {
		v.wrong("no such secret is stored: give the value itself")
	}
	if hashed && text != "" {
		return settings.NewAPIKey(text)
	}
	return settings.NewSecret(text)
}

// quiet reads an object without adding problems.
func (v value) quiet() object {
	v.all = newProblems("")
	return v.object()
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// maxShown bounds a wrong text in a message, in bytes, so that it does not fill the screen.
const maxShown = 60
