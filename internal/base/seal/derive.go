package seal

import (
	"crypto/hkdf"
	"crypto/sha256"
)

// Derive is a key of its own for one purpose, made from the current master key
// (HKDF-SHA256). It cannot be turned back into the master key. What is signed
// with it is void once another master key is the current one.
func (k *Keyring) Derive(purpose string) []byte { return derive(k.roots[k.current], purpose) }

func derive(root []byte, purpose string) []byte {
	key, err := hkdf.Expand(sha256.New, root, "backstop "+purpose, keySize)
	if err != nil {
		panic("seal: " + err.Error()) // only for keys longer than 255 hashes
	}
	return key
}
