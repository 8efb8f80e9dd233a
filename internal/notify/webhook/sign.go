package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"

	"backstop/internal/notify"
)

// userAgent identifies us to merchants; the number is the version of the message format.
const userAgent = "Backstop/1"

// Constant header values. The transport does not write to them.
var jsonType, agent = []string{"application/json"}, []string{userAgent}

// headerOf signs the message and returns the header of its request: ours, and the endpoint's
// headers that are not reserved.
func headerOf(m notify.Message, contentType []string) http.Header {
	timestamp := strconv.FormatInt(m.At.Unix(), 10)
	values := []string{m.ID, timestamp, Sign(m.Secrets, m.ID, timestamp, m.Body)}
	header := http.Header{
		"Content-Type":      contentType,
		"User-Agent":        agent,
		"Webhook-Id":        values[0:1:1],
		"Webhook-Timestamp": values[1:2:2],
		"Webhook-Signature": values[2:3:3],
	}
	for name, value := range m.Headers {
		if name = http.CanonicalHeaderKey(name); !reserved(name) {
			header[name] = []string{value}
		}
	}
	return header
}

// Sign signs id.timestamp.body by Standard Webhooks, with each secret in order. Other channels
// sign the same way, so that a merchant needs one function to verify all.
func Sign(secrets [][]byte, id, timestamp string, body []byte) string {
	const version = "v1,"
	signed := make([]byte, 0, len(id)+len(timestamp)+2)
	signed = append(signed, id...)
	signed = append(signed, '.')
	signed = append(signed, timestamp...)
	signed = append(signed, '.')

	var sum [sha256.Size]byte
	list := make([]byte, 0, len(secrets)*(len(version)+base64.StdEncoding.EncodedLen(len(sum))+1))
	for i, secret := range secrets {
		mac := hmac.New(sha256.New, secret)
		mac.Write(signed)
		mac.Write(body)
		if i > 0 {
			list = append(list, ' ')
		}
		list = append(list, version...)
		list = base64.StdEncoding.AppendEncode(list, mac.Sum(sum[:0]))
	}
	return string(list)
}
