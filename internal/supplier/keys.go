package supplier

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// Accepted RSA key sizes. Below 2048 bits a signature proves nothing any more (NIST SP
// 800-131A); above 8192 one verification costs milliseconds.
const (
	minKeyBits = 2048
	maxKeyBits = 8192
)

// ParsePublicKey parses an RSA public key in the forms that suppliers provide: PEM (PKIX
// "PUBLIC KEY" or PKCS#1 "RSA PUBLIC KEY"), or the bare base64 of either, as on Alipay's
// console. Errors never repeat the text.
func ParsePublicKey(text string) (*rsa.PublicKey, error) {
	der, label, err := keyBytes(text)
	if err != nil {
		return nil, err
	}
	switch {
	case strings.Contains(label, "PRIVATE"):
		return nil, errors.New("this is a private key; expected the supplier's public key")
	case label == "CERTIFICATE":
		return nil, errors.New("this is a certificate; expected a public key")
	}
	key, err := x509.ParsePKCS1PublicKey(der)
	if err != nil {
		parsed, err := x509.ParsePKIXPublicKey(der)
		if err != nil {
			return nil, errors.New("not a public key (expected PEM or its base64)")
		}
		var ok bool
		if key, ok = parsed.(*rsa.PublicKey); !ok {
			return nil, fmt.Errorf("expected an RSA key, not %T", parsed)
		}
	}
	if err := checkBits(key); err != nil {
		return nil, err
	}
	return key, nil
}

// ParsePrivateKey parses an RSA private key: PEM (PKCS#8 "PRIVATE KEY" or PKCS#1 "RSA PRIVATE
// KEY"), or the bare base64 of either. Errors never repeat the text.
func ParsePrivateKey(text string) (*rsa.PrivateKey, error) {
	der, label, err := keyBytes(text)
	if err != nil {
		return nil, err
	}
	switch {
	case strings.Contains(label, "PUBLIC"), label == "CERTIFICATE":
		return nil, errors.New("this is public; expected your own private key")
	case strings.Contains(label, "ENCRYPTED"):
		return nil, errors.New("this key is encrypted with a passphrase; store it without one (it is sealed at rest here)")
	}
	key, err := x509.ParsePKCS1PrivateKey(der)
	if err != nil {
		parsed, err := x509.ParsePKCS8PrivateKey(der)
		if err != nil {
			return nil, errors.New("not a private key (expected PEM or its base64)")
		}
		var ok bool
		if key, ok = parsed.(*rsa.PrivateKey); !ok {
			return nil, fmt.Errorf("expected an RSA key, not %T", parsed)
		}
	}
	if err := checkBits(&key.PublicKey); err != nil {
		return nil, err
	}
	return key, nil
}

// keyBytes returns the DER and, for PEM, the label.
func keyBytes(text string) (der []byte, label string, err error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, "", errors.New("no key given")
	}
	if block, rest := pem.Decode([]byte(text)); block != nil {
		if strings.TrimSpace(string(rest)) != "" {
			return nil, "", errors.New("expected one key and nothing after it")
		}
		return block.Bytes, block.Type, nil
	}
	der, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		return nil, "", errors.New("neither PEM nor base64")
	}
	return der, "", nil
}

func checkBits(key *rsa.PublicKey) error {
	if bits := key.N.BitLen(); bits < minKeyBits || bits > maxKeyBits {
		return fmt.Errorf("the key has %d bits; %d to %d are accepted", bits, minKeyBits, maxKeyBits)
	}
	return nil
}
