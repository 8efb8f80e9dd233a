package work

import (
	"testing"

	"backstop/internal/console"
	"backstop/views/ui"
)

// The account of a message is named by its number, or as ours where the supplier has no number for it.
func TestTheAccountOfAMessageIsNamed(t *testing.T) {
	t.Parallel()
	for identity, want := range map[string]string{`{"account":"own"}`: "我方账户", `{"mch_id":"1900","app_id":"wx1"}`: "app_id wx1 · mch_id 1900"} {
		x := ExceptionData{Exception: &console.Exception{}}
		x.Payload = `{"identity":` + identity + `}`
		got := ""
		for _, f := range x.message(&ui.Page{Language: "zh"}) {
			if f.Label == tMsgIdentity {
				got = f.Text
			}
		}
		if got != want {
			t.Errorf("%s is %q, want %q", identity, got, want)
		}
	}
}
