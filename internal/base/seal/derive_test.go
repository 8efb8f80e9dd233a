package seal

import (
	"bytes"
	"testing"
)

func TestDerivedKeysDifferByPurposeAndMasterKey(t *testing.T) {
	t.Parallel()
	ring := func(b byte) *Keyring {
		k, err := NewKeyring(bytes.Repeat([]byte{b}, keySize))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	one := ring(1)
	if !bytes.Equal(one.Derive("cursors"), ring(1).Derive("cursors")) {
		t.Error("two nodes of one master key derive different keys")
	}
	for _, other := range [][]byte{one.Derive("other"), ring(2).Derive("cursors"), bytes.Repeat([]byte{1}, keySize)} {
		if len(other) != keySize || bytes.Equal(one.Derive("cursors"), other) {
			t.Errorf("%x is no key of its own", other)
		}
	}
}
