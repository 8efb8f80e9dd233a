package seal

import (
	"bytes"
	"strings"
	"testing"
)

func master(n byte) []byte { return bytes.Repeat([]byte{n}, keySize) }

func TestATokenIsToldFromAForgedOne(t *testing.T) {
	t.Parallel()
	old, both, other := ring(t, master(1)), ring(t, master(2), master(1)), ring(t, master(3))
	token := old.MAC("bearer").NewToken("bst_")
	for name, k := range map[string]*Keyring{"its key": old, "its key behind a newer one": both} {
		if !k.MAC("bearer").IsToken("bst_", token) {
			t.Errorf("with %s it is refused", name)
		}
	}
	last := token[len(token)-1]
	for name, is := range map[string]bool{
		"another key":          other.MAC("bearer").IsToken("bst_", token),
		"another purpose":      old.MAC("device").IsToken("bst_", token),
		"another prefix":       old.MAC("bearer").IsToken("bso_", "bso_"+token[4:]),
		"no prefix":            old.MAC("bearer").IsToken("", token),
		"no tag":               old.MAC("bearer").IsToken("bst_", NewToken("bst_")),
		"nothing":              old.MAC("bearer").IsToken("bst_", ""),
		"small letters":        old.MAC("bearer").IsToken("bst_", strings.ToLower(token)),
		"another last letter":  old.MAC("bearer").IsToken("bst_", token[:len(token)-1]+string(rune(last^1))),
		"an empty keyring":     new(Keyring).MAC("bearer").IsToken("bst_", token),
		"another random part":  old.MAC("bearer").IsToken("bst_", "bst_A"+token[5:]) && token[4] != 'A',
		"a letter more":        old.MAC("bearer").IsToken("bst_", token+"A"),
		"the tag of a sibling": old.MAC("bearer").IsToken("bst_", NewToken("bst_")+token[len(token)-tagText:]),
	} {
		if is {
			t.Errorf("with %s it is accepted", name)
		}
	}
}

func TestARetiredKeyStillChecksButOpensAndSignsNothing(t *testing.T) {
	t.Parallel()
	old, rotating, now := ring(t, master(1)), ring(t, master(2), master(1)), ring(t, master(2))
	kept := rotating.Retire()
	if len(kept) != 1 || len(now.Retire()) != 0 {
		t.Fatalf("kept are %v", kept)
	}
	with, err := now.WithRetired(kept)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := old.MAC("audit").Sum(old.ID(), []byte("row"))
	if got, ok := with.MAC("audit").Sum(old.ID(), []byte("row")); !ok || !bytes.Equal(got, want) {
		t.Errorf("it checks nothing: %x, %t, want %x", got, ok, want)
	}
	if _, ok := now.MAC("audit").Sum(old.ID(), []byte("row")); ok {
		t.Error("without what was kept it checks too")
	}
	if with.ID() != now.ID() || with.Has(old.ID()) || len(with.SigningKeys()) != 1 {
		t.Error("the retired key opens or signs")
	}
	if !bytes.Equal(with.Derive("x"), now.Derive("x")) {
		t.Error("what is derived from the current key has changed")
	}
	// Another rotation keeps the retired keys.
	next, err := ring(t, master(3), master(2)).WithRetired(kept)
	if err != nil {
		t.Fatal(err)
	}
	if last, err := ring(t, master(3)).WithRetired(next.Retire()); err != nil || len(next.Retire()) != 2 {
		t.Errorf("after two rotations: %v", err)
	} else if got, _ := last.MAC("audit").Sum(old.ID(), []byte("row")); !bytes.Equal(got, want) {
		t.Error("after two rotations the first key is lost")
	}
	// Somebody with write access to the table but without a key cannot add one.
	if with, err := ring(t, master(3)).WithRetired(kept); err == nil || with.MAC("audit").KeyID() == "" {
		t.Errorf("one that does not open: %v", err)
	}
	if _, err := now.WithRetired(Retired{"abc": kept[old.ID()]}); err == nil {
		t.Error("a retired key under another name opens")
	}
}
