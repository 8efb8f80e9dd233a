package list

import (
	"strings"
	"testing"
)

func TestListsHaveDifferentNames(t *testing.T) {
	kept := registered
	t.Cleanup(func() { registered = kept })
	New(Spec{Name: "one"})
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "declared twice") {
			t.Errorf("the panic is %q", text)
		}
	}()
	New(Spec{Name: "one"})
}

func TestFieldsTakeTheirValuesOnly(t *testing.T) {
	t.Parallel()
	values := []string{"a", "b"}
	checked := func(value string) string { return strings.TrimLeft(value, "0123456789") }
	for _, x := range []struct {
		f     Field
		value string
		ok    bool
	}{
		{Field{}, "x')", true},
		{Field{}, "", false},
		{Field{}, "a\x00b", false},
		{Field{}, "\xff", false},
		{Field{}, strings.Repeat("a", MaxText+1), false},
		{Field{Values: values}, "b", true},
		{Field{Values: values}, "c", false},
		{Field{Values: values}, "a ", false},
		{Field{Values: values, Suggest: noChoices}, "c", true},
		{Field{Values: values, Check: checked}, "12", true},
		{Field{Values: values, Check: checked}, "a", false},
		{Field{Values: values, Suggest: noChoices, Check: checked}, "c", false},
	} {
		if problem := x.f.problem(x.value); (problem == "") != x.ok {
			t.Errorf("%+v takes %.20q: %q, want %v", x.f, x.value, problem, x.ok)
		}
	}
}

func TestIDsAreWholeNumbersAboveZero(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"1": true, "9223372036854775807": true, "9223372036854775808": false, "0": false, "-1": false, "+1": false, "01": false, "x": false,
		"": false, "１": false,
	} {
		if ok := ID(text) == ""; ok != want {
			t.Errorf("%q is an id: %v, want %v", text, ok, want)
		}
	}
}
