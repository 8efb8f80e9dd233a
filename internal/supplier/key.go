package supplier

import (
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"time"
)

// KeyKind is the kind of a configured key.
type KeyKind string

// Kinds of keys.
const (
	Certificate KeyKind = "certificate" // the supplier's
	PublicKey   KeyKind = "public_key"  // the supplier's
	PrivateKey  KeyKind = "private_key" // ours; its fingerprint is that of its public key
	SharedKey   KeyKind = "shared_key"  // has no fingerprint: a short one could be guessed from it
)

// Key describes a configured key, without the key.
type Key struct {
	Field       string // of the config
	Kind        KeyKind
	Serial      string // by which messages name it; "" = they do not
	Fingerprint string // SHA-256 in hexadecimal digits: of a certificate, or of a public key (PKIX)
	NotBefore   time.Time
	NotAfter    time.Time // zero = it does not expire
}

// Keyed is an Adapter that describes its keys.
type Keyed interface{ Keys() []Key }

// KeysOf returns the keys of an adapter.
func KeysOf(a Adapter) []Key {
	if k, ok := a.(Keyed); ok {
		return k.Keys()
	}
	return nil
}

// CertificateKey describes a certificate.
func CertificateKey(field, serial string, c *x509.Certificate) Key {
	return Key{Field: field, Kind: Certificate, Serial: serial, Fingerprint: hexSum(c.Raw), NotBefore: c.NotBefore, NotAfter: c.NotAfter}
}

// RSAKey describes the supplier's public key or, by its public key, our private one.
func RSAKey(field, serial string, kind KeyKind, key *rsa.PublicKey) Key {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil { // an RSA key can always be encoded
		return Key{Field: field, Kind: kind, Serial: serial}
	}
	return Key{Field: field, Kind: kind, Serial: serial, Fingerprint: hexSum(der)}
}

func hexSum(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}
