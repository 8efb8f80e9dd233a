package settings

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"backstop/internal/base/textlimit"
)

// Object identifies what is changed, such as "merchant m1".
type Object struct {
	Kind string // "supplier", "merchant", "subscription", "payout_account", "sku", "account", "role" or "approval"
	ID   string // its code; for an account, merchant and currency; for a payout account, merchant and code; "" = the only one of its kind
}

func (o Object) String() string { return strings.TrimSuffix(o.Kind+" "+o.ID, " ") }

// Change is one object before and after: *Supplier, *Merchant, *Subscription, *SKU,
// *Account, *PayoutAccount, *Role or *Approval. Before is nil for a new object.
type Change struct {
	Object        Object
	Before, After any
}

// NewChange returns a change to after. Before may be a nil pointer.
func NewChange[T any](o Object, before, after *T) Change {
	c := Change{Object: o, After: after}
	if before != nil {
		c.Before = before
	}
	return c
}

// Difference is one changed field. Old and New are written as in the apply file; for a secret
// only whether it is set, for a URL without login and query.
type Difference struct {
	Field    string // "notify.endpoints.backup.weight"
	Name     string // the field of the file: "notify.endpoints"
	Old, New string
	// Secrets are the new secrets, if the field holds any.
	Secrets []Secret
}

// none stands for a missing value.
const none = "none"

// enabledAgain is the name of a difference without a field.
const enabledAgain = "an address is enabled again"

// bookedOnce reports whether the object is stock or an opening balance, which are applied only
// once.
func (c Change) bookedOnce() bool {
	switch c.After.(type) {
	case *SKU, *Account:
		return true
	}
	return false
}

// Diff returns the differences, in the order of the file.
func (c Change) Diff() []Difference {
	if c.Before != nil && c.bookedOnce() {
		return nil
	}
	d := &differ{created: c.Before == nil}
	is := reflect.ValueOf(c.After).Elem()
	was := reflect.Zero(is.Type())
	if !d.created {
		was = reflect.ValueOf(c.Before).Elem()
	}
	switch before := c.Before.(type) {
	case *Supplier:
		d.unread = before.without(c.After.(*Supplier).unread)
	case *Merchant:
		d.unread = before.without(c.After.(*Merchant).unread)
	case *Subscription:
		d.unread = before.without(c.After.(*Subscription).unread)
		if slices.Contains(d.unread, "notify") {
			d.add("notify", "unreadable", "written anew") // the object's own fields include those of notify
			is, was = withoutNotify(is), withoutNotify(was)
		}
	}
	d.fields("", was, is)
	if before, ok := c.Before.(*Supplier); ok && len(d.found) == 0 && before.account != c.After.(*Supplier).account {
		d.add("account", before.account, c.After.(*Supplier).account) // the kind derives it differently now
	}
	for _, address := range c.reenabled() {
		d.found = append(d.found, Difference{Field: "address " + hidden(address), Name: enabledAgain, Old: "disabled", New: "enabled"})
	}
	return d.found
}

func withoutNotify(v reflect.Value) reflect.Value {
	s := v.Interface().(Subscription)
	s.Notify = Notify{}
	return reflect.ValueOf(s)
}

// reenabled returns the endpoints that were disabled before and are enabled after.
func (c Change) reenabled() []string {
	before, ok := c.Before.(interface{ Disabled() []string })
	if !ok {
		return nil
	}
	is := c.After.(interface{ Disabled() []string }).Disabled()
	return slices.DeleteFunc(slices.Clone(before.Disabled()), func(a string) bool { return slices.Contains(is, a) })
}

// differ collects differences.
type differ struct {
	created bool
	unread  []string
	found   []Difference
}

func (d *differ) add(field, old, is string) {
	d.found = append(d.found, Difference{Field: field, Name: fileField(field), Old: cmp.Or(old, none), New: cmp.Or(is, none)})
}

// fileField returns the field of the file that a path belongs to; fields of notify and config
// count as separate fields.
func fileField(path string) string {
	all := strings.SplitN(path, ".", 3)
	if len(all) > 1 && (all[0] == "notify" || all[0] == "config") {
		return all[0] + "." + all[1]
	}
	return all[0]
}

func (d *differ) fields(path string, was, is reflect.Value) {
	for _, f := range Fields(is.Type()) {
		if at := join(path, f.Word); slices.Contains(d.unread, at) {
			d.add(at, "unreadable", "written anew")
		} else if !f.Identity {
			d.field(f, at, f.Of(was), f.Of(is))
		}
	}
}

func (d *differ) field(f Field, path string, was, is reflect.Value) {
	switch now := is.Interface().(type) {
	case Secret:
		before := was.Interface().(Secret)
		if d.secrets(path, []Secret{before}, []Secret{now}); f.Form == "number" && !before.Same(now) {
			last := &d.found[len(d.found)-1]
			last.Old, last.New = cmp.Or(Masked(before.plain), none), cmp.Or(Masked(now.plain), none)
		}
	case []Secret:
		before, n := was.Interface().([]Secret), len(d.found)
		d.secrets(path, before, now)
		if len(d.found) > n && d.found[n].New == changed {
			d.found[n].New = rotated(before, now)
		}
	case map[string]Secret:
		before := was.Interface().(map[string]Secret)
		for _, name := range eitherKey(before, now) {
			d.secrets(join(path, name), []Secret{before[name]}, []Secret{now[name]})
		}
	case map[string]any:
		d.config(path, was.Interface(), now)
	case Notify, Breaker:
		d.fields(path, was, is)
	case []Endpoint:
		d.endpoints(path, was.Interface().([]Endpoint), now)
	default:
		same := reflect.DeepEqual(was.Interface(), is.Interface()) || is.Kind() == reflect.Slice && was.Len()+is.Len() == 0 &&
			f.Type != reflect.TypeFor[Followed]()
		if same && (!d.created || is.IsZero() && is.Kind() != reflect.Bool && f.Need == "") {
			return
		}
		old, text := show(f, was), show(f, is)
		if d.created {
			old = none
		}
		if old == text && !d.created {
			text += " (differs where it is not shown)"
		}
		if old != text {
			d.add(path, old, text)
		}
	}
}

