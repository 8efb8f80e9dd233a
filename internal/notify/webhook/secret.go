package webhook

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

const (
	secretPrefix = "whsec_"
	// minSecret and maxSecret are the length of a key in bytes, by Standard Webhooks.
	minSecret, maxSecret = 24, 64
)

// ErrSecret means that a signing secret cannot be used. Its text never contains the secret.
var ErrSecret = errors.New("bad signing secret")

// ParseSecret parses a signing secret as merchants have it: "whsec_" and the base64 of 24 to 64
// bytes. Errors are ErrSecret.
func ParseSecret(text string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	if !ok {
		return nil, fmt.Errorf("%w: must begin with %s", ErrSecret, secretPrefix)
	}
	// The decoder skips line breaks, but merchants' libraries may not.
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || strings.ContainsAny(encoded, "\r\n") {
		return nil, fmt.Errorf("%w: what follows %s must be standard base64 with padding", ErrSecret, secretPrefix)
	}
	if len(key) < minSecret || len(key) > maxSecret {
		return nil, fmt.Errorf("%w: %d bytes, must be %d to %d (openssl rand -base64 32)", ErrSecret, len(key), minSecret, maxSecret)
	}
	return key, nil
}
