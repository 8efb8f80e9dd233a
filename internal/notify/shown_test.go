package notify_test

import (
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/waittest"
	"backstop/internal/notify"
	"backstop/internal/payment/paymenttest"
)

func TestURLsAreShownWithoutTheirSecrets(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://m.example/hook":                  "https://m.example/hook",
		"https://m.example/hook?token=canary":     "https://m.example/hook?***",
		"https://m.example?canary":                "https://m.example?***",
		"https://m.example/#canary":               "https://m.example/?***",
		"https://u:canary@m.example:8443/hook":    "https://***@m.example:8443/hook",
		"https://u:canary@m.example":              "https://***@m.example",
		"https://m.example/@canary-is-no-secret":  "https://m.example/@canary-is-no-secret",
		"http://u:canary@m.example/hook?a=canary": "http://***@m.example/hook?***",
		"amqps://mq.example/shop?exchange=orders": "amqps://mq.example/shop?exchange=orders",
		"websocket:": "websocket:",
		"":           "",
	} {
		if got := notify.Shown(address); got != want {
			t.Errorf("%s is shown as %s, want %s", address, got, want)
		}
	}
}

// The attempt is made at the whole address, and stored for display without its token.
func TestAttemptsStoreNoTokenOfTheURL(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		f := paymenttest.New(t, d, paymenttest.Options{URL: "https://m1.test/n?token=canary"})
		ch := &fakeChannel{}
		dispatcher(t, f, ch, 5).Offer(paid(t, f, 1))
		waittest.Until(t, "delivered", func() bool { return delivered(f, t) == 1 })
		if ch.sent[0].URL != "https://m1.test/n?token=canary" {
			t.Errorf("sent to %s", ch.sent[0].URL)
		}
		f.Want(t, 1, "SELECT count(*) FROM "+notify.AllAttempts+" AS na WHERE url = 'https://m1.test/n?***'")
	})
}
