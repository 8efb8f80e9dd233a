package apply

import (
	"bytes"
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	"backstop/internal/base/field"
	"backstop/internal/base/text"
	"backstop/internal/settings"
	"backstop/internal/supplier"

	"gopkg.in/yaml.v3"
)

// Input is how a form asks for a field.
type Input int

// Inputs.
const (
	Line     Input = iota
	Block          // a text of several lines
	Lines          // an entry per line; a PEM block is one entry
	Choice         // one of Choices
	YAML           // what is no simple input, as the apply file has it
	Password       // a secret, which is never shown
	Signing        // signing secrets, with Overlap
)

// FormField is one input of the form of an object.
type FormField struct {
	Path        string // in the object, such as "notify.timeout"
	Group       string // the field that it is a part of: "notify" or "config"
	Label, Help text.Text
	Input       Input
	Choices     []string
	Default     string // if it is empty
	Example     string
	Accepts     string // bounds
	Required    bool
	Waits       bool   // a change may wait for a second person
	Value       string // as stored; "" for a secret
	Stored      int    // number of stored secrets

	words []string // of Lines: a single one of these is no list
	plain bool     // of a config: a value that keeps its type
	list  bool     // of a config: a list
}

// Overlap is the field of a form that says which signing secrets remain beside a new one; its values
// follow.
const (
	Overlap     = "signing_secret_overlap"
	OverlapKeep = "keep" // the newest stored one
	OverlapEnd  = "end"  // without a new one: only the newest stored one
)

// Form returns the inputs of an object: those of its section and, of a supplier, those of its kind, which
// a new one does not have yet.
func (s Section) Form(e *Entry, kind string, kinds supplier.Kinds) []FormField {
	f := &former{entry: e}
	f.fields("", s, settings.Fields(s.Type))
	if s.Kind == "supplier" {
		if of, err := kinds.Find(cmp.Or(kind, scalarAt(e.Fields, "kind"))); err == nil {
			f.config("config", of.Fields)
		}
	}
	return f.all
}

// former lists the inputs of one object.
type former struct {
	entry *Entry
	all   []FormField
}

func (f *former) fields(group string, s Section, fields []settings.Field) {
	for _, x := range fields {
		at := join(group, x.Word)
		switch {
		case group == "" && s.Identifies(x.Word), x.Type == reflect.TypeFor[map[string]any](), s.Kind == "supplier" && x.Word == "kind":
			continue
		case x.Type == reflect.TypeFor[settings.Notify]():
			f.fields(at, s, settings.Fields(x.Type))
			continue
		}
		in := FormField{
			Path: at, Group: group, Label: x.Label, Help: x.Help, Default: x.Default, Example: x.Example, Accepts: x.Accepts(),
			Required: x.Need != "", Waits: x.NeedsApproval,
		}
		in.Input, in.Choices, in.words = inputOf(x)
		f.add(in)
	}
}

// inputOf returns the input that fits a field.
func inputOf(x settings.Field) (in Input, choices, words []string) {
	switch x.Type {
	case reflect.TypeFor[bool]():
		return Choice, []string{"true", "false"}, nil
	case reflect.TypeFor[settings.Secret]():
		return Password, nil, nil
	case reflect.TypeFor[[]settings.Secret]():
		return Signing, nil, nil
	case reflect.TypeFor[settings.Followed]():
		return Lines, nil, []string{"all"}
	case reflect.TypeFor[settings.Schedule]():
		return Lines, nil, []string{"day", "quick"}
	}
	switch kind := x.Type.Kind(); {
	case len(x.OneOf) > 0:
		return Choice, x.OneOf, nil
	case kind == reflect.Slice && !structs(x.Type):
		return Lines, nil, nil
	case structs(x.Type), kind == reflect.Struct, kind == reflect.Map:
		return YAML, nil, nil
	}
	return Line, nil, nil
}

func (f *former) config(group string, fields []supplier.Field) {
	for _, x := range fields {
		at := join(group, x.Name)
		if x.Fields != nil {
			f.config(at, x.Fields)
			continue
		}
		in := FormField{
			Path: at, Group: "config", Label: x.Label, Help: x.Help, Default: x.Default, Example: x.Example, Required: x.Required, Waits: true,
			Choices: x.Choices, plain: x.Kind == field.Flag || x.Kind == field.Number, list: x.Kind == field.List,
		}
		switch {
		case x.Secret:
			in.Input = Password
		case x.Kind == field.List:
			in.Input = Lines
		case x.Kind == field.Flag:
			in.Input, in.Choices = Choice, []string{"true", "false"}
		case len(x.Choices) > 0:
			in.Input = Choice
		case x.Kind == field.Text:
			in.Input = Block
		}
		f.add(in)
	}
}

// add fills in what is stored.
func (f *former) add(in FormField) {
	is := nodeAt(f.entry.Fields, in.Path)
	switch {
	case in.Input == Password || in.Input == Signing:
		in.Stored = len(f.entry.secretsOf(in.Path))
	case is == nil || is.ShortTag() == "!!null":
	case is.Kind == yaml.ScalarNode && in.Input != YAML:
		in.Value = is.Value
	case in.Input == Lines:
		in.Value = linesOf(is)
	default:
		in.Value = yamlText(is)
	}
	f.all = append(f.all, in)
}

