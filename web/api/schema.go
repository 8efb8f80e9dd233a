package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/base/field"
	"backstop/web"
)

// fieldsOf is the schema of a body. closed: other fields are refused.
func fieldsOf(params []param, closed bool) object {
	var properties object
	var required []string
	for _, p := range params {
		if properties = append(properties, entry{p.Name, bodyField(p)}); p.Required {
			required = append(required, p.Name)
		}
	}
	o := object{{"type", "object"}}.with("properties", properties).with("required", required)
	if closed {
		o = append(o, entry{"additionalProperties", false})
	}
	return o
}

// bodyField is the schema of a field of a body.
func bodyField(p param) object {
	o := object{}
	switch p.Kind {
	case field.Raw:
		return anything.with("description", p.Doc)
	case field.Number, field.Money:
		o = whole(p.Min, p.Max)
	case field.Flag:
		o = object{{"type", "boolean"}}
	case field.List:
		items := object{{"type", "string"}}
		if p.Fields != nil {
			items = fieldsOf(p.Fields, true)
		}
		o = object{{"type", "array"}}.with("maxItems", p.Max).with("items", items)
	case field.Object:
		if p.Fields != nil {
			o = fieldsOf(p.Fields, true)
		}
	case field.Choice:
		o = object{{"type", "string"}, {"enum", p.Choices}}
	default:
		o = object{{"type", "string"}}.with("minLength", p.Min).with("maxLength", p.Max)
	}
	if !p.Required { // null counts as missing
		o = orNothing(o)
	}
	return o.with("description", p.Doc).with("default", p.Default).with("example", p.example())
}

// example is the declared example of a field as JSON has it; nil = there is none.
func (p *param) example() any {
	if p.Example == "" || p.Kind != field.Number && p.Kind != field.Money {
		return p.Example
	}
	n, err := strconv.ParseInt(p.Example, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("openapi: the example of %s is no number", p.Name))
	}
	return n
}

func whole(least, most int64) object {
	return object{{"type", "integer"}, {"format", "int64"}}.with("minimum", least).with("maximum", most)
}

// queryField is the schema of a parameter of a URL.
func queryField(p param) object {
	switch p.Kind {
	case field.Time:
		return object{{"type", "string"}, {"format", "date-time"}}
	case field.Limit:
		return whole(1, web.MaxPageSize)
	case field.Flag:
		return object{{"type", "boolean"}}
	}
	if len(p.Choices) > 0 {
		return object{{"type", "string"}, {"enum", p.Choices}}
	}
	return object{{"type", "string"}}
}

// schema is the schema of an answer's type. That of a struct with a name stands among the components.
func (d *description) schema(t reflect.Type) object {
	switch t.Kind() {
	case reflect.Pointer:
		return orNothing(d.schema(t.Elem()))
	case reflect.Struct:
		if t.Name() == "" {
			return d.fields(t)
		}
		name := schemaName(t)
		if _, met := d.schemas[name]; !met {
			d.names, d.schemas[name] = append(d.names, name), nil
			d.schemas[name] = d.fields(t)
		}
		return object{{"$ref", d.prefix + name}}
	case reflect.Slice:
		if t == reflect.TypeFor[json.RawMessage]() {
			return anything
		}
		return object{{"type", "array"}, {"items", d.schema(t.Elem())}}
	case reflect.Map:
		return object{{"type", "object"}, {"additionalProperties", d.schema(t.Elem())}}
	case reflect.Bool:
		return object{{"type", "boolean"}}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return object{{"type", "integer"}, {"format", "int64"}}
	case reflect.Float64:
		return object{{"type", "number"}}
	case reflect.String:
		return object{{"type", "string"}}
	default:
		return anything
	}
}

// anything is the schema of any JSON. A list of all types would say the same, but generators of clients
// cannot read it; and some validators take {} alone for a value that is not null.
var anything = object{{"anyOf", []object{{}, {{"type", "null"}}}}}

// orNothing is a schema whose value may be null.
func orNothing(o object) object {
	if len(o) > 0 && o[0].key == "type" {
		o = slices.Clone(o)
		o[0].value = []any{o[0].value, "null"}
		return o
	}
	return object{{"anyOf", []object{o, {{"type", "null"}}}}}
}

// fields is the schema of a struct.
func (d *description) fields(t reflect.Type) object {
	var properties object
	var required []string
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" || !f.IsExported() || name == "-" || name == "" {
			continue
		}
		properties = append(properties, entry{name, d.schema(f.Type).with("description", f.Tag.Get("doc"))})
		if options != "omitempty" {
			required = append(required, name)
		}
	}
	return object{{"type", "object"}}.with("properties", properties).with("required", required)
}

var packagePath = regexp.MustCompile(`[\w./-]*/`)

// schemaName names the schema of a type: orderView is Order, page[orderView] OrderPage, payout.View
// Payout.
func schemaName(t reflect.Type) string {
	name, of, generic := strings.Cut(packagePath.ReplaceAllString(t.Name(), ""), "[")
	if generic {
		of = strings.TrimSuffix(of, "]")
		pkg, inner, _ := strings.Cut(of, ".")
		return schemaWords(pkg, inner) + capital(name)
	}
	at := strings.LastIndexByte(t.PkgPath(), '/')
	return schemaWords(t.PkgPath()[at+1:], name)
}

func schemaWords(pkg, name string) string {
	name = strings.TrimSuffix(name, "View")
	if pkg != "api" && pkg != "web" {
		name = capital(pkg) + name
	}
	return capital(name)
}
