// Package stripe parses Stripe's webhook events, and starts, queries and cancels payment
// intents.
//
// It does not verify with Stripe's library, which accepts signed times in the future; the
// protocol is a single HMAC.
package stripe

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"backstop/internal/base/mask"
	"backstop/internal/supplier"
)

// What callbacks and answers hold that is neither a person's nor a secret.
var _ = mask.Declare(`id object api_version created type livemode pending_webhooks request amount amount_received
	amount_capturable amount_total amount_refunded amount_subtotal currency status payment_status payment_intent charge latest_charge
	balance_transaction order_no refund_no payout_no order metadata[order_no] metadata[refund_no] refunded captured disputed paid
	failure_code code decline_code param doc_url message reason due_by has_more url canceled_at cancellation_reason capture_method
	confirmation_method network_status risk_level arrival_date fee net refund mode expires_at available_on`,
	"Stripe-Signature Stripe-Version Idempotency-Key")

// Kind describes Stripe to the registry.
var Kind = supplier.Kind{
	Name: "stripe", Texts: &Texts,
	Fields: supplier.FieldsOf[config](fieldTexts),
	New:    newAdapter, Sign: sign,
}

const (
	// window is the default tolerance of Stripe's own libraries (docs.stripe.com/webhooks),
	// applied in both directions.
	window = 5 * time.Minute
	// maxSignatures bounds the v1 entries of one header. Stripe sends one per active secret of
	// the endpoint: two while a secret is rolled.
	maxSignatures = 10
	// ownAccount stands for the account that owns the endpoint: its events contain none.
	ownAccount = "own"
)

type config struct {
	WebhookSecrets []string `json:"webhook_secrets" secret:"true" required:"true" example:"[file:secrets/stripe-whsec]"`
	// APIKey and BaseURL are for calls.
	APIKey  string `json:"api_key" secret:"true" example:"file:secrets/stripe-api-key"`
	BaseURL string `json:"base_url" kind:"url" example:"https://api.stripe.com"`
	// LiveMode is the mode of the endpoint's events; nil = that of APIKey, without one any.
	LiveMode *bool `json:"livemode" example:"true"`
}

// mode returns the mode of the endpoint's events; nil = not known.
func (c config) mode() *bool {
	if c.LiveMode != nil {
		return c.LiveMode
	}
	for prefix, live := range map[string]bool{"sk_test_": false, "rk_test_": false, "sk_live_": true, "rk_live_": true} {
		if strings.HasPrefix(c.APIKey, prefix) {
			return &live
		}
	}
	return nil
}

type adapter struct {
	code    string
	secrets [][]byte
	live    *bool // the mode of its events; nil = not checked
	*caller       // nil = no calls can be made
}

// Keys describes the keys.
func (a *adapter) Keys() []supplier.Key {
	all := make([]supplier.Key, len(a.secrets))
	for i := range a.secrets {
		all[i] = supplier.Key{Field: fmt.Sprintf("webhook_secrets[%d]", i), Kind: supplier.SharedKey}
	}
	if a.caller != nil {
		all = append(all, supplier.Key{Field: "api_key", Kind: supplier.SharedKey})
	}
	return all
}

func newAdapter(code string, raw json.RawMessage, out supplier.Client) (supplier.Adapter, error) {
	var c config
	if err := supplier.DecodeConfig(raw, &c); err != nil {
		return nil, err
	}
	if len(c.WebhookSecrets) == 0 {
		return nil, &supplier.FieldError{Field: "webhook_secrets", Problem: "is missing; give the endpoint's signing secret (whsec_…)"}
	}
	a := &adapter{code: code, live: c.mode()}
	for i, secret := range c.WebhookSecrets {
		if rest, ok := strings.CutPrefix(secret, "whsec_"); !ok || rest == "" {
			return nil, &supplier.FieldError{
				Field:   fmt.Sprintf("webhook_secrets[%d]", i),
				Problem: "is not a webhook signing secret; those begin with whsec_ (the API key is another)",
			}
		}
		// The whole text, including its prefix, is the HMAC key.
		a.secrets = append(a.secrets, []byte(secret))
	}
	var err error
	a.caller, err = c.caller(out)
	return a, supplier.ForCalls(err)
}

