package seal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
)

// MAC authenticates messages for one purpose (HMAC-SHA256), under keys derived from the
// master keys: the current one signs, all of them verify.
type MAC struct {
	current string
	keys    map[string][]byte // by the id of the master key
}

// MAC returns the authenticator of a purpose.
func (k *Keyring) MAC(purpose string) *MAC {
	m := &MAC{current: k.current, keys: make(map[string][]byte, len(k.roots))}
	for id, root := range k.roots {
		m.keys[id] = derive(root, "mac "+purpose)
	}
	return m
}

// KeyID is the id of the current master key; "" if there is none.
func (m *MAC) KeyID() string { return m.current }

// Sum authenticates a message under the given master key; false if the keyring does not
// have it.
func (m *MAC) Sum(keyID string, message []byte) (sum []byte, ok bool) {
	key, ok := m.keys[keyID]
	if !ok {
		return nil, false
	}
	h := hmac.New(sha256.New, key)
	h.Write(message)
	return h.Sum(nil), true
}

// Sums authenticates a message under every key of the keyring, as KEYID:HEX, the current one
// first: a text that was stored under any of them is among these.
func (m *MAC) Sums(message []byte) []string {
	text := func(id string) string {
		sum, _ := m.Sum(id, message)
		return id + ":" + hex.EncodeToString(sum)
	}
	sums := []string{text(m.current)}
	for id := range m.keys {
		if id != m.current {
			sums = append(sums, text(id))
		}
	}
	return sums
}

const (
	// tagSize is the length of a token's MAC, in bytes: it rejects forgeries without a
	// query; the proof is the token's hash in the database.
	tagSize = 8
	// tokenSize and tagText are the lengths of a token without prefix and tag, and of its
	// tag, in characters.
	tokenSize = 52
	tagText   = 13
)

var tagForm = base32.StdEncoding.WithPadding(base32.NoPadding)

// NewToken returns a token of the package's NewToken followed by a tag that IsToken verifies.
func (m *MAC) NewToken(prefix string) string {
	token := NewToken(prefix)
	return token + m.tag(m.current, token)
}

// IsToken reports whether a text is a token of this prefix and purpose, made under any key
// of the keyring. It makes no query.
func (m *MAC) IsToken(prefix, text string) bool {
	if len(text) != len(prefix)+tokenSize+tagText || text[:len(prefix)] != prefix {
		return false
	}
	token, tag := text[:len(text)-tagText], text[len(text)-tagText:]
	for id := range m.keys {
		if hmac.Equal([]byte(tag), []byte(m.tag(id, token))) {
			return true
		}
	}
	return false
}

func (m *MAC) tag(keyID, token string) string {
	sum, _ := m.Sum(keyID, []byte(token))
	if sum == nil {
		panic("seal: a token without a key")
	}
	return tagForm.EncodeToString(sum[:tagSize])
}

// Retired holds, by key id, what is still needed of master keys that were removed from the
// keyring: the sources of their MACs, sealed under the current key. A retired key opens no
// sealed text and signs nothing.
type Retired map[string]string

func retiredPlace(id string) Place { return Place{Table: "retired_keys", Row: id, Field: "sealed"} }

// Retire returns what must be stored of every key but the current one before it is removed
// from the keyring. It includes the keyring's own retired keys.
func (k *Keyring) Retire() Retired {
	r := Retired{}
	for id, root := range k.roots {
		if id != k.current {
			r[id] = k.Seal(retiredPlace(id), root)
		}
	}
	return r
}

// WithRetired returns a keyring that also verifies under retired keys. Retired keys that do
// not open are left out and listed in the error; the keyring is valid even then.
func (k *Keyring) WithRetired(retired Retired) (*Keyring, error) {
	with := *k
	with.roots = make(map[string][]byte, len(k.roots)+len(retired))
	var wrong []error
	for id, sealed := range retired {
		root, err := k.Open(retiredPlace(id), sealed)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("retired master key %s: %w", id, err))
			continue
		}
		with.roots[id] = root
	}
	for id, root := range k.roots {
		with.roots[id] = root
	}
	return &with, errors.Join(wrong...)
}
