package sortedparams

import (
	"crypto"
	"crypto/hmac"
	"crypto/md5"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/supplier"
)

// verify checks the signature, records the step "signature" and returns the names of the signed
// parameters. The trace names them too, because the usual mistake in a new supplier's settings
// is one too many or too few; it never contains their values or the key.
func (a *adapter) verify(fields map[string]string, t *supplier.Trace) (signed []string, err error) {
	const step = "signature"
	given := fields[a.SignField]
	if given == "" {
		t.Fail(step, noParameter, strconv.Quote(a.SignField))
		return nil, supplier.RefuseSignature(noParameter, strconv.Quote(a.SignField))
	}
	names := a.signedNames(fields)
	if !a.holds(given, a.signedText(fields, names)) {
		t.Fail(step, signatureOver, a.Algorithm, len(names), strings.Join(names, " "))
		return nil, supplier.RefuseSignature(signatureWrong, a.Algorithm)
	}
	t.Pass(step, signatureHolds)
	return names, nil
}

// signedNames lists the signed parameters in byte order.
func (a *adapter) signedNames(fields map[string]string) []string {
	names := make([]string, 0, len(fields))
	for name, value := range fields {
		if name == a.SignField || a.SkipEmpty && value == "" || slices.Contains(a.SignExclude, name) {
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// signedText returns name=value&name=value followed by what the settings append. Values are
// decoded and not escaped again: that is how this family signs.
func (a *adapter) signedText(fields map[string]string, names []string) []byte {
	return []byte(supplier.JoinPairs(fields, names) + a.appended)
}

func (a *adapter) holds(given string, text []byte) bool {
	if a.Algorithm == "rsa-sha256" {
		return a.holdsRSA(given, text)
	}
	return a.sameHex(given, a.sum(text))
}

// sum is what the shared key makes of a text.
func (a *adapter) sum(text []byte) []byte {
	if a.Algorithm == "md5" {
		sum := md5.Sum(text)
		return sum[:]
	}
	mac := hmac.New(sha256.New, []byte(a.Key))
	mac.Write(text)
	return mac.Sum(nil)
}

// sameHex compares in constant time. "any" means all lower or all upper case; no supplier mixes
// them.
func (a *adapter) sameHex(given string, sum []byte) bool {
	lower := hex.EncodeToString(sum)
	upper := strings.ToUpper(lower)
	isLower := subtle.ConstantTimeCompare([]byte(given), []byte(lower)) == 1
	isUpper := subtle.ConstantTimeCompare([]byte(given), []byte(upper)) == 1
	switch a.SignCase {
	case "lower":
		return isLower
	case "upper":
		return isUpper
	default:
		return isLower || isUpper
	}
}

func (a *adapter) holdsRSA(given string, text []byte) bool {
	// Go's decoder skips line breaks even in strict mode, but one signature must have only one
	// encoding.
	signature, err := base64.StdEncoding.Strict().DecodeString(given)
	if err != nil || strings.ContainsAny(given, "\r\n") {
		return false
	}
	sum := sha256.Sum256(text)
	return rsa.VerifyPKCS1v15(a.publicKey, crypto.SHA256, sum[:], signature) == nil
}
