package apply

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"backstop/internal/settings"

	"gopkg.in/yaml.v3"
)

//go:generate go test . -run TestTheReferenceIsCurrent -update

const referenceIntro = "# The apply file\n\n" +
	"Generated from the code; change the tags in `internal/settings/objects.go` and run `go generate ./internal/command/apply`. [apply.schema.json](apply.schema.json) is the same for editors.\n\n" +
	"`backstop apply FILE` creates or changes what a YAML file declares; `-` is standard input. [Applying a file](operations.md#applying-a-file) says what becomes of entries and fields that a file leaves out. `--dry-run` only prints what would change, as it is and as it would be; of a secret, whether it is set or changes. It exits with 3 where anything would change, with 0 where nothing would, with 2 where the file is wrong.\n\n" +
	"`backstop export` writes such a file of what is stored. Each secret in it is a reference, and its first lines say to what.\n\n" +
	"Secrets, PEM and every value in a supplier's `config` may be `file:PATH`: the text of that file, without the line breaks at its end. A path is relative to the folder of the apply file, or to the working directory where that is standard input. A file has at most 8 MiB and 10,000 entries; one behind `file:` at most 64 KiB. Durations are written `300s`, `15m` or `1h30m`. A field without a default may be left out; the tables say what that means in a new entry.\n\n" +
	"## A whole file\n\n```yaml\n"

// markdown returns docs/apply.md.
func markdown() string {
	var b strings.Builder
	b.WriteString(referenceIntro)
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(example(reflect.TypeFor[settings.File]())); err != nil {
		panic(err) // the examples of the tags are wrong
	}
	b.WriteString("```\n")
	for _, section := range settings.Fields(reflect.TypeFor[settings.File]()) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", section.Word, section.Doc)
		table(&b, section.Type.Elem())
		if section.Word == "suppliers" {
			b.WriteString("\nWhat `config` holds, by kind: [wechatpay](../internal/supplier/wechatpay/README.md), [alipay](../internal/supplier/alipay/README.md), [stripe](../internal/supplier/stripe/README.md), [sortedparams](../internal/supplier/sortedparams/README.md).\n")
		}
		if section.Word == "merchants" {
			b.WriteString("\n### notify\n\nA subscription has these fields beside its own, without `notify`.\n\n")
			table(&b, reflect.TypeFor[settings.Notify]())
			b.WriteString("\n### breaker\n\n")
			table(&b, reflect.TypeFor[settings.Breaker]())
			b.WriteString("\n### endpoints\n\n[Other ways than a webhook](merchants.md#other-ways-than-a-webhook) says how the addresses and credentials of each channel look.\n\n")
			table(&b, reflect.TypeFor[settings.Endpoint]())
		}
	}
	return b.String()
}

func table(b *strings.Builder, t reflect.Type) {
	b.WriteString("| field | type | default | limits | meaning | example |\n|---|---|---|---|---|---|\n")
	fields := settings.Fields(t)
	for i, f := range fields {
		if t == reflect.TypeFor[settings.Subscription]() && f.Word == "urls" {
			fields = fields[:i] // those of notify have a table of their own
			break
		}
	}
	for _, f := range fields {
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s | `%s` |\n", f.Word, typeText(f), defaultText(f), cell(limits(f)), cell(f.Doc), cell(f.Example))
	}
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func defaultText(f settings.Field) string {
	switch {
	case f.Need != "":
		return "required"
	case f.Default != "":
		return "`" + f.Default + "`"
	case strings.HasPrefix(f.Empty, "BACKSTOP_"):
		return "`" + f.Empty + "`"
	}
	return f.Empty
}

func typeText(f settings.Field) string {
	switch f.Type {
	case reflect.TypeFor[bool]():
		return "true or false"
	case reflect.TypeFor[time.Duration]():
		return "duration"
	case reflect.TypeFor[settings.Rate]():
		return "rate per second"
	case reflect.TypeFor[int](), reflect.TypeFor[int64](), reflect.TypeFor[*int]():
		return "whole number"
	case reflect.TypeFor[settings.Secret](), reflect.TypeFor[[]settings.Secret]():
		return "secret"
	case reflect.TypeFor[map[string]settings.Secret]():
		return "named secrets"
	case reflect.TypeFor[map[string]any]():
		return "named values"
	case reflect.TypeFor[settings.Schedule]():
		return "preset, or list of durations"
	case reflect.TypeFor[settings.Followed]():
		return "`all`, or list of codes"
	case reflect.TypeFor[[]string](), reflect.TypeFor[[]netip.Prefix]():
		return "list of " + f.Many
	case reflect.TypeFor[[]settings.Endpoint]():
		return "list of [endpoints](#endpoints)"
	}
	if f.Type.Kind() == reflect.Struct {
		return "[fields](#" + f.Word + ")"
	}
	return "text"
}

func limits(f settings.Field) string {
	switch {
	case f.Form == "code":
		return "1 to 64 of a-z, 0-9, - and _, beginning with a letter or digit"
	case len(f.OneOf) > 0:
		return strings.Join(f.OneOf, ", ")
	}
	switch k := f.Type.Kind(); {
	case f.Max == 0:
		return ""
	case k == reflect.String || k == reflect.Struct:
		return fmt.Sprintf("at most %d bytes", f.Max)
	case f.Type == reflect.TypeFor[time.Duration]():
		return settings.Text(time.Duration(f.Min)) + " to " + settings.Text(time.Duration(f.Max))
	case k == reflect.Slice || k == reflect.Map:
		return fmt.Sprintf("at most %d", f.Max)
	}
	_, text, _ := strings.Cut(f.Accepts(), "from ")
	return text
}

// example is an object of which every field is set to its example. A digest is left out:
// only mails have one.
func example(t reflect.Type) *yaml.Node {
	n := mapping()
	for _, f := range settings.Fields(t) {
		child := f.Type
		if child.Kind() == reflect.Slice {
			child = child.Elem()
		}
		switch {
		case f.Word == "digest":
		case child.Kind() == reflect.Struct && len(settings.Fields(child)) > 0 && f.Type.Kind() == reflect.Slice:
			put(n, f.Word, &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{example(child)}})
		case child.Kind() == reflect.Struct && len(settings.Fields(child)) > 0:
			put(n, f.Word, example(child))
		default:
			var v yaml.Node
			if err := yaml.Unmarshal([]byte(f.Example), &v); err != nil {
				panic(fmt.Sprintf("the example of %s: %v", f.Word, err))
			}
			put(n, f.Word, v.Content[0])
		}
	}
	return n
}

