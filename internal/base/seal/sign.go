package seal

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// SigningKey is a public key of this installation. Its key pair is derived from a master key,
// so that no further key must be stored.
type SigningKey struct {
	ID     string
	Public ed25519.PublicKey
}

// signingKey derives the key pair of a master key. The label separates it from every other
// use of that key.
func signingKey(master []byte) (ed25519.PrivateKey, error) {
	seed, err := hkdf.Key(sha256.New, master, nil, "backstop evidence signing v1", ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("derive the signing key: %w", err)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// SigningKeyID is the id of a public key: the start of its hash.
func SigningKeyID(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:8])
}

// Sign signs with the key of the current master key (Ed25519).
func (k *Keyring) Sign(message []byte) (SigningKey, []byte) {
	private := k.signers[k.current]
	public, _ := private.Public().(ed25519.PublicKey)
	return SigningKey{SigningKeyID(public), public}, ed25519.Sign(private, message)
}

// SigningKeys returns the public keys of all master keys of the keyring, the current one
// first.
func (k *Keyring) SigningKeys() (keys []SigningKey) {
	for _, id := range append([]string{k.current}, slices.Sorted(maps.Keys(k.signers))...) {
		public, _ := k.signers[id].Public().(ed25519.PublicKey)
		key := SigningKey{SigningKeyID(public), public}
		if !slices.ContainsFunc(keys, func(have SigningKey) bool { return have.ID == key.ID }) {
			keys = append(keys, key)
		}
	}
	return keys
}
