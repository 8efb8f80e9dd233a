package apply

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"backstop/internal/base/text"
	"backstop/internal/settings"

	"gopkg.in/yaml.v3"
)

// Section is a list of the apply file whose objects are edited one by one, or the rules of decisions.
// Opening balances are none: they are booked once.
type Section struct {
	Word string       // in the file: "merchants"
	Kind string       // of its objects: "merchant"
	Type reflect.Type // of an object
	One  bool         // it is a single object, without a code

	Label, Help text.Text
}

// Sections are all sections, in the order of the file.
var Sections = sections()

func sections() (all []Section) {
	for _, f := range settings.Fields(reflect.TypeFor[settings.File]()) {
		s := Section{Word: f.Word, Type: f.Type.Elem(), One: f.Type.Kind() == reflect.Pointer, Label: f.Label, Help: f.Help}
		s.Kind = strings.ToLower(s.Type.Name())
		switch s.Type {
		case reflect.TypeFor[settings.Account]():
			continue
		case reflect.TypeFor[settings.PayoutAccount]():
			s.Kind = settings.PayoutAccountKind
		}
		all = append(all, s)
	}
	return all
}

// SectionOf returns the section with this word.
func SectionOf(word string) (Section, bool) {
	i := slices.IndexFunc(Sections, func(s Section) bool { return s.Word == word })
	if i < 0 {
		return Section{}, false
	}
	return Sections[i], true
}

// Object identifies the object with a code; that of a payout account is "MERCHANT:CODE".
func (s Section) Object(code string) settings.Object {
	if s.Kind == settings.PayoutAccountKind {
		code = strings.Replace(code, ":", " ", 1)
	}
	return settings.Object{Kind: s.Kind, ID: code}
}

// Code is the opposite of Object.
func (s Section) Code(o settings.Object) string {
	if s.Kind == settings.PayoutAccountKind {
		return strings.Replace(o.ID, " ", ":", 1)
	}
	return o.ID
}

// ObjectOf returns the object with an id as in the audit, such as "merchant m1", and its section.
func ObjectOf(id string) (s Section, o settings.Object, ok bool) {
	kind, code, _ := strings.Cut(id, " ")
	i := slices.IndexFunc(Sections, func(s Section) bool { return s.Kind == kind })
	if i < 0 || Sections[i].One != (code == "") {
		return s, o, false
	}
	return Sections[i], settings.Object{Kind: kind, ID: code}, true
}

// identity are the fields that the code of an object consists of.
func (s Section) identity(o settings.Object) (fields, values []string) {
	for _, f := range settings.Fields(s.Type) {
		if f.Identity {
			fields = append(fields, f.Word)
		}
	}
	values = strings.SplitN(o.ID, " ", len(fields))
	return fields, append(values, make([]string, len(fields)-len(values))...)
}

// Identifies reports whether a field is part of the code, which never changes.
func (s Section) Identifies(field string) bool {
	fields, _ := s.identity(settings.Object{})
	return slices.Contains(fields, field)
}

// Entry is one object as the apply file has it. A stored secret is written as "stored:FIELD".
type Entry struct {
	Object  settings.Object
	Version int64 // of the settings
	Stored  bool  // false = the defaults of a new object
	Fields  *yaml.Node
	Secrets []string // fields of the stored secrets, such as "notify.endpoints.backup.client_key"
	Unread  []string // fields whose stored value cannot be read
	secrets map[string]settings.Secret
}

// ReadEntry reads an object, or returns the defaults of a new one.
func ReadEntry(ctx context.Context, env Env, s Section, code string) (*Entry, error) {
	stored, err := settings.Read(ctx, env.settings())
	if err != nil {
		return nil, err
	}
	return env.entry(ctx, stored, s, s.Object(code))
}

