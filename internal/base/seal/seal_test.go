package seal

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func keys() *rapid.Generator[[]byte] { return rapid.SliceOfN(rapid.Byte(), keySize, keySize) }

func places() *rapid.Generator[Place] {
	return rapid.Custom(func(t *rapid.T) Place {
		return Place{rapid.String().Draw(t, "table"), rapid.String().Draw(t, "row"), rapid.String().Draw(t, "field")}
	})
}

func ring(t rapid.TB, keys ...[]byte) *Keyring {
	t.Helper()
	k, err := NewKeyring(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestWhatWasSealedOpensAtItsPlace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k, place := ring(t, keys().Draw(t, "key")), places().Draw(t, "place")
		plaintext := rapid.SliceOf(rapid.Byte()).Draw(t, "plaintext")
		sealed := k.Seal(place, plaintext)
		got, err := k.Open(place, sealed)
		if err != nil || !bytes.Equal(got, plaintext) {
			t.Fatalf("opened %x, %v; want %x", got, err, plaintext)
		}
		if k.NeedsReseal(sealed) {
			t.Fatal("a text under the current key is to be sealed again")
		}
		if k.Seal(place, plaintext) == sealed {
			t.Fatal("sealing twice gives the same text: the nonce repeats")
		}
	})
}

func TestAnyFlippedBitKeepsItShut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k, place := ring(t, keys().Draw(t, "key")), places().Draw(t, "place")
		sealed := []byte(k.Seal(place, rapid.SliceOf(rapid.Byte()).Draw(t, "plaintext")))
		for i := range len(sealed) * 8 {
			sealed[i/8] ^= 1 << (i % 8)
			if _, err := k.Open(place, string(sealed)); !errors.Is(err, ErrSealed) && !errors.Is(err, ErrKey) {
				t.Fatalf("bit %d of %q: %v", i, sealed, err)
			}
			sealed[i/8] ^= 1 << (i % 8)
		}
	})
}

func TestASealedTextHasOneSpelling(t *testing.T) {
	t.Parallel()
	k, place := ring(t, make([]byte, keySize)), Place{"suppliers", "1", "api_v3_key"}
	sealed := k.Seal(place, []byte("secret"))
	for _, other := range []string{sealed + "\n", sealed + "=", sealed + "==", " " + sealed, strings.ToUpper(sealed), sealed[:40] + "\r\n" +
		sealed[40:]} {
		if _, err := k.Open(place, other); err == nil {
			t.Errorf("%q opens too", other)
		}
	}
}

func TestAtAnotherPlaceItStaysShut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k := ring(t, keys().Draw(t, "key"))
		place := places().Draw(t, "place")
		other := place // but for one part
		part := rapid.SampledFrom([]*string{&other.Table, &other.Row, &other.Field}).Draw(t, "part")
		*part += rapid.StringN(1, -1, -1).Draw(t, "more")
		if _, err := k.Open(other, k.Seal(place, []byte("secret"))); !errors.Is(err, ErrSealed) {
			t.Fatalf("sealed for %q, opened for %q: %v", place, other, err)
		}
	})
}

// TestPlacesThatReadAlikeDiffer checks places whose parts give the same text when they are
// joined by a character that a part may contain.
func TestPlacesThatReadAlikeDiffer(t *testing.T) {
	t.Parallel()
	k := ring(t, make([]byte, keySize))
	one, two := Place{"merchants", "1|2", "secret"}, Place{"merchants|1", "2", "secret"}
	if joined := func(p Place) string { return p.Table + "|" + p.Row + "|" + p.Field }; joined(one) != joined(two) {
		t.Fatal("the two places do not read alike: this test shows nothing")
	}
	if _, err := k.Open(two, k.Seal(one, []byte("secret"))); !errors.Is(err, ErrSealed) {
		t.Errorf("opened at the other place: %v", err)
	}
}

func TestRotationOpensOldTextsAndSealsUnderTheNewKey(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		oldKey, newKey := keys().Draw(t, "old"), keys().Draw(t, "new")
		if bytes.Equal(oldKey, newKey) {
			t.Skip("the same key")
		}
		place := places().Draw(t, "place")
		before, during, after := ring(t, oldKey), ring(t, newKey, oldKey), ring(t, newKey)
		sealed := before.Seal(place, []byte("secret"))

		plaintext, err := during.Open(place, sealed)
		if err != nil || string(plaintext) != "secret" || !during.NeedsReseal(sealed) {
			t.Fatalf("during rotation: %q, %v, to be sealed again %v", plaintext, err, during.NeedsReseal(sealed))
		}
		again := during.Seal(place, plaintext)
		if got, err := after.Open(place, again); err != nil || string(got) != "secret" || after.NeedsReseal(again) {
			t.Fatalf("after rotation: %q, %v", got, err)
		}
		if _, err := after.Open(place, sealed); !errors.Is(err, ErrKey) {
			t.Fatalf("under a removed key: %v, want ErrKey", err)
		}
	})
}

func TestWhatIsNoSealedTextIsRefused(t *testing.T) {
	t.Parallel()
	k := ring(t, make([]byte, keySize))
	for _, text := range []string{
		"", "whsec_plain", "sealed:", "sealed:v1:", "sealed:v1:" + k.current, "sealed:v1:" + k.current + ":",
		"sealed:v1:" + k.current + ":AAAA", "sealed:v2:" + k.current + ":AAAA",
	} {
		if _, err := k.Open(Place{}, text); !errors.Is(err, ErrSealed) {
			t.Errorf("%q: %v, want ErrSealed", text, err)
		}
	}
	if !k.NeedsReseal("whsec_plain") {
		t.Error("a plain text need not be sealed")
	}
}

func TestNothingPrintedHoldsKeyOrPlaintext(t *testing.T) {
	t.Parallel()
	key := bytes.Repeat([]byte("K"), keySize)
	k, other := ring(t, key), ring(t, make([]byte, keySize))
	place := Place{"merchants", "1", "secret"}
	sealed := k.Seal(place, []byte("hunter2"))
	_, wrongKey := other.Open(place, sealed)
	_, wrongPlace := k.Open(Place{}, sealed)
	_, wrongText := ParseKeys("KKKKKKKKKKKKKKKK")
	printed := fmt.Sprintf("%v %+v %#v %s %v %v %v", k, k, k, sealed, wrongKey, wrongPlace, wrongText)
	for _, part := range []string{"KKKK", "75 75 75", "0x4b, 0x4b", "4b4b", "hunter2"} {
		if strings.Contains(printed, part) {
			t.Errorf("%q can be read in %s", part, printed)
		}
	}
}

func TestTokensAreLongUniqueAndHashedOneWay(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		token := NewToken("sk_live_")
		if len(token) != len("sk_live_")+52 || !strings.HasPrefix(token, "sk_live_") || seen[token] {
			t.Fatalf("token of %d characters, seen before %v", len(token), seen[token])
		}
		seen[token] = true
	}
	// The SHA-256 of "abc" is in FIPS 180-2, appendix B.1.
	if got := HashToken("abc"); got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("hash %s", got)
	}
}

func FuzzOpen(f *testing.F) {
	k, place := ring(f, make([]byte, keySize)), Place{"merchants", "1", "secret"}
	f.Add("sealed:v1:" + k.current + ":AAAA")
	f.Add("sealed:v1::")
	f.Fuzz(func(t *testing.T, text string) {
		if plaintext, err := k.Open(place, text); err == nil {
			t.Errorf("%q, which was never sealed, opens as %q", text, plaintext)
		}
	})
}
