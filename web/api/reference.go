package api

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"backstop/docs"
	"backstop/views/reference"
)

// get returns the value of a key; nil = there is none.
func (o object) get(key string) any {
	if at := slices.IndexFunc(o, func(e entry) bool { return e.key == key }); at >= 0 {
		return o[at].value
	}
	return nil
}

// object returns the object under some keys, one in another; nil = there is none.
func (o object) object(keys ...string) object {
	for _, key := range keys {
		o, _ = o.get(key).(object)
	}
	return o
}

// text returns a value as it is shown; "" = there is none.
func (o object) text(key string) string {
	if v := o.get(key); v != nil {
		return fmt.Sprint(v)
	}
	return ""
}

// referenceOf returns what the page says of the description of the API.
func referenceOf(doc object) (r reference.Reference) {
	for _, tag := range []string{"merchants", "administration", "installation"} {
		g := reference.Group{Name: tag}
		for _, path := range doc.object("paths") {
			for _, method := range path.value.(object) {
				if o := method.value.(object); o.get("tags").([]string)[0] == tag {
					g.Operations = append(g.Operations, operationOf(strings.ToUpper(method.key), path.key, o))
				}
			}
		}
		slices.SortStableFunc(g.Operations, func(a, b reference.Operation) int { return strings.Compare(a.Path, b.Path) })
		r.Groups = append(r.Groups, g)
	}
	for _, s := range doc.object("components", "schemas") {
		r.Schemas = append(r.Schemas, reference.Schema{Name: s.key, Fields: fieldsShown("", s.value.(object))})
	}
	for _, e := range EventTypes() {
		example, err := json.MarshalIndent(e.Example, "", "  ")
		if err != nil {
			panic(fmt.Sprintf("example of %s: %v", e.Type, err))
		}
		r.Events = append(r.Events, reference.Event{Name: e.Type, Description: e.Description, Example: string(example)})
	}
	r.Errors = errorCodes()
	return r
}

func operationOf(method, path string, o object) reference.Operation {
	op := reference.Operation{
		ID: o.text("operationId"), Method: method, Path: path, Summary: o.text("summary"),
		Permitted: strings.ReplaceAll(o.text("description"), "`", ""),
	}
	security, _ := o.get("security").([]object)
	for _, s := range security {
		op.Keys = append(op.Keys, s[0].key)
	}
	parameters, _ := o.get("parameters").([]object)
	for _, x := range parameters {
		f := fieldShown(x.text("name"), x.object("schema"))
		f.In, f.Required = x.text("in"), x.get("required") == true
		if f.Doc == "" {
			f.Doc = x.text("description")
		}
		op.Parameters = append(op.Parameters, f)
	}
	op.Body = fieldsShown("body", o.object("requestBody", "content", "application/json", "schema"))
	answer := o.object("responses", "2XX", "content", "application/json", "schema")
	several, _ := answer.get("anyOf").([]object)
	for _, s := range append(several, answer) {
		if name := referred(s); name != "" {
			op.Answers = append(op.Answers, name)
		}
	}
	return op
}

// fieldsShown are the fields of a schema, those of objects in it by their path.
func fieldsShown(in string, schema object) (all []reference.Field) {
	required, _ := schema.get("required").([]string)
	for _, p := range schema.object("properties") {
		value := p.value.(object)
		f := fieldShown(p.key, value)
		f.In, f.Required = in, slices.Contains(required, p.key)
		all = append(all, f)
		inner, suffix := value, "."
		if items := value.object("items"); items != nil {
			inner, suffix = items, "[]."
		}
		for _, f := range fieldsShown(in, inner) {
			f.Name = p.key + suffix + f.Name
			all = append(all, f)
		}
	}
	return all
}

// fieldShown is a field with the type of its value.
func fieldShown(name string, schema object) reference.Field {
	f := reference.Field{Name: name, Doc: schema.text("description"), Example: schema.text("example"), Schema: referred(schema)}
	switch choices, _ := schema.get("enum").([]string); {
	case f.Schema != "":
		f.Type = f.Schema
	case len(choices) > 0:
		f.Type = strings.Join(choices, ", ")
	default:
		f.Type = typeShown(schema)
	}
	return f
}

// typeShown names the type of a value: "integer or null", "array of string".
func typeShown(schema object) string {
	switch t := schema.get("type").(type) {
	case string:
		if items := schema.object("items"); items != nil {
			if name := referred(items); name != "" {
				return "array of " + name
			}
			return "array of " + typeShown(items)
		}
		return t
	case []any:
		names := make([]string, len(t))
		for i, name := range t {
			names[i] = fmt.Sprint(name)
		}
		return strings.Join(names, " or ")
	}
	return "any JSON"
}

// referred is the name of the schema that a schema, its items or its first choice refer to; "" = none.
func referred(schema object) string {
	if several, _ := schema.get("anyOf").([]object); len(several) == 2 && several[1].text("type") == "null" {
		schema = several[0]
	}
	if items := schema.object("items"); items != nil {
		schema = items
	}
	path := schema.text("$ref")
	return path[strings.LastIndexByte(path, '/')+1:]
}

var errorRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (\\d{3}) \\| (.*) \\| (.*) \\|$")

// errorCodes are the rows of docs/errors.md.
func errorCodes() (all []reference.ErrorCode) {
	for _, row := range errorRow.FindAllStringSubmatch(docs.Errors, -1) {
		all = append(all, reference.ErrorCode{Code: row[1], Status: row[2], Meaning: row[3], Remedy: row[4]})
	}
	return all
}