func (d *differ) secrets(path string, was, is []Secret) {
	if slices.EqualFunc(was, is, Secret.Same) {
		return
	}
	has := func(all []Secret) bool { return slices.ContainsFunc(all, Secret.IsSet) }
	switch {
	case !has(was):
		d.add(path, "unset", "set")
	case !has(is):
		d.add(path, "set", "unset")
	default:
		d.add(path, "set", changed)
	}
	d.found[len(d.found)-1].Secrets = is
}

// What is shown of a secret that is replaced: of one of several that are valid together, also whether
// whoever checks by one of before still can.
const (
	changed  = "changed"
	overlaps = "changed, the old one stays valid"
	replaced = "changed, the old one ends at once"
	ends     = "the old one ends"
)

func rotated(was, is []Secret) string {
	among := func(all []Secret) func(Secret) bool {
		return func(s Secret) bool { return slices.ContainsFunc(all, s.Same) }
	}
	isNew := func(s Secret) bool { return !among(was)(s) }
	switch {
	case !slices.ContainsFunc(is, isNew):
		return ends
	case slices.ContainsFunc(was, among(is)):
		return overlaps
	}
	return replaced
}

// config compares a supplier's config, which may contain secrets.
func (d *differ) config(path string, was, is any) {
	if before, ok := was.(map[string]any); ok {
		if now, ok := is.(map[string]any); ok {
			for _, name := range eitherKey(before, now) {
				d.config(join(path, name), before[name], now[name])
			}
			return
		}
	}
	before, after := secretsOf(was), secretsOf(is)
	switch {
	case len(before)+len(after) > 0:
		d.secrets(path, before, after)
	case !reflect.DeepEqual(meaning(was), meaning(is)):
		d.add(path, jsonText(was), jsonText(is))
	}
}

// secretsOf returns the secrets in a config value: the value itself, or the entries of its
// list.
func secretsOf(v any) (all []Secret) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, e := range list {
		if s, ok := e.(Secret); ok {
			all = append(all, s)
		}
	}
	return all
}

// meaning returns a config value in canonical form, because PostgreSQL rewrites JSON.
func meaning(v any) (is any) {
	raw, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(raw, &is)
	}
	if err != nil {
		return v
	}
	return is
}

func jsonText(v any) string {
	if v == nil {
		return ""
	}
	if text, ok := v.(string); ok {
		return shown(text)
	}
	raw, _ := json.Marshal(v)
	return shown(string(raw))
}

// endpoints compares endpoints by name.
func (d *differ) endpoints(path string, was, is []Endpoint) {
	find := func(all []Endpoint, name string) reflect.Value {
		i := slices.IndexFunc(all, func(e Endpoint) bool { return e.Name == name })
		if i < 0 {
			return reflect.ValueOf(Endpoint{})
		}
		return reflect.ValueOf(all[i])
	}
	names := func(all []Endpoint) (names []string) {
		for _, e := range all {
			names = append(names, e.Name)
		}
		return names
	}
	before, now := names(was), names(is)
	for _, name := range now {
		d.fields(join(path, name), find(was, name), find(is, name))
	}
	for _, name := range before {
		if !slices.Contains(now, name) {
			d.add(join(path, name), "set", none)
		}
	}
	if kept := slices.DeleteFunc(slices.Clone(now), func(n string) bool { return !slices.Contains(before, n) }); !slices.IsSortedFunc(kept,
		func(a, b string) int {
			return slices.Index(before, a) - slices.Index(before, b)
		}) {
		d.add(path, Text(before), Text(now))
	}
}

// show formats a field's value for display.
func show(f Field, v reflect.Value) string {
	switch {
	case f.Form == "pem":
		if v.Len() == 0 {
			return ""
		}
		return fmt.Sprintf("PEM, sha256 %.8x", sha256.Sum256([]byte(v.String())))
	case f.Form == "url" && v.Kind() == reflect.String:
		return hidden(v.String())
	case f.Form == "url":
		var all []string
		for _, u := range v.Interface().([]string) {
			all = append(all, hidden(u))
		}
		return Text(all)
	}
	return shown(Text(v.Interface()))
}

// hidden returns a URL without login and query, which may contain a token.
func hidden(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "…"
	}
	if u.User != nil {
		u.User = url.User("…")
	}
	if u.RawQuery != "" {
		u.RawQuery = "…"
	}
	text, _ := url.PathUnescape(u.String())
	return text
}

// shown shortens a long text and keeps it on one line.
func shown(text string) string {
	is := text
	if strings.ContainsFunc(text, unicode.IsControl) {
		is = strconv.Quote(text)
	}
	if len(is) > maxHow {
		is = fmt.Sprintf("%s (sha256 %.8x)", textlimit.Clip(is, maxShown), sha256.Sum256([]byte(text)))
	}
	return is
}

func eitherKey[V any](a, b map[string]V) []string {
	keys := append(sortedKeys(a), sortedKeys(b)...)
	slices.Sort(keys)
	return slices.Compact(keys)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
