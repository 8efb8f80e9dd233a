package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"backstop/internal/fee"
	"backstop/internal/settings"

	"gopkg.in/yaml.v3"
)

// reference is a file: reference to a secret in an exported file.
type reference struct {
	path   string // relative to the exported file's folder
	object settings.Object
	field  string
	secret settings.Secret
}

// exporter writes stored settings as a file for apply.
type exporter struct {
	object settings.Object
	refs   []reference
	taken  map[string]bool
	only   []string // paths of the fields to write; nil = all
	keep   bool     // write secrets as references to what is stored
}

const exportIntro = ` Settings written by "backstop export", for "backstop apply".`

// Export writes all stored settings as an apply file. Instead of secrets it contains file:
// references, which its first lines list.
func Export(ctx context.Context, env Env, out io.Writer) error {
	stored, err := settings.Read(ctx, env.settings())
	if err != nil {
		return err
	}
	x := &exporter{taken: map[string]bool{}}
	top, err := x.file(ctx, env, stored)
	if err != nil {
		return err
	}
	comment := []string{exportIntro}
	if len(x.refs) > 0 {
		comment = append(comment,
			" It contains no secrets. Before you apply it, write each into a file at this path, relative to this file:")
		for _, r := range x.refs {
			comment = append(comment, fmt.Sprintf("   %s: %s of %s", r.path, r.field, r.object))
		}
	}
	entries := 0
	for i := 1; i < len(top.Content); i += 2 {
		if top.Content[i].Kind == yaml.SequenceNode {
			entries += len(top.Content[i].Content)
		}
	}
	if entries > maxEntries {
		comment = append(comment, fmt.Sprintf(" It has more than %d entries: split it before you apply it.", maxEntries))
	}
	if _, err := fmt.Fprintf(out, "#%s\n", strings.Join(comment, "\n#")); err != nil {
		return err
	}
	if len(top.Content) == 0 {
		return nil
	}
	e := yaml.NewEncoder(out)
	e.SetIndent(2)
	return errors.Join(e.Encode(top), e.Close())
}

func (x *exporter) file(ctx context.Context, env Env, stored *settings.Stored) (*yaml.Node, error) {
	suppliers, merchants, subscriptions := stored.Codes()
	var file settings.File
	for _, code := range suppliers {
		file.Suppliers = append(file.Suppliers, *stored.Supplier(code))
	}
	for _, code := range merchants {
		file.Merchants = append(file.Merchants, *stored.Merchant(code))
	}
	for _, code := range subscriptions {
		file.Subscriptions = append(file.Subscriptions, *stored.Subscription(code))
	}
	for _, a := range stored.PayoutAccounts() {
		file.PayoutAccounts = append(file.PayoutAccounts, *a)
	}
	for _, name := range stored.Roles() {
		file.Roles = append(file.Roles, *stored.Role(name))
	}
	var err error
	if file.SKUs, err = settings.AllStock(ctx, env.DB); err != nil {
		return nil, err
	}
	if file.Accounts, err = settings.AllOpenings(ctx, env.DB); err != nil {
		return nil, err
	}
	if stored.Declared() {
		file.Approval = stored.Approval()
	}
	top, v := mapping(), reflect.ValueOf(file)
	for _, section := range settings.Fields(v.Type()) {
		if section.Type.Kind() == reflect.Pointer {
			if one := section.Of(v); !one.IsNil() {
				x.object = settings.Object{Kind: section.Word}
				put(top, section.Word, x.fields("", one.Elem()))
			}
			continue
		}
		list, kind := &yaml.Node{Kind: yaml.SequenceNode}, strings.ToLower(section.Type.Elem().Name())
		for _, o := range section.Of(v).Seq2() {
			x.object = settings.Object{Kind: kind, ID: settings.Fields(o.Type())[0].Of(o).String()}
			if a, ok := o.Interface().(settings.PayoutAccount); ok {
				x.object = a.Object()
			}
			if u, ok := o.Interface().(interface{ Unread() []string }); ok && len(u.Unread()) > 0 {
				return nil, fmt.Errorf("%s: the stored values of %s cannot be read: apply the entry again", x.object,
					strings.Join(u.Unread(), ", "))
			}
			list.Content = append(list.Content, x.fields("", o))
		}
		if len(list.Content) > 0 {
			put(top, section.Word, list)
		}
	}
	return top, nil
}

// fields returns an object of the file. An unset field is left out or, if that would keep the
// stored value, null.
func (x *exporter) fields(path string, v reflect.Value) *yaml.Node {
	n := mapping()
	_, keeps := v.Interface().(settings.Notify)
	_, inline := v.Interface().(settings.Subscription)
	for _, f := range settings.Fields(v.Type()) {
		if !x.writes(join(path, f.Word)) {
			continue
		}
		is := f.Of(v)
		switch secrets, _ := is.Interface().([]settings.Secret); {
		case len(secrets) > 1:
			list := flow()
			for i, s := range secrets {
				list.Content = append(list.Content, x.secret(join(path, f.Word+[]string{"", "_old"}[i]), s))
			}
			put(n, f.Word+"s", list)
			continue
		case len(secrets) == 1:
			put(n, f.Word, x.secret(join(path, f.Word), secrets[0]))
			continue
		}
		if child := x.value(join(path, f.Word), f, is); child != nil {
			put(n, f.Word, child)
		} else if _, secret := is.Interface().([]settings.Secret); (keeps || inline) && !secret {
			put(n, f.Word, node(nil))
		}
	}
	return n
}

