package api

import "testing"

func TestADetailHasItsReasonInWordsAlone(t *testing.T) {
	t.Parallel()
	for detail, want := range map[string]string{
		`{"reason":"the JSON has a NUL","said":{"code":"message.has_nul"},"supplier":"wx"}`: `{"reason":"the JSON has a NUL","supplier":"wx"}`,
		`{"want":1,"got":2}`: `{"want":1,"got":2}`,
		`"odd"`:              `"odd"`,
	} {
		if got := inWords([]byte(detail)); string(got) != want {
			t.Errorf("%s is shown as %s, want %s", detail, got, want)
		}
	}
}
