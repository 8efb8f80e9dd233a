package console

import (
	"context"
	"fmt"

	"backstop/internal/exception"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// States of exceptions that stand for several.
const (
	NeedsPerson = "needs"   // nothing goes on until a person acts
	Unsettled   = "waiting" // neither resolved nor ignored
)

// ExceptionFilter asks for exceptions. Empty fields do not filter.
type ExceptionFilter struct {
	OrderNo string // also the reference of a callback that found no order
	Kind    string
	State   string // a state, or NeedsPerson or Unsettled
	Risk    string // a part of the money at risk
	Slice
}

// Exceptions is one page of exceptions. Nobody made many of them by being busy,
// and what waits for a person waits for as long as it takes: where the state or
// the kind is given, an index finds them however old they are.
func (b *Book) Exceptions(ctx context.Context, f ExceptionFilter) (Page[exception.Item], error) {
	var c conditions
	c.equal("x.order_no", f.OrderNo)
	states := []exception.State{exception.State(f.State)}
	switch f.State {
	case NeedsPerson:
		states = exception.Moves.NeedsPerson()
	case Unsettled:
		states = exception.Moves.Open()
	}
	switch {
	case f.Kind != "":
		c.equal("x.kind", f.Kind)
	case f.State != "" && f.OrderNo == "":
		c.add("x.kind IN (?)", bun.List(Kinds)) // leads the index
	}
	if f.State != "" {
		c.add("x.state IN (?)", bun.List(states))
	}
	if f.Risk != "" {
		rows, ok := report.RowsOf(report.Part(f.Risk), b.db.Now())
		if !ok || rows.Table != "exceptions" {
			return Page[exception.Item]{}, nil
		}
		c.add(rows.Where, rows.Args...)
	}
	w := f.ids()
	var rows []exception.Item
	q := c.apply(b.db.Read.NewSelect().Model(&rows))
	if err := f.within(q, "x", w).Scan(ctx); err != nil {
		return Page[exception.Item]{}, fmt.Errorf("read exceptions: %w", err)
	}
	for i := range rows {
		MaskException(&rows[i])
	}
	page := cut(f.Slice, w, rows, func(i exception.Item) int64 { return i.ID })
	return page, counted(ctx, b, &page, f.Slice, w, false, "exceptions", "x", c.apply)
}
