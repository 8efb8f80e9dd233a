package list

import (
	"context"
	"fmt"
	"slices"

	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Query is a list as somebody asks for it: whose rows, and which of them.
type Query struct {
	Spec  *Spec
	Scope Scope
	Terms []Term
}

// Term is one condition of a filter.
type Term struct {
	Word     string
	Operator Operator // "" = Is
	Value    string
}

// FieldError says what is wrong with a term.
type FieldError struct{ Word, Problem string }

func (e *FieldError) Error() string { return e.Word + ": " + e.Problem }

// Parse makes a query of the values that an address has; "" = not filtered by. What
// is wrong is a FieldError of the first field that has it.
func Parse(s *Spec, scope Scope, value func(word string) string) (Query, error) {
	q := Query{Spec: s, Scope: scope}
	for _, f := range s.Fields {
		q = q.With(f.Word, value(f.Word))
	}
	return q, q.Check()
}

// With is the query narrowed by a field; with the value "" it is the same.
func (q Query) With(word, value string) Query { return q.where(Term{word, Is, value}) }

func (q Query) where(t Term) Query {
	if t.Value != "" {
		q.Terms = append(slices.Clone(q.Terms), t)
	}
	return q
}

// Get is the value that a field has to have, "" = any.
func (q Query) Get(word string) string {
	for _, t := range q.Terms {
		if t.Word == word && (t.Operator == Is || t.Operator == "") {
			return t.Value
		}
	}
	return ""
}

// Check finds what is wrong with the terms, as a FieldError.
func (q Query) Check() error {
	for _, t := range q.Terms {
		f := q.Spec.field(t.Word)
		switch {
		case f == nil:
			return &FieldError{t.Word, q.Spec.Name + " cannot be filtered by this"}
		case t.Operator != "" && t.Operator != Is && (f.Column == "" || !slices.Contains(f.Operators, t.Operator)):
			return &FieldError{t.Word, "cannot be compared by " + string(t.Operator)}
		}
		if f.Check != nil {
			if problem := f.Check(t.Value); problem != "" {
				return &FieldError{t.Word, problem}
			}
		}
	}
	return nil
}

// match is what a term asks of a source.
func (t Term) match(ctx context.Context, in Lookup, f *Field) (Match, error) {
	if f.Column == "" {
		return f.Match(ctx, in, t.Value)
	}
	operator := t.Operator
	if operator == "" {
		operator = Is
	}
	return Match{Where: in.Source.Alias + "." + f.Column + " " + string(operator) + " ?", Args: []any{t.Value}, Indexed: f.Indexed}, nil
}

// part is what is asked of one source.
type part struct {
	*Source
	where []condition
	few   string // see Match.Few
	// gathered says that keys are all that match, in ascending order.
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

// key is the key's column.
func (x *part) key() bun.Safe { return bun.Safe(x.Alias + "." + x.Key) }

// plan is a query and the slice that it is asked for, ready to be read.
type plan struct {
	db    *db.DB
	spec  *Spec
	slice Slice
	parts []*part // of the sources that can have rows
	// scans says that no index leads to what matches.
	scans bool
}

// plan asks every term what it means. The plan of a query that nothing can match has
// no parts.
func (q Query) plan(ctx context.Context, d *db.DB, s Slice) (*plan, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	p := &plan{db: d, spec: q.Spec, slice: s}
	indexed, ageless := s.Only != nil, false
	p.scans = !q.Scope.all
	for i := range q.Spec.Sources {
		in := Lookup{DB: d, Source: &q.Spec.Sources[i], Query: q}
		x, err := q.scoped(in.Source, s)
		if err != nil {
			return nil, err
		}
		none := !q.Scope.all && len(q.Scope.merchants) == 0
		for _, t := range q.Terms {
			if none {
				break
			}
			m, err := t.match(ctx, in, q.Spec.field(t.Word))
			if err != nil {
				return nil, err
			}
			if none = m.None; m.Where != "" {
				x.where = append(x.where, condition{m.Where, m.Args})
				p.scans = p.scans || !m.Indexed
			}
			indexed, ageless = indexed || m.Indexed, ageless || m.Ageless
			if m.Few != "" {
				x.few = m.Few
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

// scoped begins the part of a source: of the merchants and the keys that may be seen.
func (q Query) scoped(from *Source, s Slice) (*part, error) {
	if from.MerchantColumn == "" {
		return nil, fmt.Errorf("list %s: %s has no merchant column", q.Spec.Name, from.Table)
	}
	x := &part{Source: from}
	if !q.Scope.all {
		// With the sign, no index of the merchant: it would lead to all of their rows,
		// which would be read and sorted for one page.
		x.where = append(x.where, condition{"+(" + from.MerchantColumn + ") IN (?)", []any{bun.List(q.Scope.merchants)}})
	}
	if s.Only != nil {
		x.where = append(x.where, condition{"? IN (?)", []any{x.key(), bun.List(s.Only)}})
	}
	return x, nil
}

// within adds what the slice's time means for sources whose keys do not say when
// their rows were made, and gathers what matches among few.
func (p *plan) within(ctx context.Context) error {
	for _, x := range p.parts {
		if x.Time != "" {
			p.scans = false // there is no key of a time to stop at
			if p.slice.From > 0 {
				x.where = append(x.where, condition{x.Alias + "." + x.Time + " >= ?", []any{p.slice.From}})
			}
			if p.slice.To > 0 {
				x.where = append(x.where, condition{x.Alias + "." + x.Time + " < ?", []any{p.slice.To}})
			}
		}
		if p.scans && x.few != "" {
			if err := p.gather(ctx, x); err != nil {
				return err
			}
		}
	}
	// Lists with such a field have one source.
	p.scans = p.scans && !slices.ContainsFunc(p.parts, func(x *part) bool { return x.gathered })
	return nil
}

// fewRows bounds what is found through a partial index. Where more rows meet its
// condition, they are many among the newest, and a scan finds them soon.
const fewRows = 20_000

// gather finds all keys that match among the rows of a partial index, unless those
// are too many.
func (p *plan) gather(ctx context.Context, x *part) error {
	var n int
	err := p.db.Read.NewRaw("SELECT count(*) FROM (SELECT 1 FROM ? WHERE ? LIMIT ?) AS w", bun.Ident(x.Table), bun.Safe(x.few), fewRows+1).Scan(ctx, &n)
	if err != nil {
		return fmt.Errorf("count the rows of %s where %s: %w", x.Table, x.few, err)
	}
	if n > fewRows {
		return nil
	}
	w := p.slice.window(x.Source)
	err = x.narrow(p.amongFew(x)).ColumnExpr("?", x.key()).Where("? BETWEEN ? AND ?", x.key(), w.low, w.high).Scan(ctx, &x.keys)
	if err != nil {
		return fmt.Errorf("gather the rows of %s where %s: %w", x.Table, x.few, err)
	}
	slices.Sort(x.keys)
	x.gathered = true
	return nil
}

// amongFew selects from the rows of the partial index. They are not asked for by key,
// or the planner would walk the whole table in its order.
func (p *plan) amongFew(x *part) *bun.SelectQuery {
	return p.db.Read.NewSelect().TableExpr("(SELECT * FROM ? WHERE ? LIMIT ?) AS ?", bun.Ident(x.Table), bun.Safe(x.few), fewRows, bun.Ident(x.Alias))
}
