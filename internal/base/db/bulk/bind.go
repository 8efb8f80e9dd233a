package bulk

import (
	"fmt"
	"strings"

	"github.com/uptrace/bun"
)

// Each is an argument of Bind for rows to join, as in "WITH _v ?": models is a pointer to a
// slice.
func Each(models any) any { return each{models} }

type each struct{ models any }

// Bind turns a query with a "?" for each argument into the text and values of a prepared
// statement. A []int64 or []string is the list in "IN (?)". Lists and rows are arrays on
// PostgreSQL and JSON on SQLite.
func Bind(d *bun.DB, text string, args []any) (string, []any) {
	parts := strings.Split(text, "?")
	if len(parts) != len(args)+1 {
		panic(fmt.Sprintf("%d values for %q", len(args), text))
	}
	var b strings.Builder
	var values []any
	for i, arg := range args {
		part, place, value := parts[i], "?", arg
		if isPostgres(d) {
			place = fmt.Sprintf("$%d", len(values)+1)
		}
		switch arg := arg.(type) {
		case each:
			rows := Of(d, arg.models)
			from, columns := rows.From(len(values) + 1)
			fmt.Fprintf(&b, "%s(%s) AS (%s)", part, rows.Names, from)
			values = append(values, columns...)
			continue
		case []int64, []string:
			if isPostgres(d) {
				part = strings.TrimSuffix(part, "IN (") + "= ANY ("
			} else {
				place, value = "SELECT value FROM json_each(?)", jsonOf(arg)
			}
		}
		b.WriteString(part + place)
		values = append(values, value)
	}
	b.WriteString(parts[len(args)])
	return b.String(), values
}