// writes reports whether a field is written: it is in only, or is a parent or child of a field
// in only.
func (x *exporter) writes(path string) bool {
	return x.only == nil || slices.ContainsFunc(x.only, func(at string) bool {
		return at == path || strings.HasPrefix(at, path+".") || strings.HasPrefix(path, at+".")
	})
}

// entry returns a file with one entry: the values that a change sets.
func (x *exporter) entry(c settings.Change) ([]byte, error) {
	entry := x.fields("", reflect.ValueOf(c.After).Elem())
	for _, section := range settings.Fields(reflect.TypeFor[settings.File]()) {
		if section.Type.Elem() != reflect.TypeOf(c.After).Elem() {
			continue
		}
		if section.Type.Kind() == reflect.Slice {
			entry = &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{entry}}
		}
		top := mapping()
		put(top, section.Word, entry)
		return yaml.Marshal(top)
	}
	return nil, fmt.Errorf("%s: the file has no such section", c.Object)
}

// value returns a field's value; nil if it is not set.
func (x *exporter) value(path string, f settings.Field, v reflect.Value) *yaml.Node {
	switch is := v.Interface().(type) {
	case settings.Secret:
		if !is.IsSet() {
			return nil
		}
		return x.secret(path, is)
	case map[string]settings.Secret:
		n := mapping()
		for _, name := range slices.Sorted(maps.Keys(is)) {
			put(n, name, x.secret(join(path, name), is[name]))
		}
		if len(is) == 0 && x.only == nil {
			return nil
		}
		return n
	case map[string]any:
		return x.config(path, is)
	case settings.Notify:
		return x.fields(path, v)
	case settings.Breaker:
		if is == (settings.Breaker{}) {
			return nil
		}
		return x.fields(path, v)
	case []settings.Endpoint:
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for i, e := range is {
			list.Content = append(list.Content, x.fields(join(path, e.Name), v.Index(i)))
		}
		return list
	case settings.Fee:
		if is == settings.NewFee() {
			return nil
		}
		n := x.fields(path, v)
		n.Style = yaml.FlowStyle
		return n
	case fee.PPM:
		return node(is.String())
	case []settings.TypedAbove, []settings.SecondAbove, []settings.MerchantFee, []settings.PayoutFee, []settings.Limit:
		list := flow()
		for _, e := range v.Seq2() {
			list.Content = append(list.Content, x.fields(path, e))
		}
		return list
	case settings.Followed:
		if is == nil {
			return node("all")
		}
		return node([]string(is))
	case settings.Schedule:
		if is.Name != "list" {
			return node(is.Name)
		}
		return node(is.Texts())
	case int:
		if is == 0 && f.Optional() {
			return nil
		}
		return node(is)
	case []string, bool, int64:
		return node(is)
	case time.Duration, settings.Rate, *int:
		if text := settings.Text(is); text != "" {
			return &yaml.Node{Kind: yaml.ScalarNode, Value: text}
		}
		return nil
	case string:
		if is == "" && f.Optional() {
			return nil
		}
		return node(is)
	}
	if v.Kind() == reflect.String {
		return node(v.String())
	}
	var texts []string // ranges
	for _, e := range v.Seq2() {
		texts = append(texts, fmt.Sprint(e.Interface()))
	}
	return node(texts)
}

// config returns a supplier's config, or a value within it.
func (x *exporter) config(path string, v any) *yaml.Node {
	switch is := v.(type) {
	case map[string]any:
		n := mapping()
		for _, name := range slices.Sorted(maps.Keys(is)) {
			put(n, name, x.config(join(path, name), is[name]))
		}
		return n
	case []any:
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for i, e := range is {
			list.Content = append(list.Content, x.config(fmt.Sprintf("%s_%d", path, i+1), e))
		}
		return list
	case settings.Secret:
		return x.secret(path, is)
	case fmt.Stringer: // a number, which keeps its digits
		return &yaml.Node{Kind: yaml.ScalarNode, Value: is.String()}
	}
	return node(v)
}

// maxFileName bounds a file name in bytes and leaves room for a suffix that makes it unique.
const maxFileName = 200

// secret returns a file: reference for a secret.
func (x *exporter) secret(field string, s settings.Secret) *yaml.Node {
	if x.keep {
		x.refs = append(x.refs, reference{object: x.object, field: field, secret: s})
		return node(keptPrefix + field)
	}
	name := strings.Map(func(c rune) rune {
		if c < 0x80 && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.", c)) {
			return c
		}
		return '_'
	}, x.object.Kind+"-"+x.object.ID+"."+field)
	name = name[:min(len(name), maxFileName)]
	path := "secrets/" + name
	for i := 2; x.taken[strings.ToLower(path)]; i++ {
		path = fmt.Sprintf("secrets/%s-%d", name, i)
	}
	x.taken[strings.ToLower(path)] = true // some file systems ignore case
	x.refs = append(x.refs, reference{path: path, object: x.object, field: field, secret: s})
	return node(filePrefix + path)
}

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode} }

func flow() *yaml.Node { return &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle} }

func put(to *yaml.Node, name string, v *yaml.Node) { to.Content = append(to.Content, node(name), v) }

// node returns a plain value; a list is written on one line.
func node(v any) *yaml.Node {
	n := new(yaml.Node)
	if err := n.Encode(v); err != nil {
		panic(err) // texts, numbers and lists of them can always be encoded
	}
	if n.Kind == yaml.SequenceNode {
		n.Style = yaml.FlowStyle
	}
	return n
}
