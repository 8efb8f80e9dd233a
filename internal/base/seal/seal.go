// Package seal keeps secrets at rest: suppliers' keys and merchants' signing
// secrets lie in the database only encrypted under the master key, which is not
// in the database.
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

// ErrKey says that a text was sealed under a master key that the keyring does
// not hold. The text may be fine: add the key it was sealed under.
var ErrKey = errors.New("sealed under a master key that is not configured")

// ErrSealed says that a text was altered, moved from another place, or is not a
// sealed text at all.
var ErrSealed = errors.New("sealed text is damaged or belongs to another place")

// version leads every sealed text, so that another cipher can come beside this
// one without a flag day.
const version = "sealed:v1:"

// Place is where a sealed text lives. It is authenticated with the text: copied
// to another row or field, for example by somebody who may write the database
// but not read the key, the text does not open.
type Place struct{ Table, Row, Field string }

// Keyring holds the current master key and the older ones, whose texts still
// open. It is immutable and safe for concurrent use.
type Keyring struct {
	current string // id of the key that seals
	ids     []string
	keys    map[string]cipher.AEAD
	signers map[string]ed25519.PrivateKey
	// roots are what keys for one purpose are derived from, by the id of their master
	// key; also of master keys that were retired.
	roots map[string][]byte
}

// NewKeyring makes a keyring. Keys have 32 bytes each, the current one first.
func NewKeyring(keys ...[]byte) (*Keyring, error) {
	if len(keys) == 0 {
		return nil, errors.New("no master key: at least one is needed")
	}
	k := &Keyring{current: keyID(keys[0]), keys: map[string]cipher.AEAD{}, signers: map[string]ed25519.PrivateKey{}, roots: map[string][]byte{}}
	for i, key := range keys {
		if len(key) != keySize {
			return nil, fmt.Errorf("master key %d has %d bytes: use %d", i+1, len(key), keySize)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("master key %d: %w", i+1, err)
		}
		// The nonce is random for each text. 96 bits allow 2^32 texts under one
		// key (NIST SP 800-38D, 8.3), far above all secrets of an installation.
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

// keyID names a key without telling anything of it: the start of a hash with a
// label of its own.
func keyID(key []byte) string {
	sum := sha256.Sum256(append([]byte("backstop master key id\x00"), key...))
	return hex.EncodeToString(sum[:6])
}

// encoding is strict, so that each sealed text has one spelling only.
var encoding = base64.RawStdEncoding.Strict()

// Seal encrypts plaintext under the current key for one place:
// "sealed:v1:<key id>:<base64 of nonce, ciphertext and tag>".
func (k *Keyring) Seal(place Place, plaintext []byte) string {
	head := version + k.current + ":"
	return head + encoding.EncodeToString(k.keys[k.current].Seal(nil, nil, plaintext, bound(head, place)))
}

// Open decrypts a text sealed for place, under the current or an older key. Its
// errors are ErrKey and ErrSealed; they hold nothing of the text.
func (k *Keyring) Open(place Place, sealed string) ([]byte, error) {
	id, body, ok := split(sealed)
	if !ok {
		return nil, ErrSealed
	}
	aead, ok := k.keys[id]
	if !ok {
		return nil, ErrKey
	}
	// The decoder skips line breaks; a text that holds one was not written by us.
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

// NeedsReseal tells whether a text is sealed under a key other than the current
// one, or is not sealed at all: opening and sealing it again brings it under the
// current key.
func (k *Keyring) NeedsReseal(sealed string) bool {
	id, _, ok := split(sealed)
	return !ok || id != k.current
}

// ID names the current key, and tells nothing of it.
func (k *Keyring) ID() string { return k.current }

// IDs name all keys, in the order in which they were given.
func (k *Keyring) IDs() []string { return slices.Clone(k.ids) }

// SealingUnder is the same keyring, but that it seals under one of its keys; false
// where it does not hold that key.
func (k *Keyring) SealingUnder(id string) (*Keyring, bool) {
	if !k.Has(id) {
		return nil, false
	}
	other := *k
	other.current = id
	return &other, true
}

// Has says whether the keyring holds the key of an id.
func (k *Keyring) Has(id string) bool {
	_, ok := k.keys[id]
	return ok
}

// sealedText is the beginning of a sealed text, wherever it stands.
var sealedText = regexp.MustCompile(regexp.QuoteMeta(version) + "([^:]*):")

// KeyIDs are the keys under which the sealed texts in a text are sealed.
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

// bound is what is authenticated beside the ciphertext. Each part stands behind
// its length: no two places, however they are spelt, come to the same bytes.
func bound(head string, p Place) []byte {
	var b []byte
	for _, part := range []string{head, p.Table, p.Row, p.Field} {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	return b
}

// NewToken makes a key for a machine: prefix and 52 characters of base32 that
// hold 260 random bits.
func NewToken(prefix string) string { return prefix + rand.Text() + rand.Text() }

// HashToken is what is stored of a token: SHA-256 in hex. A slow password hash
// would guard nothing here, as 256 random bits cannot be guessed, and would cost
// every request; so it is only for secrets of NewToken's strength.
func HashToken(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