// secretsOf returns the stored secrets of a field, newest first.
func (e *Entry) secretsOf(path string) (fields []string) {
	for _, field := range e.Secrets {
		if rest, ok := strings.CutPrefix(field, path); ok && (rest == "" || rest[0] == '_') {
			fields = append(fields, field)
		}
	}
	return fields
}

func linesOf(list *yaml.Node) string {
	var lines []string
	for _, e := range list.Content {
		lines = append(lines, strings.TrimSpace(e.Value))
	}
	return strings.Join(lines, "\n")
}

func yamlText(n *yaml.Node) string {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(n); err != nil {
		return ""
	}
	return strings.TrimSpace(b.String())
}

// nodeAt returns the value at a path; nil = none.
func nodeAt(n *yaml.Node, path string) *yaml.Node {
	for name := range strings.SplitSeq(path, ".") {
		i := indexOf(n, name)
		if i < 0 {
			return nil
		}
		n = n.Content[i]
	}
	return n
}

func indexOf(n *yaml.Node, name string) int {
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == name {
				return i + 1
			}
		}
	}
	return -1
}

func scalarAt(n *yaml.Node, path string) string {
	if is := nodeAt(n, path); is != nil && is.Kind == yaml.ScalarNode {
		return is.Value
	}
	return ""
}

// setAt sets the value at a path, and makes the sets of fields above it.
func setAt(n *yaml.Node, path string, v *yaml.Node) {
	name, rest, nested := strings.Cut(path, ".")
	i := indexOf(n, name)
	if i < 0 {
		put(n, name, mapping())
		i = len(n.Content) - 1
	}
	if !nested {
		n.Content[i] = v
		return
	}
	if n.Content[i].Kind != yaml.MappingNode {
		n.Content[i] = mapping()
	}
	setAt(n.Content[i], rest, v)
}

// removeAt removes the value at a path.
func removeAt(n *yaml.Node, path string) {
	if cut := strings.LastIndex(path, "."); cut >= 0 {
		if n = nodeAt(n, path[:cut]); n == nil {
			return
		}
		path = path[cut+1:]
	}
	if i := indexOf(n, path); i >= 0 {
		n.Content = slices.Delete(n.Content, i-1, i+1)
	}
}

// Typed is what was typed into a form, by path. A field that is missing stays as it is stored.
type Typed map[string]string

// Edit returns the edit of an object by what was typed into its form. Errors: *Invalid.
func (e *Entry) Edit(form []FormField, typed Typed) (Edit, error) {
	entry := mapping()
	if config := nodeAt(e.Fields, "config"); config != nil && slices.ContainsFunc(slices.Collect(maps.Keys(typed)), isConfig) {
		setAt(entry, "config", config) // it is replaced as a whole
	}
	for _, f := range form {
		is, given := typed[f.Path]
		switch {
		case f.Input == Signing:
			e.sign(entry, is, typed[Overlap])
		case !given, f.Input == Password && is == "":
		case is == "" && isConfig(f.Path):
			removeAt(entry, f.Path)
		default:
			v, err := f.node(is)
			if err != nil {
				return Edit{}, err
			}
			setAt(entry, f.Path, v)
		}
	}
	if kind, given := typed["kind"]; given {
		setAt(entry, "kind", node(kind))
	}
	return Edit{Object: e.Object, Entry: yamlText(entry)}, nil
}

func isConfig(path string) bool { return strings.HasPrefix(path, "config.") }

// sign sets the signing secrets. What is stored is referred to by its field.
func (e *Entry) sign(entry *yaml.Node, typed, overlap string) {
	stored := e.secretsOf("signing_secret")
	switch {
	case typed != "" && overlap == OverlapKeep && len(stored) > 0:
		setAt(entry, "signing_secrets", node([]string{typed, keptPrefix + stored[0]}))
	case typed != "":
		setAt(entry, "signing_secret", node(typed))
	case overlap == OverlapEnd && len(stored) > 1:
		setAt(entry, "signing_secret", node(keptPrefix+stored[0]))
	}
}

// node returns what was typed as the apply file has it; null = the default.
func (f FormField) node(typed string) (*yaml.Node, error) {
	switch {
	case typed == "":
		return node(nil), nil
	case f.Input == YAML:
		var document yaml.Node
		if err := yaml.Unmarshal([]byte(typed), &document); err != nil || document.Kind != yaml.DocumentNode {
			return nil, invalidFields(f.Path, "not valid YAML: fix it, or put the value in quotes")
		}
		return document.Content[0], nil
	case f.Input == Lines && !slices.Contains(f.words, typed), f.list:
		return node(entriesOf(typed)), nil
	case f.plain, f.Input == Choice && f.Choices[0] == "true", f.Input == Line && f.Group != "config" && isNumber(typed):
		return &yaml.Node{Kind: yaml.ScalarNode, Value: typed}, nil
	}
	return node(typed), nil
}

func isNumber(text string) bool { return strings.Trim(text, "0123456789") == "" }

// entriesOf splits lines into entries. A PEM block is one entry.
func entriesOf(typed string) []string {
	all, inside := []string{}, false
	for line := range strings.Lines(typed) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case inside:
			all[len(all)-1] += "\n" + line
		default:
			all = append(all, line)
		}
		if line != "" {
			inside = strings.HasPrefix(line, "-----BEGIN") || inside && !strings.HasPrefix(line, "-----END")
		}
	}
	return all
}
