package text

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
)

var (
	codes  Codes
	inside = codes.New("t.inside", Text{ZH: "有 NUL", EN: "has a NUL"})
	at     = codes.New("t.at", Text{ZH: "JSON 在 %[2]s 处%[1]s", EN: "the JSON %s at %s"})
	plain  = codes.New("t.plain", Text{ZH: "100% 一致", EN: "100% as ordered"})
)

func TestACodeIsSaidInEveryLanguageAlsoFromARow(t *testing.T) {
	t.Parallel()
	known := Join(&codes)
	for _, c := range []struct {
		text   Message
		zh, en string
		row    string
	}{
		{plain.Say(), "100% 一致", "100% as ordered", `{"code":"t.plain"}`},
		{at.Say(inside, `"a.b"`), `JSON 在 "a.b" 处有 NUL`, `the JSON has a NUL at "a.b"`, `{"code":"t.at","args":["@t.inside","\"a.b\""]}`},
		{at.Say("has a %s", 7), "JSON 在 7 处has a %s", "the JSON has a %s at 7", `{"code":"t.at","args":["has a %s","7"]}`},
	} {
		if got := c.text.Error(); got != c.en {
			t.Errorf("%q, want %q", got, c.en)
		}
		row, err := json.Marshal(c.text)
		if err != nil || string(row) != c.row {
			t.Errorf("the row keeps %s, want %s: %v", row, c.row, err)
		}
		var read Message
		if err := json.Unmarshal(row, &read); err != nil {
			t.Fatal(err)
		}
		if zh, en := known.Say(read, "zh", nil), known.Say(read, "en", nil); zh != c.zh || en != c.en {
			t.Errorf("a row is read as %q and %q, want %q and %q", zh, en, c.zh, c.en)
		}
	}
}

func TestACodeOfANewerProgramIsShownAsItIs(t *testing.T) {
	t.Parallel()
	if got := Join(&codes).Say(Message{Code: "t.newer", Args: []string{"a", "@t.unknown"}}, "zh", nil); got != "t.newer a @t.unknown" {
		t.Error(got)
	}
	defer func() {
		if recover() == nil {
			t.Error("two codes of one key are accepted")
		}
	}()
	Join(&codes, &codes)
}

func TestAnErrorKeepsItsCode(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("read it: %w", at.Say(inside, "x"))
	if s := Of(err); s.Code != "t.at" || len(s.Args) != 2 {
		t.Errorf("%+v", s)
	}
	if s := Of(errors.New("else")); s.Code != "" {
		t.Errorf("%+v", s)
	}
	if got := at.Say("a", "b").Map(func(string) string { return "*" }).Error(); got != "the JSON * at *" {
		t.Error(got)
	}
}
