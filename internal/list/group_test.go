package list

import (
	"reflect"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
)

// Rows are counted by the values of a column: those that match, the newest if there are too many.
func TestRowsAreCountedByGroups(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ids := fill(t, d, 20)
		spec := exceptions(1000)
		count := func(q Query, s Slice, max int) ([]Group, bool) {
			t.Helper()
			groups, more, err := q.Groups(t.Context(), d, s, "state", max)
			if err != nil {
				t.Fatal(err)
			}
			return groups, more
		}
		all := Query{Spec: spec, Scope: All()}
		if got, more := count(all, Slice{}, 9); more || !reflect.DeepEqual(got, []Group{{"open", 16}, {"resolved", 4}}) {
			t.Errorf("all: %v, more %t", got, more)
		}
		if got, _ := count(all, Slice{}, 1); !reflect.DeepEqual(got, []Group{{"open", 16}}) {
			t.Errorf("the largest: %v", got)
		}
		if got, _ := count(all.With("state", "resolved"), Slice{}, 9); !reflect.DeepEqual(got, []Group{{"resolved", 4}}) {
			t.Errorf("a filter: %v", got)
		}
		if got, _ := count(Query{Spec: spec, Scope: Of(99)}, Slice{}, 9); len(got) > 0 {
			t.Errorf("of a merchant without rows: %v", got)
		}
		few := *spec
		few.SumRows = 5
		got, more := count(Query{Spec: &few, Scope: All()}, Slice{Only: ids}, 9)
		n := int64(0)
		for _, g := range got {
			n += g.Rows
		}
		if !more || n > 6 {
			t.Errorf("of too many rows: %v, more %t", got, more)
		}
	})
}
