// Package bulk builds the statements of the hot path: their text is the same for any number of
// rows or keys. With literals, each batch would be a new text to parse, analyse and plan.
// Package db sends these statements; bun formats all others.
package bulk

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
	"github.com/uptrace/bun/schema"
)

// Rows are the rows of one statement.
type Rows struct {
	Table string // with its alias
	Names string // of the columns, quoted
	Len   int

	postgres bool
	types    []string
	columns  []any // one slice per column
}

// From returns a query for the rows, with its arguments numbered from number: one array per
// column on PostgreSQL, one JSON text on SQLite. A single row, as most are at ordinary rates, has
// plain values on PostgreSQL, which cost it a tenth less than arrays.
func (r *Rows) From(number int) (query string, args []any) {
	var b strings.Builder
	b.WriteString("SELECT ")
	array := r.postgres && r.Len != 1
	if array {
		b.WriteString("* FROM unnest(")
	}
	for i, t := range r.types {
		if i > 0 {
			b.WriteString(", ")
		}
		at := strconv.Itoa(i)
		switch {
		case array:
			b.WriteString("$" + strconv.Itoa(number+i) + "::" + t + "[]")
		case r.postgres:
			b.WriteString("$" + strconv.Itoa(number+i) + "::" + t)
		case t == "bytea":
			b.WriteString("unhex(value->>" + at + ")")
		default:
			b.WriteString("value->>" + at)
		}
	}
	switch {
	case array:
		b.WriteString(")")
		return b.String(), r.columns
	case r.postgres:
		return b.String(), r.row(0)
	}
	b.WriteString(" FROM json_each(?)")
	return b.String(), []any{r.json()}
}

// json returns the rows as a JSON array of arrays.
func (r *Rows) json() string {
	rows := make([][]any, r.Len)
	for i := range rows {
		rows[i] = r.row(i)
		for j, v := range rows[i] {
			if b, ok := v.([]byte); ok && b != nil {
				rows[i][j] = hex.EncodeToString(b)
			}
		}
	}
	return jsonOf(rows)
}

func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("bulk: values that JSON cannot represent: %v", err))
	}
	return string(text)
}

// Values returns n rows, beginning with the row at, as "VALUES (?, …), …" and its arguments.
func (r *Rows) Values(at, n int) (text string, args []any) {
	one := "(?" + strings.Repeat(", ?", len(r.columns)-1) + ")"
	args = make([]any, 0, n*len(r.columns))
	for i := range n {
		args = append(args, r.row(at+i)...)
	}
	return "VALUES " + one + strings.Repeat(", "+one, n-1), args
}

// row returns the values of one row.
func (r *Rows) row(i int) []any {
	values := make([]any, len(r.columns))
	for j, column := range r.columns {
		values[j] = reflect.ValueOf(column).Index(i).Interface()
	}
	return values
}

// Of returns the rows of models, a pointer to a slice.
func Of(d *bun.DB, models any) *Rows {
	slice := reflect.Indirect(reflect.ValueOf(models))
	model := slice.Type().Elem()
	if model.Kind() == reflect.Pointer {
		model = model.Elem()
	}
	table := d.Dialect().Tables().Get(model)
	r := &Rows{Table: string(table.SQLName) + " AS " + string(table.SQLAlias), Len: slice.Len(), postgres: isPostgres(d)}
	names := make([]string, len(table.Fields))
	for i, f := range table.Fields {
		column, sqlType := columnOf(slice, f)
		names[i], r.types, r.columns = string(f.SQLName), append(r.types, sqlType), append(r.columns, column)
	}
	r.Names = strings.Join(names, ", ")
	return r
}

func isPostgres(d *bun.DB) bool { return d.Dialect().Name() == dialect.PG }

var jsonText = reflect.TypeFor[json.RawMessage]()

// columnOf returns one field of all rows and its SQL type.
func columnOf(slice reflect.Value, f *schema.Field) (column any, sqlType string) {
	switch kind := f.IndirectType.Kind(); {
	case f.IsPtr && kind == reflect.Int64:
		return gather(slice, f, func(v reflect.Value) *int64 { return v.Interface().(*int64) }), "bigint"
	case kind == reflect.Int64 || kind == reflect.Int:
		return gather(slice, f, reflect.Value.Int), "bigint"
	case kind == reflect.Bool:
		return gather(slice, f, reflect.Value.Bool), "boolean"
	case kind == reflect.String && f.NullZero:
		return gather(slice, f, func(v reflect.Value) *string {
			if text := v.String(); text != "" {
				return &text
			}
			return nil
		}), "text"
	case kind == reflect.String:
		return gather(slice, f, reflect.Value.String), "text"
	case kind == reflect.Struct && f.UserSQLType == "text":
		return gather(slice, f, func(v reflect.Value) string { return jsonOf(v.Interface()) }), "text"
	case f.IndirectType == jsonText && f.UserSQLType == "text":
		return gather(slice, f, func(v reflect.Value) string { return string(v.Bytes()) }), "text"
	case f.IndirectType == jsonText:
		return gather(slice, f, func(v reflect.Value) string { return string(v.Bytes()) }), "jsonb"
	case kind == reflect.Slice && f.IndirectType.Elem().Kind() == reflect.Uint8:
		return gather(slice, f, reflect.Value.Bytes), "bytea"
	}
	panic(fmt.Sprintf("%s.%s: there is no array of %s", f.Table.TypeName, f.GoName, f.IndirectType)) // our own model is wrong
}

func gather[T any](slice reflect.Value, f *schema.Field, of func(reflect.Value) T) []T {
	column := make([]T, slice.Len())
	for i := range column {
		column[i] = of(reflect.Indirect(slice.Index(i)).FieldByIndex(f.Index))
	}
	return column
}
