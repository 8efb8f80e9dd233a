package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxAge is how far the time of a notification may be from ours (Standard Webhooks).
const maxAge = 5 * time.Minute

// Errors of VerifyNotification.
var (
	ErrSignature = errors.New("backstop: no signature of the notification is right")
	ErrTime      = errors.New("backstop: the notification is more than five minutes old, or from the future")
	ErrSecret    = errors.New("backstop: a signing secret is whsec_ and base64")
)

// Notification is a genuine notification. The same ID may come more than once, in any order with others:
// store the ids that were processed, and of two about one subject take the one with the higher version.
type Notification struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"` // order.paid, …; GET /api/v1/event-types lists all
	Timestamp time.Time       `json:"timestamp"`
	Data      json.RawMessage `json:"data"` // an Order, Refund or Payout by the type's first word
}

// VerifyNotification checks the signature over the raw bytes of a notification's body, and returns the
// notification. secrets are those that may have signed it: two while one is being replaced. Answer 2xx
// once it is stored. Errors: ErrSignature, ErrTime, ErrSecret, or of a body that is no notification.
func VerifyNotification(header http.Header, body []byte, secrets ...string) (*Notification, error) {
	return verifyAt(time.Now(), header, body, secrets)
}

func verifyAt(now time.Time, header http.Header, body []byte, secrets []string) (*Notification, error) {
	id, sent := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp")
	signed := fmt.Appendf(nil, "%s.%s.%s", id, sent, body)
	right := false
	for _, secret := range secrets {
		encoded, ok := strings.CutPrefix(secret, "whsec_")
		key, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil || len(key) == 0 {
			return nil, ErrSecret
		}
		mac := hmac.New(sha256.New, key)
		mac.Write(signed)
		want := mac.Sum(nil)
		for part := range strings.FieldsSeq(header.Get("Webhook-Signature")) {
			text, isV1 := strings.CutPrefix(part, "v1,")
			given, err := base64.StdEncoding.DecodeString(text)
			right = right || isV1 && err == nil && hmac.Equal(given, want)
		}
	}
	if !right {
		return nil, ErrSignature
	}
	seconds, err := strconv.ParseInt(sent, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > maxAge {
		return nil, ErrTime
	}
	var n Notification
	if err := json.Unmarshal(body, &n); err != nil {
		return nil, fmt.Errorf("backstop: the notification is not JSON: %w", err)
	}
	return &n, nil
}
