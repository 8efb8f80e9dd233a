package list

import (
	"context"
	"fmt"
	"slices"

	"backstop/internal/base/db"
	"backstop/internal/base/invalid"

	"github.com/uptrace/bun"
)

// Query is a request for a list: the scope and the filter.
type Query struct {
	Spec  *Spec
	Scope Scope
	Terms []Term
}

// Term is one condition of a filter: a field and its value.
type Term struct{ Name, Value string }

// Parse makes a query from the values in a URL; "" = no filter. Errors: *invalid.FieldError, for
// the first invalid field.
func Parse(s *Spec, scope Scope, value func(name string) string) (Query, error) {
	q := Query{Spec: s, Scope: scope}
	for _, f := range s.Fields {
		q = q.With(f.Name, value(f.Name))
	}
	return q, q.Check()
}

// With adds a filter by a field; the value "" adds none.
func (q Query) With(name, value string) Query {
	if value != "" {
		q.Terms = append(slices.Clone(q.Terms), Term{name, value})
	}
	return q
}

// Get returns the value that a field is filtered by; "" = none.
func (q Query) Get(name string) string {
	for _, t := range q.Terms {
		if t.Name == name {
			return t.Value
		}
	}
	return ""
}

// Check validates the terms. Errors: *invalid.FieldError.
func (q Query) Check() error {
	for _, t := range q.Terms {
		f := q.Spec.field(t.Name)
		if f == nil {
			return &invalid.FieldError{Field: t.Name, Problem: q.Spec.Name + " cannot be filtered by this"}
		}
		if problem := f.problem(t.Value); problem != "" {
			return &invalid.FieldError{Field: t.Name, Problem: problem}
		}
	}
	return nil
}

// match returns the rows of a source that match a term.
func (t Term) match(ctx context.Context, in Lookup, f *Field) (Match, error) {
	if f.Column == "" {
		return f.Match(ctx, in, t.Value)
	}
	return Match{Where: in.Source.Alias + "." + f.Column + " = ?", Args: []any{t.Value}, Indexed: f.Indexed}, nil
}

// part is a query's conditions for one source.
type part struct {
	*Source
	where      []condition
	candidates func(context.Context, bun.IDB) (string, error) // see Match.Candidates
	// gathered means that keys holds all matching keys, ascending.
	gathered bool
	keys     []int64
}

type condition struct {
	query string
	args  []any
}

// narrow applies the conditions to a query of the source.
func (x *part) narrow(q *bun.SelectQuery) *bun.SelectQuery {
	for _, c := range x.where {
		q = q.Where(c.query, c.args...)
	}
	return q
}

// key returns the key's column.
func (x *part) key() bun.Safe { return bun.Safe(x.Alias + "." + x.Key) }

// plan is a query with its slice, ready to be read.
type plan struct {
	read  *bun.DB
	spec  *Spec
	slice Slice
	parts []*part // the sources that can have rows
	// scans means that no index covers the filter.
	scans bool
}

// plan matches every term. A query that no row can match has no parts.
func (q Query) plan(ctx context.Context, d *db.DB, s Slice) (*plan, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	if of := q.Spec.Of; of != "" && q.Get(of) == "" {
		return nil, &invalid.FieldError{Field: of, Problem: "the rows of " + q.Spec.Name + " are listed by this only"}
	}
	p := &plan{read: s.reader(d), spec: q.Spec, slice: s}
	indexed, ageless := s.Only != nil, false
	p.scans = !q.Scope.all
	for i := range q.Spec.Sources {
		in := Lookup{DB: d, Read: p.read, Source: &q.Spec.Sources[i], Query: q}
		x, err := q.scoped(in.Source, s)
		if err != nil {
			return nil, err
		}
		none := !q.Scope.all && len(q.Scope.merchants) == 0
		for _, t := range q.Terms {
			if none {
				break
			}
			m, err := t.match(ctx, in, q.Spec.field(t.Name))
			if err != nil {
				return nil, err
			}
			if none = m.None; m.Where != "" {
				x.where = append(x.where, condition{m.Where, m.Args})
				p.scans = p.scans || !m.Indexed
			}
			indexed, ageless = indexed || m.Indexed, ageless || m.AnyAge
			if m.Candidates != nil {
				x.candidates = m.Candidates
			}
		}
		if !none {
			p.parts = append(p.parts, x)
		}
	}
	p.scans = p.scans && !indexed
	if ageless {
		p.slice.From, p.slice.To = 0, 0
	}
	return p, p.within(ctx)
}

// scoped starts the part of a source, restricted to the visible merchants and the given keys.
func (q Query) scoped(from *Source, s Slice) (*part, error) {
	if from.MerchantColumn == "" {
		return nil, fmt.Errorf("list %s: %s has no merchant column", q.Spec.Name, from.Table)
	}
	x := &part{Source: from}
	if !q.Scope.all {
		// The + keeps the planner from using an index of the merchant: it would read and sort
		// all of the merchant's rows for one page.
		x.where = append(x.where, condition{"+(" + from.MerchantColumn + ") IN (?)", []any{bun.List(q.Scope.merchants)}})
	}
	if s.Only != nil {
		x.where = append(x.where, condition{"? IN (?)", []any{x.key(), bun.List(s.Only)}})
	}
	return x, nil
}

// within adds the slice's time range for sources whose keys are not times, and gathers matches
// from small sets.
func (p *plan) within(ctx context.Context) error {
	for _, x := range p.parts {
		if x.Time != "" {
			p.scans = false // its keys cannot bound a scan
			if p.slice.From > 0 {
				x.where = append(x.where, condition{x.Alias + "." + x.Time + " >= ?", []any{p.slice.From}})
			}
			if p.slice.To > 0 {
				x.where = append(x.where, condition{x.Alias + "." + x.Time + " < ?", []any{p.slice.To}})
			}
		}
		if p.scans && x.candidates != nil {
			if err := p.gather(ctx, x); err != nil {
				return err
			}
		}
	}
	// Lists with such a field have one source.
	p.scans = p.scans && !slices.ContainsFunc(p.parts, func(x *part) bool { return x.gathered })
	return nil
}

// fewRows bounds the rows read through a partial index. If more rows satisfy its condition,
// there are many among the newest, and a scan finds them soon.
const fewRows = 20_000

// gather finds all matching keys among the rows of a partial index, unless there are too many.
func (p *plan) gather(ctx context.Context, x *part) error {
	few, err := x.candidates(ctx, p.read)
	if err != nil {
		return err
	}
	var n int
	err = p.read.NewRaw("SELECT count(*) FROM (SELECT 1 FROM (?) AS f LIMIT ?) AS w", bun.Safe(few), fewRows+1).Scan(ctx, &n)
	if err != nil {
		return fmt.Errorf("count the few rows of %s: %w", x.Table, err)
	}
	if n > fewRows {
		return nil
	}
	w := p.slice.window(x.Source)
	// The rows are a subquery instead of being selected by key, or the planner would scan the
	// whole table in key order.
	rows := p.read.NewSelect().TableExpr("(SELECT * FROM (?) AS f LIMIT ?) AS ?", bun.Safe(few), fewRows, bun.Ident(x.Alias))
	err = x.narrow(rows).ColumnExpr("?", x.key()).Where("? BETWEEN ? AND ?", x.key(), w.low, w.high).Scan(ctx, &x.keys)
	if err != nil {
		return fmt.Errorf("gather the few rows of %s: %w", x.Table, err)
	}
	slices.Sort(x.keys)
	x.gathered = true
	return nil
}
