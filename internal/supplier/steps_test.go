package supplier_test

import (
	"reflect"
	"strings"
	"testing"

	"backstop/internal/base/text"
	"backstop/internal/supplier"

	"pgregory.net/rapid"
)

func TestStepsAreReadAsTheyWereStored(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"", "a", `\`, `\t`, "\t", "\n", "!", "[", "金额", "a\tb\\n\nc", `"`})
		step := rapid.Custom(func(t *rapid.T) supplier.Step {
			s := supplier.Step{Name: word.Draw(t, "name") + "x", OK: rapid.Bool().Draw(t, "ok"), TookUS: rapid.Int64Min(0).Draw(t, "took")}
			if rapid.Bool().Draw(t, "sentence") {
				s.Detail = word.Draw(t, "detail")
				return s
			}
			s.Message = text.Message{Code: "k." + word.Draw(t, "code")}
			if !s.OK {
				if args := rapid.SliceOfN(word, 0, 3).Draw(t, "args"); len(args) > 0 {
					s.Args = args
				}
			}
			return s
		})
		all := supplier.Steps(rapid.SliceOfN(step, 1, 5).Draw(t, "steps"))
		for i := range all { // a passed step of a sentence that begins like a failed one is none of ours
			if all[i].OK && all[i].Detail == "!" {
				all[i].Detail = ""
			}
		}
		var stored supplier.Steps
		if err := stored.Scan(all.Text()); err != nil || !reflect.DeepEqual(stored, all) {
			t.Fatalf("%q is read as %+v, %v; stored were %+v", all.Text(), stored, err, all)
		}
	})
}

func TestStepsTakeNoTextThatADatabaseRefuses(t *testing.T) {
	t.Parallel()
	all := supplier.Steps{{Name: "amount", Message: text.Message{Code: "k", Args: []string{"a\x00b\xff"}}}}
	if got := all.Text(); strings.ContainsAny(got, "\x00") || strings.ToValidUTF8(got, "") != got {
		t.Errorf("%q", got)
	}
	for _, wrong := range []string{"name", "name\tx\tk", "a\t1\n"} {
		if err := new(supplier.Steps).Scan(wrong); err == nil {
			t.Errorf("%q is read", wrong)
		}
	}
}