// Parse parses an event. The README lists what each event means.
func (a *adapter) Parse(req *supplier.Request, t *supplier.Trace) (supplier.Callback, error) {
	if err := supplier.CheckSigned(req, t, window, a.verify); err != nil {
		return supplier.Callback{}, err
	}
	got, err := translate(req.Body, a.live)
	if err != nil {
		return t.FailContent(got, err, "")
	}
	t.Pass("content", contentRead)
	return got, nil
}

// verify returns the signed time. The signature covers "<t>.<body>".
func (a *adapter) verify(req *supplier.Request, t *supplier.Trace) (time.Time, error) {
	headers := req.Header.Values("Stripe-Signature")
	if len(headers) != 1 {
		return time.Time{}, supplier.RefuseSignature(headerCount, len(headers))
	}
	stamp, signatures, err := splitHeader(headers[0])
	if err != nil {
		return time.Time{}, err
	}
	for _, secret := range a.secrets {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(stamp))
		mac.Write([]byte{'.'})
		mac.Write(req.Body)
		want := mac.Sum(nil)
		for _, given := range signatures {
			if hmac.Equal(given, want) {
				t.Pass("signature", signatureHolds)
				return unix(stamp)
			}
		}
	}
	return time.Time{}, supplier.RefuseSignature(signatureWrong, len(signatures), len(a.secrets))
}

// splitHeader parses "t=1492774577,v1=5257a8…,v0=6ffbb5…". Only v1 counts: v0 is a fake scheme
// of test events, and accepting any scheme would allow a downgrade.
func splitHeader(header string) (stamp string, v1 [][]byte, err error) {
	for part := range strings.SplitSeq(header, ",") {
		name, value, ok := strings.Cut(part, "=")
		switch {
		case !ok:
			return "", nil, supplier.RefuseSignature(noValue)
		case name == "t" && stamp != "":
			return "", nil, supplier.RefuseSignature(twoTimes)
		case name == "t":
			stamp = value
		case name == "v1":
			signature, err := hex.DecodeString(value)
			if err != nil || len(signature) != sha256.Size {
				return "", nil, supplier.RefuseSignature(notHex, sha256.Size)
			}
			v1 = append(v1, signature)
		}
	}
	if stamp == "" || len(v1) == 0 || len(v1) > maxSignatures {
		return "", nil, supplier.RefuseSignature(headerParts, maxSignatures)
	}
	return stamp, v1, nil
}

// unix parses the timestamp, after the signature over it has been verified.
func unix(stamp string) (time.Time, error) {
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return time.Time{}, supplier.RefuseSignature(timeNoNumber)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// Reply answers with a status: any 2xx means taken, anything else makes Stripe repeat the event
// for up to three days. The body appears in Stripe's event log.
func (a *adapter) Reply(r supplier.Result) supplier.Reply {
	return supplier.Reply{Status: r.HTTPStatus(), ContentType: "application/json", Body: []byte(replies[r])}
}

var replies = map[supplier.Result]string{
	supplier.Taken:          `{"received":true}`,
	supplier.BadSignature:   `{"error":"bad signature"}`,
	supplier.Malformed:      `{"error":"malformed event"}`,
	supplier.Unavailable:    `{"error":"busy, send again"}`,
	supplier.InternalFailed: `{"error":"internal error, send again"}`,
}

// Identity is the account itself: each endpoint has its own signing secret. An endpoint for
// connected accounts (Connect) also gets the events of their payments, live and test, with
// metadata of their choice: that money belongs to others.
func (a *adapter) Identity() map[string]string { return map[string]string{"account": ownAccount} }

// Account is based on the supplier's code: the config contains no account number. Stripe's
// object ids are unique over all accounts.
func (a *adapter) Account() string { return "stripe:" + a.code }
