package simulator

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// seed makes numbers and choices that look random but are the same in every run.
type seed uint64

// sum depends only on the seed and the parts.
func (s seed) sum(parts ...string) []byte {
	key := binary.BigEndian.AppendUint64(nil, uint64(s))
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write([]byte(part))
	}
	return mac.Sum(nil)
}

// digits is a number of n digits, at most 32.
func (s seed) digits(n int, parts ...string) string {
	text := make([]byte, n)
	for i, b := range s.sum(parts...)[:n] {
		text[i] = '0' + b%10
	}
	return string(text)
}

// hex is a text of n hexadecimal digits, at most 64.
func (s seed) hex(n int, parts ...string) string {
	return hex.EncodeToString(s.sum(parts...))[:n]
}

// roll is a number below n.
func (s seed) roll(n int, parts ...string) int {
	return int(binary.BigEndian.Uint32(s.sum(parts...)) % uint32(n))
}

// keyPairs are the RSA keys: the suppliers' own, and the merchant's at each.
type keyPairs struct{ wechatPlatform, wechatMerchant, alipay, alipayApp *rsa.PrivateKey }

// keys are generated once per process, because that takes most of a second. Go cannot generate
// RSA keys from a seed.
var keys = sync.OnceValues(func() (keyPairs, error) {
	var made keyPairs
	var tasks sync.WaitGroup
	into := []**rsa.PrivateKey{&made.wechatPlatform, &made.wechatMerchant, &made.alipay, &made.alipayApp}
	problems := make([]error, len(into))
	for i, key := range into {
		tasks.Go(func() { *key, problems[i] = rsa.GenerateKey(rand.Reader, 2048) })
	}
	tasks.Wait()
	for _, err := range problems {
		if err != nil {
			return made, fmt.Errorf("make a key: %w", err)
		}
	}
	return made, nil
})

func rsaSign(key *rsa.PrivateKey, text string) (string, error) {
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	return base64.StdEncoding.EncodeToString(signature), nil
}

func rsaHolds(key *rsa.PrivateKey, text, signature string) bool {
	given, err := base64.StdEncoding.Strict().DecodeString(signature)
	if err != nil {
		return false
	}
	digest := sha256.Sum256([]byte(text))
	return rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, digest[:], given) == nil
}

func hmacHex(key, text string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

func publicPEM(key *rsa.PrivateKey) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&key.PublicKey)}))
}

func privatePEM(key *rsa.PrivateKey) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

// randomHex is n random bytes as 2n characters.
func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // crypto/rand never fails (Go 1.24)
	return hex.EncodeToString(b)
}

// sortedPairs returns name=value&name=value for all fields except those in without, sorted by
// name.
func sortedPairs(fields map[string]string, without ...string) string {
	pairs := make([]string, 0, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(without, name) {
			pairs = append(pairs, name+"="+fields[name])
		}
	}
	return strings.Join(pairs, "&")
}

func formMessage(fields map[string]string) Message {
	values := url.Values{}
	for name, value := range fields {
		values.Set(name, value)
	}
	return Message{http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, []byte(values.Encode())}
}

// flatten returns the parameters of a form; each name may occur once.
func flatten(values url.Values) (map[string]string, error) {
	fields := make(map[string]string, len(values))
	for name, all := range values {
		if len(all) != 1 {
			return nil, fmt.Errorf("parameter %q occurs %d times", name, len(all))
		}
		fields[name] = all[0]
	}
	return fields, nil
}
