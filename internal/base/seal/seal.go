// Package seal encrypts secrets at rest: suppliers' keys and merchants' signing secrets
// are stored in the database only encrypted under the master key, which is not in the
// database.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ErrKey means that a text was sealed under a master key that is not in the keyring. The text
// may be intact: add the key.
var ErrKey = errors.New("sealed under a master key that is not configured")

// ErrSealed means that a text was altered, was moved from another place, or is not a
// sealed text.
var ErrSealed = errors.New("sealed text is damaged or belongs to another place")

// version is the prefix of every sealed text, so that another cipher can be introduced
// gradually.
const version = "sealed:v1:"

// Place is where a sealed text is stored. It is authenticated with the text: a text that was
// copied to another row or field, for example by somebody with write access to the database
// but without the key, does not open.
type Place struct{ Table, Row, Field string }

// Keyring holds the current master key and older ones, whose texts still open. It is
// immutable and safe for concurrent use.
type Keyring struct {
	current string // id of the key that seals
	ids     []string
	keys    map[string]cipher.AEAD
	signers map[string]ed25519.PrivateKey
	// roots are the sources of derived keys, by the id of their master key; retired master
	// keys are included.
	roots map[string][]byte
}

// NewKeyring returns a keyring. Each key has 32 bytes; the current one is first.
func NewKeyring(keys ...[]byte) (*Keyring, error) {
	if len(keys) == 0 {
		return nil, errors.New("no master key: at least one is needed")
	}
	k := &Keyring{
		current: keyID(keys[0]), keys: map[string]cipher.AEAD{}, signers: map[string]ed25519.PrivateKey{},
		roots: map[string][]byte{},
	}
	for i, key := range keys {
		if len(key) != keySize {
			return nil, fmt.Errorf("master key %d has %d bytes: use %d", i+1, len(key), keySize)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("master key %d: %w", i+1, err)
		}
		// The nonce is random for each text. 96 bits allow 2^32 texts under one
		// key (NIST SP 800-38D, 8.3), far more than an installation has secrets.
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("master key %d: %w", i+1, err)
		}
		if !k.Has(keyID(key)) {
			k.ids = append(k.ids, keyID(key))
		}
		k.keys[keyID(key)] = aead
		if k.signers[keyID(key)], err = signingKey(key); err != nil {
			return nil, fmt.Errorf("master key %d: %w", i+1, err)
		}
		if k.roots[keyID(key)], err = hkdf.Extract(sha256.New, key, []byte("backstop derived keys")); err != nil {
			return nil, fmt.Errorf("derive from master key %d: %w", i+1, err)
		}
	}
	return k, nil
}

// keyID identifies a key without revealing it: the start of a hash with its own label.
func keyID(key []byte) string {
	sum := sha256.Sum256(append([]byte("backstop master key id\x00"), key...))
	return hex.EncodeToString(sum[:6])
}

// encoding is strict, so that each sealed text has only one representation.
var encoding = base64.RawStdEncoding.Strict()

// Seal encrypts plaintext under the current key for one place:
// "sealed:v1:<key id>:<base64 of nonce, ciphertext and tag>".
func (k *Keyring) Seal(place Place, plaintext []byte) string {
	head := version + k.current + ":"
	return head + encoding.EncodeToString(k.keys[k.current].Seal(nil, nil, plaintext, bound(head, place)))
}

// Open decrypts a text sealed for place, under the current or an older key. Its errors are
// ErrKey and ErrSealed; they contain no part of the text.
func (k *Keyring) Open(place Place, sealed string) ([]byte, error) {
	id, body, ok := split(sealed)
	if !ok {
		return nil, ErrSealed
	}
	aead, ok := k.keys[id]
	if !ok {
		return nil, ErrKey
	}
	// The decoder skips line breaks; Seal writes none.
	box, err := encoding.DecodeString(body)
	if err != nil || strings.ContainsAny(body, "\r\n") {
		return nil, ErrSealed
	}
	plaintext, err := aead.Open(nil, nil, box, bound(version+id+":", place))
	if err != nil {
		return nil, ErrSealed
	}
	return plaintext, nil
}

// NeedsReseal reports whether a text is sealed under a key other than the current one, or
// is not sealed at all.
func (k *Keyring) NeedsReseal(sealed string) bool {
	id, _, ok := split(sealed)
	return !ok || id != k.current
}

// ID identifies the current key without revealing it.
func (k *Keyring) ID() string { return k.current }

// IDs are the ids of all keys, in the given order.
func (k *Keyring) IDs() []string { return slices.Clone(k.ids) }

// SealingUnder returns the keyring with another of its keys as the current one; false if the
// keyring does not have that key.
func (k *Keyring) SealingUnder(id string) (*Keyring, bool) {
	if !k.Has(id) {
		return nil, false
	}
	other := *k
	other.current = id
	return &other, true
}

// Has reports whether the keyring has the key with the id.
func (k *Keyring) Has(id string) bool {
	_, ok := k.keys[id]
	return ok
}

// sealedText matches the beginning of a sealed text.
var sealedText = regexp.MustCompile(regexp.QuoteMeta(version) + "([^:]*):")

// KeyIDs returns the key ids of all sealed texts within a text.
func KeyIDs(text string) (ids []string) {
	for _, m := range sealedText.FindAllStringSubmatch(text, -1) {
		ids = append(ids, m[1])
	}
	return ids
}

func split(sealed string) (id, body string, ok bool) {
	rest, ok := strings.CutPrefix(sealed, version)
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, ":")
}

// bound returns the additional authenticated data. Each part is preceded by its length, so
// that no two places have the same bytes.
func bound(head string, p Place) []byte {
	var b []byte
	for _, part := range []string{head, p.Table, p.Row, p.Field} {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	return b
}

// Derive returns a key for one purpose, derived from the current master key (HKDF-SHA256). The
// master key cannot be computed from it. Signatures made with it become invalid when another
// master key becomes the current one.
func (k *Keyring) Derive(purpose string) []byte { return derive(k.roots[k.current], purpose) }

func derive(root []byte, purpose string) []byte {
	key, err := hkdf.Expand(sha256.New, root, "backstop "+purpose, keySize)
	if err != nil {
		panic("seal: " + err.Error()) // only for keys longer than 255 hashes
	}
	return key
}

// NewToken returns a new token: prefix and 52 characters of base32, 260 random bits.
func NewToken(prefix string) string { return prefix + rand.Text() + rand.Text() }

// HashToken returns the stored form of a token: SHA-256 in hex. It is only for secrets of
// NewToken's strength: 260 random bits cannot be guessed, so a slow password hash would only
// cost time on every request.
func HashToken(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
