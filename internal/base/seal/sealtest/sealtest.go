// Package sealtest gives tests a keyring.
package sealtest

import (
	"bytes"
	"testing"

	"backstop/internal/base/seal"
)

// Ring returns a keyring of master keys made from numbers, the current one first.
func Ring(t testing.TB, keys ...byte) *seal.Keyring {
	t.Helper()
	masters := make([][]byte, len(keys))
	for i, n := range keys {
		masters[i] = bytes.Repeat([]byte{n}, 32)
	}
	k, err := seal.NewKeyring(masters...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}
