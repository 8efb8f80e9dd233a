// Package doors builds SQL from what a person writes, in every way that must be found.
package doors

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/uptrace/bun"
)

func concatenated(q bun.IDB, c *fiber.Ctx) {
	q.NewRaw("SELECT 1 WHERE a = '" + c.Query("state") + "'") // door
}

func formatted(q bun.IDB, c *fiber.Ctx) {
	state := c.Params("state") // door
	q.NewSelect().Where(fmt.Sprintf("a = '%s'", state))
}

func passed(q bun.IDB, c *fiber.Ctx) { where(q, c.Get("X-State")) } // door

func where(q bun.IDB, state string) { q.NewSelect().Where("a IN (" + list(state) + ")") }

func list(states ...string) string {
	quoted := make([]string, len(states))
	for i, s := range states {
		quoted[i] = "'" + s + "'"
	}
	return strings.Join(quoted, ", ")
}

func built(q bun.IDB, c *fiber.Ctx) {
	var b strings.Builder
	b.WriteString("SELECT 1")
	fmt.Fprintf(&b, " WHERE a = '%s'", c.FormValue("state")) // door
	q.QueryContext(c.UserContext(), b.String())
}

type field struct {
	match func(string) condition
}

type condition struct{ where string }

var fields = []field{{match: func(value string) condition { return condition{where: "a = " + value} }}}

func byValue(q bun.IDB, c *fiber.Ctx) {
	for _, f := range fields {
		m := f.match(c.Query("by_value")) // door
		q.NewSelect().Where(m.where)
	}
}

type named interface{ name(text string) string }

type table struct{}

func (table) name(text string) string { return "t_" + text }

func throughInterface(q bun.IDB, c *fiber.Ctx) {
	var n named = table{}
	q.NewSelect().TableExpr(n.name(c.Query("interface"))) // door
}

func safe(c *fiber.Ctx) bun.Safe { return bun.Safe(c.Query("safe")) } // door

func closure(q bun.IDB, c *fiber.Ctx) {
	order := func(by string) string { return "a " + by }
	q.NewSelect().OrderExpr(order(c.Query("order"))) // door
}

func decoded(q bun.IDB, c *fiber.Ctx) error {
	var x struct{ Column string }
	if err := json.Unmarshal(c.Body(), &x); err != nil {
		return err
	}
	q.NewSelect().ColumnExpr(x.Column) // door
	return nil
}

func stored(ctx context.Context, q bun.IDB) error {
	var name string
	if err := q.NewRaw("SELECT name FROM views").Scan(ctx, &name); err != nil {
		return err
	}
	_, err := q.ExecContext(ctx, "DROP TABLE "+name) // door
	return err
}

func keys(q bun.IDB, c *fiber.Ctx) {
	set := map[string]int{}
	set[c.Query("key")] = 1 // door
	for column := range set {
		q.NewUpdate().Set(column + " = 1")
	}
}

// constant is no door.
func constant(q bun.IDB, c *fiber.Ctx) {
	known := map[string]string{"a": "x.a", "b": "x.b"}
	q.NewSelect().Where("x.a = ?", c.Query("state")).OrderExpr(known[c.Query("order")]).Limit(len(c.Query("n")))
}
