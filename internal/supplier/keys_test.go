package supplier

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"
)

func asPEM(label string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der}))
}

// lines breaks text as consoles and editors do.
func lines(text string) string {
	return "  " + text[:64] + "\r\n\t" + text[64:] + "\n"
}

func TestKeysAreReadInEveryFormTheyAreHandedOut(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pkix, _ := x509.MarshalPKIXPublicKey(&key.PublicKey)
	pkcs1 := x509.MarshalPKCS1PublicKey(&key.PublicKey)
	for name, text := range map[string]string{
		"PKIX PEM":      asPEM("PUBLIC KEY", pkix),
		"PKCS1 PEM":     asPEM("RSA PUBLIC KEY", pkcs1),
		"PKIX base64":   base64.StdEncoding.EncodeToString(pkix),
		"PKCS1 base64":  base64.StdEncoding.EncodeToString(pkcs1),
		"broken base64": lines(base64.StdEncoding.EncodeToString(pkix)),
	} {
		if got, err := ParsePublicKey(text); err != nil || !got.Equal(&key.PublicKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
	pkcs8, _ := x509.MarshalPKCS8PrivateKey(key)
	own := x509.MarshalPKCS1PrivateKey(key)
	for name, text := range map[string]string{
		"PKCS8 PEM":    asPEM("PRIVATE KEY", pkcs8),
		"PKCS1 PEM":    asPEM("RSA PRIVATE KEY", own),
		"PKCS8 base64": lines(base64.StdEncoding.EncodeToString(pkcs8)),
		"PKCS1 base64": base64.StdEncoding.EncodeToString(own),
	} {
		if got, err := ParsePrivateKey(text); err != nil || !got.Equal(key) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnusableKeysAreRefusedWithoutRepeatingThem(t *testing.T) {
	t.Setenv("GODEBUG", "rsa1024min=0") // to make a key that is too weak
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	strong, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	weakPublic, _ := x509.MarshalPKIXPublicKey(&weak.PublicKey)
	strongPublic, _ := x509.MarshalPKIXPublicKey(&strong.PublicKey)
	curvePublic, _ := x509.MarshalPKIXPublicKey(&curve.PublicKey)
	curvePrivate, _ := x509.MarshalPKCS8PrivateKey(curve)
	strongPrivate := x509.MarshalPKCS1PrivateKey(strong)

	for name, c := range map[string]struct{ text, says string }{
		"nothing":   {" \n", "no key"},
		"prose":     {"my secret passphrase!", "neither PEM nor base64"},
		"base64":    {base64.StdEncoding.EncodeToString([]byte("my secret")), "not a public key"},
		"weak":      {asPEM("PUBLIC KEY", weakPublic), "1024 bits"},
		"curve":     {asPEM("PUBLIC KEY", curvePublic), "RSA"},
		"private":   {asPEM("RSA PRIVATE KEY", strongPrivate), "private key"},
		"two":       {strings.Repeat(asPEM("PUBLIC KEY", strongPublic), 2), "nothing after"},
		"a chain":   {asPEM("CERTIFICATE", strongPublic), "certificate"},
		"truncated": {asPEM("PUBLIC KEY", strongPublic[:100]), "not a public key"},
	} {
		if _, err := ParsePublicKey(c.text); err == nil || !strings.Contains(err.Error(), c.says) ||
			strings.Contains(err.Error(), "my secret") {
			t.Errorf("public key, %s: %v, want %q", name, err, c.says)
		}
	}
	for name, c := range map[string]struct{ text, says string }{
		"nothing":   {"", "no key"},
		"weak":      {asPEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(weak)), "1024 bits"},
		"curve":     {asPEM("PRIVATE KEY", curvePrivate), "RSA"},
		"public":    {asPEM("PUBLIC KEY", strongPublic), "public"},
		"encrypted": {asPEM("ENCRYPTED PRIVATE KEY", strongPrivate), "passphrase"},
		"truncated": {asPEM("PRIVATE KEY", strongPrivate[:100]), "not a private key"},
	} {
		if _, err := ParsePrivateKey(c.text); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("private key, %s: %v, want %q", name, err, c.says)
		}
	}
}