// schema returns docs/apply.schema.json.
func schema() map[string]any {
	s := objectSchema(reflect.TypeFor[settings.File]())
	s["$schema"], s["title"] = "https://json-schema.org/draft/2020-12/schema", "Backstop's apply file"
	return s
}

func objectSchema(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, f := range settings.Fields(t) {
		s := fieldSchema(f)
		s["description"] = f.Doc
		if f.Default != "" && !strings.HasPrefix(f.Default, "BACKSTOP_") {
			s["description"] = f.Doc + " Default: " + f.Default + "."
		}
		if properties[f.Word] = s; f.Need != "" {
			required = append(required, f.Word)
		}
		if f.Word == "signing_secret" {
			properties["signing_secrets"] = map[string]any{"type": []string{"array", "null"}, "items": anyText(), "minItems": 1, "maxItems": 2, "description": "The new secret and the one before it, while it is replaced."}
		}
	}
	s := map[string]any{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"], s["type"] = required, "object"
	}
	return s
}

// anyText is any scalar: what stands without quotes and looks like a number is a text, too.
func anyText() map[string]any {
	return map[string]any{"type": []string{"string", "number", "boolean"}}
}

const durationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`

func fieldSchema(f settings.Field) map[string]any {
	s := map[string]any{}
	list := func(items map[string]any) map[string]any {
		s = map[string]any{"type": []string{"array", "null"}, "items": items}
		if f.Max > 0 {
			s["maxItems"] = f.Max
		}
		return s
	}
	duration := map[string]any{"type": "string", "pattern": durationPattern}
	switch f.Type {
	case reflect.TypeFor[bool]():
		s["type"] = "boolean"
	case reflect.TypeFor[time.Duration]():
		s = duration
	case reflect.TypeFor[settings.Rate]():
		s["type"], s["pattern"] = "string", "^[0-9]+/s$"
	case reflect.TypeFor[int](), reflect.TypeFor[int64](), reflect.TypeFor[*int]():
		s["type"], s["minimum"], s["maximum"] = "integer", f.Min, f.Max
	case reflect.TypeFor[map[string]settings.Secret]():
		s["type"], s["additionalProperties"], s["maxProperties"] = "object", anyText(), f.Max
	case reflect.TypeFor[map[string]any]():
		s["type"] = "object"
	case reflect.TypeFor[settings.Schedule]():
		s["anyOf"] = []any{map[string]any{"enum": []any{"day", "quick"}}, map[string]any{"type": "array", "items": duration, "minItems": 1, "maxItems": 50}, duration, map[string]any{"type": "null"}}
	case reflect.TypeFor[settings.Followed]():
		s["anyOf"] = []any{map[string]any{"enum": []any{"all"}}, map[string]any{"type": "array", "items": anyText(), "minItems": 1}, map[string]any{"type": "null"}}
	case reflect.TypeFor[[]string](), reflect.TypeFor[[]netip.Prefix]():
		return list(anyText())
	case reflect.TypeFor[[]settings.Secret](), reflect.TypeFor[settings.Secret]():
		s = anyText()
	default:
		switch {
		case f.Type.Kind() == reflect.Slice:
			return list(objectSchema(f.Type.Elem()))
		case f.Type.Kind() == reflect.Struct:
			return objectSchema(f.Type)
		case len(f.OneOf) > 0:
			words := []any{}
			for _, w := range f.OneOf {
				words = append(words, w)
			}
			return map[string]any{"enum": append(words, nil)}
		}
		if s = anyText(); f.Form == "code" {
			s["pattern"] = "^[a-z0-9][a-z0-9_-]{0,63}$"
		}
	}
	if types, ok := s["type"]; ok && f.Need == "" { // null goes back to the default
		switch types := types.(type) {
		case string:
			s["type"] = []string{types, "null"}
		case []string:
			s["type"] = append(types, "null")
		}
	}
	return s
}