func (e Env) entry(ctx context.Context, stored *settings.Stored, s Section, o settings.Object) (*Entry, error) {
	is, fresh, err := e.object(ctx, stored, s, o)
	if err != nil {
		return nil, err
	}
	entry := &Entry{Object: o, Version: stored.Version(), Stored: !is.IsNil(), secrets: map[string]settings.Secret{}}
	if is.IsNil() {
		is = fresh
	}
	if u, ok := is.Interface().(interface{ Unread() []string }); ok {
		entry.Unread = u.Unread()
	}
	x := &exporter{object: o, keep: true}
	entry.Fields = x.fields("", is.Elem())
	for _, r := range x.refs {
		entry.Secrets = append(entry.Secrets, r.field)
		entry.secrets[r.field] = r.secret
	}
	return entry, nil
}

// object returns the stored object, a nil pointer if there is none, and a new one.
func (e Env) object(ctx context.Context, stored *settings.Stored, s Section, o settings.Object) (is, fresh reflect.Value, err error) {
	switch s.Kind {
	case "supplier":
		return reflect.ValueOf(stored.Supplier(o.ID)), reflect.ValueOf(stored.NewSupplier(o.ID)), nil
	case "merchant":
		return reflect.ValueOf(stored.Merchant(o.ID)), reflect.ValueOf(stored.NewMerchant(o.ID)), nil
	case "subscription":
		return reflect.ValueOf(stored.Subscription(o.ID)), reflect.ValueOf(stored.NewSubscription(o.ID)), nil
	case settings.PayoutAccountKind:
		merchant, code, _ := strings.Cut(o.ID, " ")
		return reflect.ValueOf(stored.PayoutAccount(merchant, code)), reflect.ValueOf(settings.NewPayoutAccount(merchant, code)), nil
	case "role":
		return reflect.ValueOf(stored.Role(o.ID)), reflect.ValueOf(settings.NewRole(o.ID)), nil
	case "sku":
		known, err := settings.ReadStock(ctx, e.DB, []string{o.ID})
		return reflect.ValueOf(known[o.ID]), reflect.ValueOf(&settings.SKU{SKU: o.ID}), err
	}
	return reflect.ValueOf(stored.Approval()), reflect.ValueOf(stored.Approval()), nil
}

// Codes returns the codes of all objects of a section.
func Codes(ctx context.Context, env Env, s Section) (codes []string, err error) {
	stored, err := settings.Read(ctx, env.settings())
	if err != nil {
		return nil, err
	}
	suppliers, merchants, subscriptions := stored.Codes()
	switch s.Kind {
	case "supplier":
		return suppliers, nil
	case "merchant":
		return merchants, nil
	case "subscription":
		return subscriptions, nil
	case "role":
		return stored.Roles(), nil
	case settings.PayoutAccountKind:
		for _, a := range stored.PayoutAccounts() {
			codes = append(codes, s.Code(a.Object()))
		}
	case "sku":
		all, err := settings.AllStock(ctx, env.DB)
		for _, sku := range all {
			codes = append(codes, sku.SKU)
		}
		return codes, err
	}
	return codes, nil
}

// SecretTimes returns when the stored secrets of an entry were set (Unix µs). One that was set before
// there was a history is missing.
func (e *Entry) SecretTimes(history []settings.HistoryRow) map[string]int64 {
	times := map[string]int64{}
	for _, field := range e.Secrets {
		i := slices.IndexFunc(history, func(r settings.HistoryRow) bool {
			return r.Field == "" || r.Field == strings.TrimSuffix(field, "_old") || strings.HasPrefix(field, r.Field+"_")
		})
		if i >= 0 {
			times[field] = history[i].At
		}
	}
	return times
}

// JSON returns the fields of an entry as JSON.
func (e *Entry) JSON() (json.RawMessage, error) { return json.Marshal(plainJSON(e.Fields)) }

// plainJSON returns a value as JSON would have it. Numbers keep their digits.
func plainJSON(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		fields := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			fields[n.Content[i].Value] = plainJSON(n.Content[i+1])
		}
		return fields
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, e := range n.Content {
			list[i] = plainJSON(e)
		}
		return list
	}
	switch tag := n.ShortTag(); {
	case tag == "!!null":
		return nil
	case tag == "!!bool":
		return n.Value == "true"
	case (tag == "!!int" || tag == "!!float") && json.Valid([]byte(n.Value)):
		return json.Number(n.Value)
	}
	return n.Value
}
