package apply

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"backstop/internal/base/field"
	"backstop/internal/fee"
	"backstop/internal/settings"
	"backstop/internal/supplier"
)

//go:generate go test . -run TestTheReferenceIsCurrent -update

// form describes how values of a Go type are written in the file.
type form struct {
	name   string // in the reference
	schema func(f settings.Field) jsonSchema
}

type jsonSchema = map[string]any

// forms has the forms of all types except strings, lists and sets of fields.
var forms = map[reflect.Type]form{
	reflect.TypeFor[bool]():          {"true or false", fixed(jsonSchema{"type": "boolean"})},
	reflect.TypeFor[time.Duration](): {"duration", fixed(durationSchema)},
	reflect.TypeFor[fee.PPM]():       {"percentage", fixed(jsonSchema{"type": "string", "pattern": `^(0|[1-9][0-9]?)(\.[0-9]{1,4})?%$`})},
	reflect.TypeFor[settings.Rate](): {"rate per second", fixed(jsonSchema{"type": "string", "pattern": "^[0-9]+/s$"})},
	reflect.TypeFor[int]():           {"whole number", integer},
	reflect.TypeFor[int64]():         {"whole number", integer},
	reflect.TypeFor[*int]():          {"whole number", integer},

	reflect.TypeFor[settings.Secret]():   {"secret", fixed(anyText)},
	reflect.TypeFor[[]settings.Secret](): {"secret", fixed(anyText)},
	reflect.TypeFor[map[string]settings.Secret](): {"named secrets", func(f settings.Field) jsonSchema {
		return jsonSchema{"type": "object", "additionalProperties": anyText, "maxProperties": f.Max}
	}},
	reflect.TypeFor[map[string]any](): {"named values", fixed(jsonSchema{"type": "object"})},
	reflect.TypeFor[settings.Schedule](): {"preset, or list of durations", fixed(jsonSchema{"anyOf": []any{
		jsonSchema{"enum": []any{"day", "quick"}},
		jsonSchema{"type": "array", "items": durationSchema, "minItems": 1, "maxItems": 50},
		durationSchema,
		jsonSchema{"type": "null"},
	}})},
	reflect.TypeFor[settings.Followed](): {"`all`, or list of codes", fixed(jsonSchema{"anyOf": []any{
		jsonSchema{"enum": []any{"all"}}, jsonSchema{"type": "array", "items": anyText, "minItems": 1}, jsonSchema{"type": "null"},
	}})},
}

// anyText is any scalar: a value without quotes that looks like a number is accepted as a
// string too.
var anyText = jsonSchema{"type": []string{"string", "number", "boolean"}}

var durationSchema = jsonSchema{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}

func integer(f settings.Field) jsonSchema {
	return jsonSchema{"type": "integer", "minimum": f.Min, "maximum": f.Max}
}

func fixed(s jsonSchema) func(settings.Field) jsonSchema {
	return func(settings.Field) jsonSchema { return maps.Clone(s) }
}

// structs reports whether a type is a list of sets of fields.
func structs(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct && len(settings.Fields(t.Elem())) > 0
}

// Schema returns the JSON schema of the apply file, with the config of these kinds of suppliers.
func Schema(kinds supplier.Kinds) []byte {
	text, err := json.MarshalIndent(schema(kinds), "", "  ")
	if err != nil {
		panic(err) // texts and numbers only
	}
	return append(text, '\n')
}

// schema is Schema before it is text.
func schema(kinds supplier.Kinds) jsonSchema {
	s := objectSchema(reflect.TypeFor[settings.File]())
	suppliers := s["properties"].(jsonSchema)["suppliers"].(jsonSchema)["items"].(jsonSchema)
	var byKind []any
	for _, kind := range kinds {
		byKind = append(byKind, jsonSchema{
			"if":   jsonSchema{"properties": jsonSchema{"kind": jsonSchema{"const": kind.Name}}, "required": []string{"kind"}},
			"then": jsonSchema{"properties": jsonSchema{"config": configSchema(kind.Fields)}},
		})
	}
	suppliers["allOf"] = byKind
	s["$schema"], s["title"] = "https://json-schema.org/draft/2020-12/schema", "Backstop's apply file"
	return s
}

func objectSchema(t reflect.Type) jsonSchema {
	properties, required := jsonSchema{}, []string{}
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
			properties["signing_secrets"] = jsonSchema{
				"type": []string{"array", "null"}, "items": anyText, "minItems": 1, "maxItems": 2,
				"description": "The new secret and the previous one, during a rotation.",
			}
		}
	}
	s := jsonSchema{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"], s["type"] = required, "object"
	}
	return s
}

// configSchema is the schema of the config of a kind of supplier. No field is required in it, as any
// of them may be kept from before.
func configSchema(fields []supplier.Field) jsonSchema {
	properties := jsonSchema{}
	for _, f := range fields {
		s := maps.Clone(anyText)
		switch {
		case f.Fields != nil:
			s = configSchema(f.Fields)
		case f.Kind == field.List:
			s = jsonSchema{"type": "array", "items": anyText}
		case f.Kind == field.Flag:
			s = jsonSchema{"type": "boolean"}
		case len(f.Choices) > 0:
			s = jsonSchema{"enum": f.Choices}
		}
		s["description"] = strings.ReplaceAll(f.Help.EN, "`", "")
		properties[f.Name] = s
	}
	return jsonSchema{"type": "object", "properties": properties, "additionalProperties": false}
}

func fieldSchema(f settings.Field) jsonSchema {
	var s jsonSchema
	known, ok := forms[f.Type]
	switch kind := f.Type.Kind(); {
	case ok:
		s = known.schema(f)
	case kind == reflect.Struct:
		return objectSchema(f.Type)
	case kind == reflect.Pointer:
		return objectSchema(f.Type.Elem())
	case kind == reflect.Slice:
		s = jsonSchema{"type": []string{"array", "null"}, "items": anyText}
		if structs(f.Type) {
			s["items"] = objectSchema(f.Type.Elem())
		}
		if f.Max > 0 {
			s["maxItems"] = f.Max
		}
		return s
	case len(f.OneOf) > 0:
		words := []any{}
		for _, w := range f.OneOf {
			words = append(words, w)
		}
		return jsonSchema{"enum": append(words, nil)}
	default:
		if s = maps.Clone(anyText); f.Form == "code" {
			s["pattern"] = "^[a-z0-9][a-z0-9_-]{0,63}$"
		}
	}
	if f.Need != "" {
		return s
	}
	switch types := s["type"].(type) { // null returns to the default
	case string:
		s["type"] = []string{types, "null"}
	case []string:
		s["type"] = append(slices.Clone(types), "null")
	}
	return s
}
