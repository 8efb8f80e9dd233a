package analytics

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/exception"
)

// Ages are the upper ends of the ages of open exceptions, and of the times that decisions took;
// one more counts longer ones.
var Ages = []time.Duration{time.Hour, 4 * time.Hour, 24 * time.Hour, 3 * 24 * time.Hour, 7 * 24 * time.Hour}

// exceptionsRead bounds the exceptions that are counted, the newest first.
const exceptionsRead = 10_000

// Exceptions are those that are open by their age, and those opened within the range that have
// been decided, by the time that it took.
type Exceptions struct {
	Kinds []Kind
	// More: older ones were not counted.
	OpenMore, DecidedMore bool
}

// Kind counts the exceptions of one kind; its slices are by Ages.
type Kind struct {
	Name          string
	Open, Decided []int64
}

// OpenTotal returns the number of open exceptions.
func (k Kind) OpenTotal() int64 { return total(k.Open) }

// DecidedTotal returns the number of decided exceptions.
func (k Kind) DecidedTotal() int64 { return total(k.Decided) }

// Within returns the share of the decided exceptions that took at most as long as Ages[i]; false
// = none was decided.
func (k Kind) Within(i int) (float64, bool) { return share(total(k.Decided[:i+1]), k.DecidedTotal()) }

func total(counts []int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// ageBucket is the SQL for the bucket of a duration in µs.
func ageBucket(us string) string {
	var b strings.Builder
	b.WriteString("CASE")
	for i, end := range Ages {
		fmt.Fprintf(&b, " WHEN %s <= %d THEN %d", us, end.Microseconds(), i)
	}
	fmt.Fprintf(&b, " ELSE %d END", len(Ages))
	return b.String()
}

func (q *reader) exceptions(ctx context.Context) error {
	x := &q.p.Exceptions
	by := map[string]*Kind{}
	for _, part := range []struct {
		age, where string
		args       []any
		to         func(*Kind) []int64
		more       *bool
	}{
		{
			"? - x.opened_at", exception.Moves.In("x.state", exception.Moves.Open()...),
			[]any{q.p.At},
			func(k *Kind) []int64 { return k.Open },
			&x.OpenMore,
		},
		{
			"coalesce(x.resolved_at, x.updated_at) - x.opened_at", "x.id >= ? AND NOT " + exception.Moves.In("x.state", exception.Moves.Open()...),
			[]any{db.IDAt(q.p.Starts[0])},
			func(k *Kind) []int64 { return k.Decided }, &x.DecidedMore,
		},
	} {
		var rows []struct {
			Kind      string
			Bucket, N int64
		}
		err := q.d.Read.NewRaw("SELECT kind, "+ageBucket("age")+" AS bucket, count(*) AS n FROM (SELECT x.kind, "+part.age+
			" AS age FROM exceptions AS x WHERE "+
			part.where+" ORDER BY x.id DESC LIMIT ?) AS w GROUP BY 1, 2", append(part.args, exceptionsRead)...).Scan(ctx, &rows)
		if err != nil {
			return fmt.Errorf("count exceptions by age: %w", err)
		}
		var read int64
		for _, r := range rows {
			if by[r.Kind] == nil {
				by[r.Kind] = &Kind{Name: r.Kind, Open: make([]int64, len(Ages)+1), Decided: make([]int64, len(Ages)+1)}
			}
			part.to(by[r.Kind])[r.Bucket] += r.N
			read += r.N
		}
		*part.more = read >= exceptionsRead
	}
	for _, name := range exception.Kinds {
		if k := by[name]; k != nil {
			x.Kinds = append(x.Kinds, *k)
		}
	}
	slices.SortStableFunc(x.Kinds, func(a, b Kind) int { return int(b.OpenTotal() - a.OpenTotal()) })
	return nil
}
