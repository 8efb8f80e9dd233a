package apply

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"

	"backstop/internal/base/field"
	"backstop/internal/settings"
	"backstop/internal/supplier"

	"gopkg.in/yaml.v3"
)

const referenceIntro = "# The apply file\n\n" +
	"Generated from the code; change the tags in `internal/settings/objects.go` and run `go generate ./internal/settings/apply`. [apply.schema.json](apply.schema.json) is the same as a JSON schema for editors.\n\n" +
	"`backstop apply FILE` creates or changes what a YAML file declares; `-` is standard input. [Applying a file](operations/settings.md#applying-a-file) describes how entries and fields that a file leaves out are treated. `--dry-run` only prints what would change: the old and new value of each field, or, for a secret, whether it is set or changes, and for a signing secret whether the old one stays valid. It exits with 3 if anything would change, with 0 if nothing would, and with 2 if the file is invalid.\n\n" +
	"`backstop export` writes the stored settings as such a file. Each secret in it is a reference to a file, and its first lines list these files.\n\n" +
	"Secrets, PEM and every value in a supplier's `config` may be `file:PATH`: the text of that file, without the line breaks at its end. A secret or key (except a private key in PEM or base64) with a blank, a line break or an invisible character, such as a no-break space or a byte order mark, is refused; headers and credentials may have blanks inside. A path is relative to the folder of the apply file, or to the working directory if the file is read from standard input. An apply file has at most 8 MiB and 10,000 entries; the file of a `file:PATH` has at most 64 KiB. Durations are written `300s`, `15m` or `1h30m`. A field without a default may be left out; the column *default* says what that means in a new entry.\n\n" +
	"## A whole file\n\n```yaml\n"

// markdown returns docs/apply.md, with the config of these kinds of suppliers.
func markdown(kinds supplier.Kinds) string {
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
			for _, kind := range kinds {
				fmt.Fprintf(&b, "\n### config of %[1]s\n\n[%[1]s](../internal/supplier/%[1]s/README.md) describes the protocol.\n\n%[2]s", kind.Name, fieldTable)
				configTable(&b, kind.Fields, "")
			}
			b.WriteString("\n### fees\n\n[Fees](funds.md#fees) describes how a fee is computed.\n\n")
			table(&b, reflect.TypeFor[settings.Fee]())
		}
		if section.Word == "merchants" {
			b.WriteString("\n### A merchant's fees\n\nThe entry for the order's supplier applies, else that for `*`.\n\n")
			table(&b, reflect.TypeFor[settings.MerchantFee]())
			b.WriteString(
				"\n### payout_fees\n\nThe entry for the payout's supplier applies, else that for `*`. A reversed payout returns its fee.\n\n")
			table(&b, reflect.TypeFor[settings.PayoutFee]())
			b.WriteString("\n### limits\n\nA currency without an entry has the defaults.\n\n")
			table(&b, reflect.TypeFor[settings.Limit]())
			b.WriteString("\n### notify\n\nA subscription has these fields directly, without `notify`.\n\n")
			table(&b, reflect.TypeFor[settings.Notify]())
			b.WriteString("\n### breaker\n\n")
			table(&b, reflect.TypeFor[settings.Breaker]())
			b.WriteString(
				"\n### endpoints\n\n[Other ways than a webhook](merchants.md#other-ways-than-a-webhook) describes the addresses and credentials of each channel.\n\n")
			table(&b, reflect.TypeFor[settings.Endpoint]())
		}
		if section.Word == "approval" {
			fmt.Fprintf(&b,
				"\nWith `apply: true`, changes of the following fields wait for a second person once there are orders; changes of `approval` always wait: %s. [Changes that wait](operations/settings.md#changes-that-wait) describes how.\n", waitingText())
			b.WriteString("\n### typed_above\n\n")
			table(&b, reflect.TypeFor[settings.TypedAbove]())
			b.WriteString("\n### second_above\n\n")
			table(&b, reflect.TypeFor[settings.SecondAbove]())
		}
	}
	return b.String()
}

// waitingText lists the fields whose changes wait, by section.
func waitingText() string {
	var texts []string
	last := ""
	for _, field := range settings.WaitingFields() {
		section, path, _ := strings.Cut(field, " ")
		if section != last {
			texts, last = append(texts, "of `"+section+"` `"+path+"`"), section
			continue
		}
		texts[len(texts)-1] += ", `" + path + "`"
	}
	return strings.Join(texts, "; ")
}

const fieldTable = "| field | type | default | limits | meaning | example |\n|---|---|---|---|---|---|\n"

func table(b *strings.Builder, t reflect.Type) {
	b.WriteString(fieldTable)
	fields := settings.Fields(t)
	for i, f := range fields {
		if t == reflect.TypeFor[settings.Subscription]() && f.Word == "urls" {
			fields = fields[:i] // the fields of notify have their own table
			break
		}
	}
	for _, f := range fields {
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s | `%s` |\n", f.Word, typeText(f), defaultText(f), cell(limits(f)), cell(f.Doc),
			cell(f.Example))
	}
}

// configTable writes the fields of a config; prefix is the path of a set of named fields.
func configTable(b *strings.Builder, fields []supplier.Field, prefix string) {
	for _, f := range fields {
		if f.Fields != nil {
			configTable(b, f.Fields, f.Name+".")
			continue
		}
		standard := f.Default
		switch {
		case f.Required:
			standard = "required"
		case standard != "":
			standard = "`" + standard + "`"
		}
		fmt.Fprintf(b, "| `%s%s` | %s | %s | %s | %s | `%s` |\n", prefix, f.Name, configType(f), standard, strings.Join(f.Choices, ", "),
			cell(f.Help.EN), cell(f.Example))
	}
}

func configType(f supplier.Field) string {
	what := map[field.Kind]string{field.Flag: "true or false", field.URL: "URL", field.Number: "whole number"}[f.Kind]
	switch {
	case f.PEM:
		return "secret, PEM"
	case f.Secret && f.Kind == field.List:
		return "list of secrets"
	case f.Secret:
		return "secret"
	case f.Kind == field.List:
		return "list of texts"
	}
	return cmp.Or(what, "text")
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
	switch known, ok := forms[f.Type]; {
	case ok:
		return known.name
	case f.Type == reflect.TypeFor[[]settings.MerchantFee]():
		return "list of [fields](#a-merchants-fees)"
	case f.Type == reflect.TypeFor[[]settings.Endpoint]():
		return "list of [endpoints](#endpoints)"
	case structs(f.Type):
		return "list of [fields](#" + f.Word + ")"
	case f.Type.Kind() == reflect.Slice:
		return "list of " + f.Many
	case f.Type.Kind() == reflect.Struct:
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

// example returns an object with the example of every field, except digest, which only email
// endpoints have.
func example(t reflect.Type) *yaml.Node {
	n := mapping()
	for _, f := range settings.Fields(t) {
		child := f.Type
		if child.Kind() == reflect.Slice {
			child = child.Elem()
		}
		switch {
		case f.Word == "digest":
		case f.Type.Kind() == reflect.Pointer && child.Elem().Kind() == reflect.Struct:
			put(n, f.Word, example(child.Elem()))
		case structs(f.Type):
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
