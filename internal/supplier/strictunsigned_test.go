package supplier

import (
	"encoding/json"
	"encoding/xml"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode"
)

func TestPaddingThatIsNotSignedIsBounded(t *testing.T) {
	t.Parallel()
	signed := map[string]string{"order": "O-1", "subject": strings.Repeat("望远镜🔭", 300), "note": strings.Repeat(`"&<>`, 200)}
	form := url.Values{}
	for name, value := range signed {
		form.Set(name, value)
	}
	asJSON, err := json.Marshal(signed)
	if err != nil {
		t.Fatal(err)
	}
	var asXML strings.Builder
	for name, value := range signed {
		asXML.WriteString("<" + name + ">")
		if err := xml.EscapeText(&asXML, []byte(value)); err != nil {
			t.Fatal(err)
		}
		asXML.WriteString("</" + name + ">")
	}
	for name, body := range map[string]string{
		"form": form.Encode(), "JSON": string(asJSON), "JSON in ASCII": inASCII(string(asJSON)), "XML": asXML.String(),
	} {
		for pad, want := range map[int]bool{0: true, MaxUnsigned: true, MaxUnsigned + 24<<10: false} {
			err := CheckUnsigned(&Request{Body: []byte(body + strings.Repeat(" ", pad))}, signed, slices.Collect(maps.Keys(signed)))
			if (err == nil) != want {
				t.Errorf("%s of %d bytes with %d more: %v", name, len(body), pad, err)
			}
		}
	}
}

// inASCII writes each other rune as PHP's json_encode does.
func inASCII(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < unicode.MaxASCII:
			b.WriteRune(r)
		case r <= 0xFFFF:
			b.WriteString(`\u4e2d`)
		default:
			b.WriteString(`\ud83d\ude00`)
		}
	}
	return b.String()
}

func TestAShortMessageHasNoRoomForPadding(t *testing.T) {
	t.Parallel()
	signed := map[string]string{"order": "20260301080000001", "trade": "2026030108000100001", "total": "19.99", "state": "OK"}
	const body = "order=20260301080000001&trade=2026030108000100001&total=19.99&state=OK&sign=0123456789abcdef0123456789abcdef"
	for pad, want := range map[int]bool{4000: true, 4500: false, 5000: false, 250_000: false} {
		err := CheckUnsigned(&Request{RawQuery: body + strings.Repeat("&", pad)}, signed, slices.Collect(maps.Keys(signed)))
		if (err == nil) != want {
			t.Errorf("%d bytes of padding: %v", pad, err)
		}
	}
	if CheckUnsignedQuery(&Request{RawQuery: strings.Repeat("a", MaxUnsigned+1)}) == nil ||
		CheckUnsignedQuery(&Request{RawQuery: "a=1", Body: make([]byte, 100_000)}) != nil {
		t.Error("of a kind that signs its body, the query alone counts")
	}
}
