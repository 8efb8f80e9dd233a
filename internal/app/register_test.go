package app

import (
	"slices"
	"testing"

	"backstop/internal/access"
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/list"
	"backstop/views/wording"
)

// A code used by two packages would get either text.
func TestEveryKindsTextsAreInTheCatalog(t *testing.T) {
	t.Parallel()
	known := Texts()
	for _, kind := range Kinds() {
		if _, ok := known[kind.Name+".signature_holds"]; !ok && kind.Name != "sorted-params" {
			t.Errorf("the texts of %s are not known", kind.Name)
		}
	}
	if len(known) < 100 {
		t.Errorf("only %d texts", len(known))
	}
}

// What batches do is declared by acts; the filter and the texts of batches follow.
func TestEveryActionOfBatchesHasItsTextsAndItsFilter(t *testing.T) {
	t.Parallel()
	a := opened(t)
	var actions []string
	for _, k := range a.acts(nil, access.NewOperators(a.db, a.audit)).Sets() {
		actions = append(actions, k.Set.Action)
		if wording.BatchActions[k.Set.Action] == [2]text.Text{} {
			t.Errorf("%s has no texts", k.Set.Action)
		}
	}
	slices.Sort(actions)
	fields := console.BatchesList.Fields
	filter := slices.Clone(fields[slices.IndexFunc(fields, func(f list.Field) bool { return f.Name == "action" })].Values)
	slices.Sort(filter)
	if actions = slices.Compact(actions); !slices.Equal(actions, filter) || len(actions) != len(wording.BatchActions) {
		t.Errorf("batches do %v, and the filter has %v", actions, filter)
	}
}
