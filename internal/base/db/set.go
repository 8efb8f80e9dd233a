package db

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/uptrace/bun"
	bundialect "github.com/uptrace/bun/dialect"
	"github.com/uptrace/bun/schema"
)

// set is rows as an engine takes them in a statement that is the same for any number
// of them. Written as literals, each batch was a new text to read, analyse and plan.
type set struct {
	postgres bool
	table    string // with its alias
	names    string // of the columns, quoted
	types    []string
	columns  []any // a slice each
	len      int
}

// from is a query for the rows and its arguments, of which the first has that
// number: an array per column on PostgreSQL, one JSON text on SQLite.
func (s *set) from(number int) (query string, args []any) {
	columns := make([]string, len(s.types))
	if s.postgres {
		for i, t := range s.types {
			columns[i] = fmt.Sprintf("$%d::%s[]", number+i, t)
		}
		return "SELECT * FROM unnest(" + strings.Join(columns, ", ") + ")", s.columns
	}
	for i, t := range s.types {
		columns[i] = fmt.Sprintf("value->>%d", i)
		if t == "bytea" {
			columns[i] = "unhex(" + columns[i] + ")"
		}
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM json_each(?)", []any{s.json()}
}

// json is an array of rows, each of them an array.
func (s *set) json() string {
	rows := make([][]any, s.len)
	for i := range rows {
		rows[i] = s.row(i)
		for j, v := range rows[i] {
			if b, ok := v.([]byte); ok {
				rows[i][j] = hex.EncodeToString(b)
			}
		}
	}
	return jsonOf(rows)
}

func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("db: numbers and texts cannot be written: %v", err))
	}
	return string(text)
}

// row is the values of one row.
func (s *set) row(i int) []any {
	values := make([]any, len(s.columns))
	for j, column := range s.columns {
		switch column := column.(type) {
		case []int64:
			values[j] = column[i]
		case []*int64:
			if column[i] != nil {
				values[j] = *column[i]
			}
		case []string:
			values[j] = column[i]
		case []*string:
			if column[i] != nil {
				values[j] = *column[i]
			}
		case []bool:
			values[j] = column[i]
		case [][]byte:
			values[j] = column[i]
		}
	}
	return values
}

// newSet takes a pointer to a slice of models.
func newSet(d *bun.DB, models any) set {
	slice := reflect.Indirect(reflect.ValueOf(models))
	model := slice.Type().Elem()
	if model.Kind() == reflect.Pointer {
		model = model.Elem()
	}
	table := d.Dialect().Tables().Get(model)
	s := set{postgres: d.Dialect().Name() == bundialect.PG, table: string(table.SQLName) + " AS " + string(table.SQLAlias), len: slice.Len()}
	names := make([]string, len(table.Fields))
	for i, f := range table.Fields {
		column, sqlType := columnOf(slice, f)
		names[i], s.types, s.columns = string(f.SQLName), append(s.types, sqlType), append(s.columns, column)
	}
	s.names = strings.Join(names, ", ")
	return s
}

var jsonText = reflect.TypeFor[json.RawMessage]()

// columnOf is one field of all rows, and its type in SQL.
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
	case f.IndirectType == jsonText:
		return gather(slice, f, func(v reflect.Value) string { return string(v.Bytes()) }), "jsonb"
	case kind == reflect.Slice && f.IndirectType.Elem().Kind() == reflect.Uint8:
		return gather(slice, f, reflect.Value.Bytes), "bytea"
	}
	panic(fmt.Sprintf("%s.%s: no array of %s is known", f.Table.TypeName, f.GoName, f.IndirectType)) // our own model is wrong
}

func gather[T any](slice reflect.Value, f *schema.Field, of func(reflect.Value) T) []T {
	column := make([]T, slice.Len())
	for i := range column {
		column[i] = of(reflect.Indirect(slice.Index(i)).FieldByIndex(f.Index))
	}
	return column
}
