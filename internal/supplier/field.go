package supplier

import (
	"fmt"
	"iter"
	"reflect"

	"backstop/internal/base/field"
	"backstop/internal/base/text"
)

// Field is one field of the config of a kind: its declaration, and what people read about it.
type Field struct {
	field.Field
	FieldText
	Fields []Field // of a set of named fields
}

// FieldText is what a field is called, and what to enter. Code stands between backquotes.
type FieldText struct{ Label, Help text.Text }

// FieldsOf returns the fields of a config, a struct, with their texts by path ("reply.success").
// It panics if a field has no text, or a text no field.
func FieldsOf[C any](texts map[string]FieldText) []Field {
	left := len(texts)
	all := fieldsOf(reflect.TypeFor[C](), "", texts, &left)
	if left != 0 {
		panic(fmt.Sprintf("supplier: %d texts are of no field of %v", left, reflect.TypeFor[C]()))
	}
	return all
}

func fieldsOf(t reflect.Type, path string, texts map[string]FieldText, left *int) (all []Field) {
	for _, d := range field.Of(t) {
		about, ok := texts[path+d.Name]
		if !ok || about.Label.ZH == "" || about.Help.ZH == "" || about.Label.EN == "" || about.Help.EN == "" {
			panic(fmt.Sprintf("supplier: the field %s%s of %v has no text", path, d.Name, t))
		}
		*left--
		f := Field{Field: d, FieldText: about}
		if d.Kind == field.Object {
			f.Fields = fieldsOf(t.FieldByIndex(d.Index).Type, path+d.Name+".", texts, left)
		}
		all = append(all, f)
	}
	return all
}

// Secrets yields the fields of the config that are sealed at rest.
func (k Kind) Secrets() iter.Seq[Field] {
	return func(yield func(Field) bool) {
		for _, f := range k.Fields {
			if f.Secret && !yield(f) {
				return
			}
		}
	}
}
