// Package evidence signs what an installation exports for a dispute, and verifies such a file
// offline, with nothing but the public key.
package evidence

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"backstop/internal/base/seal"
	"backstop/internal/supplier"
)

// Format identifies the form of a file.
const Format = "backstop-evidence/1"

// algorithm is the only one supported.
const algorithm = "Ed25519"

// File is an exported file. The signature covers the canonical form (RFC 8785)
// of Evidence; SHA256 is the hash of the same bytes, in hex.
type File struct {
	Format    string          `json:"format"`
	Evidence  json.RawMessage `json:"evidence"`
	SHA256    string          `json:"sha256"`
	Signature Signature       `json:"signature"`
}

// Signature is a signature and its key.
type Signature struct {
	Algorithm string `json:"algorithm"`
	KeyID     string `json:"key_id"`
	PublicKey string `json:"public_key"` // base64 of 32 bytes
	Value     string `json:"value"`      // base64 of 64 bytes
}

// Sign returns a File with content as JSON.
func Sign(content any, by *seal.Keyring) (*File, error) {
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("write the evidence: %w", err)
	}
	canonical, err := Canonical(raw)
	if err != nil {
		return nil, err
	}
	key, signature := by.Sign(canonical)
	sum := sha256.Sum256(canonical)
	return &File{
		Format: Format, Evidence: canonical, SHA256: hex.EncodeToString(sum[:]),
		Signature: Signature{
			Algorithm: algorithm, KeyID: key.ID, PublicKey: base64.StdEncoding.EncodeToString(key.Public),
			Value: base64.StdEncoding.EncodeToString(signature),
		},
	}, nil
}

// Bytes returns the file's bytes.
func (f *File) Bytes() ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(f); err != nil {
		return nil, fmt.Errorf("write the evidence: %w", err)
	}
	return out.Bytes(), nil
}

// Errors of Check.
var (
	ErrFile      = errors.New("not an evidence file")
	ErrChanged   = errors.New("the evidence was changed after it was signed")
	ErrSignature = errors.New("the signature is not valid")
	ErrOtherKey  = errors.New("signed by a different key than the one given")
)

// Check parses and verifies a file. trusted is the public key that must have signed it; nil
// means the file's own key, which proves that the file is unchanged but not who made it.
// Errors: ErrFile, ErrChanged, ErrSignature, ErrOtherKey.
func Check(text []byte, trusted ed25519.PublicKey) (*File, error) {
	// A duplicate name could be read in two different ways.
	if err := supplier.CheckJSON(text); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var f File
	if err := d.Decode(&f); err != nil || f.Format != Format || f.Signature.Algorithm != algorithm {
		return nil, ErrFile
	}
	public, err := base64.StdEncoding.DecodeString(f.Signature.PublicKey)
	if err != nil || len(public) != ed25519.PublicKeySize {
		return nil, ErrFile
	}
	signature, err := base64.StdEncoding.DecodeString(f.Signature.Value)
	if err != nil {
		return nil, ErrFile
	}
	canonical, err := Canonical(f.Evidence)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	if sum := sha256.Sum256(canonical); hex.EncodeToString(sum[:]) != f.SHA256 {
		return nil, ErrChanged
	}
	if trusted != nil && !trusted.Equal(ed25519.PublicKey(public)) {
		return nil, ErrOtherKey
	}
	if f.Signature.KeyID != seal.SigningKeyID(public) || !ed25519.Verify(public, canonical, signature) {
		return nil, ErrSignature
	}
	return &f, nil
}
