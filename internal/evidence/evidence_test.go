package evidence

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"testing"

	"backstop/internal/base/seal"
)

func keyring(t *testing.T, fill byte) *seal.Keyring {
	t.Helper()
	k, err := seal.NewKeyring(bytes.Repeat([]byte{fill}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestCanonicalIsRFC8785(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"b": 1, "a": [true, null, -7], "": "x"}`: `{"":"x","a":[true,null,-7],"b":1}`,
		`"\u20ac\u2028\u007f\u003c\/\u000a\u0001"`: "\"€\u2028\u007f</\\n\\u0001\"",
		` 9007199254740991 `:                       `9007199254740991`,
	} {
		if got, err := Canonical([]byte(text)); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{`1.5`, `1e3`, `9007199254740992`, `-0`, `{"a":1} {}`, `{"a":`, ``} {
		if got, err := Canonical([]byte(text)); err == nil {
			t.Errorf("%s became %s", text, got)
		}
	}
}

func TestAFileIsCheckedWithThePublicKeyAlone(t *testing.T) {
	t.Parallel()
	keys := keyring(t, 1)
	f, err := Sign(map[string]any{"order_no": "20261120<&>", "amount": "9007199254740993", "events": []int{1, 2}}, keys)
	if err != nil {
		t.Fatal(err)
	}
	text, err := f.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	mine := keys.SigningKeys()[0].Public
	for _, trusted := range []ed25519.PublicKey{nil, mine} {
		if _, err := Check(text, trusted); err != nil {
			t.Errorf("with the key %x: %v", trusted, err)
		}
	}
	if _, err := Check(text, keyring(t, 2).SigningKeys()[0].Public); !errors.Is(err, ErrOtherKey) {
		t.Errorf("with another key: %v", err)
	}
	spaced := bytes.ReplaceAll(text, []byte(`,"`), []byte(`, "`))
	if _, err := Check(spaced, mine); err != nil {
		t.Errorf("written with spaces: %v", err)
	}
}

// Every byte that says something is covered.
func TestAnAlteredFileIsRefused(t *testing.T) {
	t.Parallel()
	f, err := Sign(map[string]any{"order_no": "1", "paid": true, "n": 12}, keyring(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := f.Bytes()
	text = bytes.TrimSpace(text)
	for i := range text {
		altered := bytes.Clone(text)
		altered[i] ^= 1
		if _, err := Check(altered, nil); err == nil {
			t.Errorf("byte %d was altered and accepted: %s", i, altered)
		}
	}
}

func TestAFileHasOneReading(t *testing.T) {
	t.Parallel()
	f, err := Sign(map[string]any{"order_no": "1"}, keyring(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := f.Bytes()
	for name, altered := range map[string][]byte{
		"a name twice":         bytes.Replace(text, []byte(`{"order_no"`), []byte(`{"order_no":"2","order_no"`), 1),
		"the evidence twice":   bytes.Replace(text, []byte(`"evidence"`), []byte(`"evidence":{},"evidence"`), 1),
		"in another case":      bytes.Replace(text, []byte(`"evidence"`), []byte(`"Evidence":{},"evidence"`), 1),
		"something more":       bytes.Replace(text, []byte(`"sha256"`), []byte(`"note":"paid","sha256"`), 1),
		"something behind it":  append(bytes.Clone(text), "{}"...),
		"nothing":              nil,
		"an order of somebody": []byte(`{"order_no":"1"}`),
	} {
		if _, err := Check(altered, nil); !errors.Is(err, ErrFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnotherMasterKeySignsWithAnotherKey(t *testing.T) {
	t.Parallel()
	both, err := seal.NewKeyring(bytes.Repeat([]byte{2}, 32), bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	old, now := keyring(t, 1).SigningKeys()[0], keyring(t, 2).SigningKeys()[0]
	keys := both.SigningKeys()
	if len(keys) != 2 || keys[0].ID != now.ID || keys[1].ID != old.ID || old.ID == now.ID {
		t.Errorf("%v of %v and %v", keys, now, old)
	}
}

// Whatever is done to a file: if it still passes, it says the same.
func FuzzCheck(f *testing.F) {
	keys, err := seal.NewKeyring(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		f.Fatal(err)
	}
	file, err := Sign(map[string]any{
		"order_no": "20261120<&>\u2028", "amount": "1999",
		"events": []any{1, -2, true, nil, map[string]any{"": "x"}},
	}, keys)
	if err != nil {
		f.Fatal(err)
	}
	text, err := file.Bytes()
	if err != nil {
		f.Fatal(err)
	}
	signed, err := Canonical(file.Evidence)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(bytes.ReplaceAll(text, []byte(`,"`), []byte(`, "`)))
	f.Add(bytes.ReplaceAll(text, []byte(`1999`), []byte(`19990`)))
	f.Add([]byte(`{"format":"x","evidence":{},"sha256":"","signature":{}}`))
	mine := keys.SigningKeys()[0].Public
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = Check(text, nil)
		got, err := Check(text, mine)
		if err != nil {
			return
		}
		if says, err := Canonical(got.Evidence); err != nil || !bytes.Equal(says, signed) {
			t.Fatalf("%q was accepted as %s, %v", text, says, err)
		}
	})
}
