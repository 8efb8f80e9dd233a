package webhook_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"backstop/internal/notify/webhook"
)

func TestParseSecret(t *testing.T) {
	t.Parallel()
	if key, err := webhook.ParseSecret("whsec_" + "c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3M="); err != nil || !bytes.Equal(key, secret) {
		t.Errorf("32 bytes: %q, %v", key, err)
	}
	for _, text := range []string{
		"", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "WHSEC_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
		"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa==",
		"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n", "whsec_MfKQ9r8GKYqr\nTwjUPD8ILPZIo2LaLaSw", " whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
		"whsec_c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3M", "whsec_c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3N=",
		"whsec_-_KQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
		"whsec_" + strings.Repeat("AAAA", 22), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw!",
	} {
		key, err := webhook.ParseSecret(text)
		if !errors.Is(err, webhook.ErrSecret) || key != nil {
			t.Errorf("%q: %d bytes, %v; want ErrSecret", text, len(key), err)
		}
		if err != nil && len(text) > 6 && strings.Contains(err.Error(), text[6:]) {
			t.Errorf("the error quotes the secret: %v", err)
		}
	}
}
