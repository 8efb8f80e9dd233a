package seal

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
)

// MAC authenticates messages for one purpose (HMAC-SHA256), under keys derived from
// the master keys: the current one makes, each one that is held checks.
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

// KeyID names the master key under which Sum authenticates; "" where there is none.
func (m *MAC) KeyID() string { return m.current }

// Sum authenticates a message under the key of the given master key; false where it
// is not held.
func (m *MAC) Sum(keyID string, message []byte) (sum []byte, ok bool) {
	key, ok := m.keys[keyID]
	if !ok {
		return nil, false
	}
	h := hmac.New(sha256.New, key)
	h.Write(message)
	return h.Sum(nil), true
}

const (
	// tagSize is how much of a MAC a token carries, in bytes: it keeps forgeries from
	// the database and proves nothing more, as the database has the token's hash.
	tagSize = 8
	// tokenSize and tagText are the characters of a token without prefix and tag, and
	// of its tag.
	tokenSize = 52
	tagText   = 13
)

var tagForm = base32.StdEncoding.WithPadding(base32.NoPadding)

// NewToken is a token of the package's NewToken with a tag behind it, by which
// IsToken tells it from a forged one.
func (m *MAC) NewToken(prefix string) string {
	token := NewToken(prefix)
	return token + m.tag(m.current, token)
}

// IsToken says whether a text is a token of this prefix and purpose, made under any
// key that is held. It asks nobody.
func (m *MAC) IsToken(prefix, text string) bool {
	if !HasTokenForm(prefix, text) {
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

// HasTokenForm says whether a text is as long as a token with a tag and has its
// prefix; tokens without a tag are shorter.
func HasTokenForm(prefix, text string) bool {
	return len(text) == len(prefix)+tokenSize+tagText && text[:len(prefix)] == prefix
}

func (m *MAC) tag(keyID, token string) string {
	sum, _ := m.Sum(keyID, []byte(token))
	if sum == nil {
		panic("seal: a token without a key") // an empty keyring makes none
	}
	return tagForm.EncodeToString(sum[:tagSize])
}

// Retired are master keys that were taken out of the keyring, as far as they are
// still needed: by the id of each what its MACs are derived from, sealed under the
// key that is current. They open no sealed text and sign nothing.
type Retired map[string]string

func retiredPlace(id string) Place { return Place{Table: "retired_keys", Row: id, Field: "sealed"} }

// Retire returns what is to be kept of all keys but the current one, so that they can
// be taken out of the keyring. The keyring's own retired keys are among them.
func (k *Keyring) Retire() Retired {
	r := Retired{}
	for id, root := range k.roots {
		if id != k.current {
			r[id] = k.Seal(retiredPlace(id), root)
		}
	}
	return r
}

// WithRetired returns a keyring that checks what was authenticated under retired
// keys too. Those that do not open are left out and named in the error, with which
// the keyring can be used.
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
