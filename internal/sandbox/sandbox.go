// Package sandbox is the supplier and the merchant with which a new installation is tried out.
// The supplier's callbacks are signed here; the merchant's endpoint is answered inside this
// process, so that nothing is sent anywhere and no address is opened for it.
package sandbox

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"backstop/internal/supplier"
	"backstop/internal/supplier/sortedparams"
)

const (
	// Code is the code of the merchant and of the supplier.
	Code = "backstop-sandbox"
	// Host is the name of the merchant's endpoint. Names below .invalid never resolve
	// (RFC 6761): a request that is not answered here reaches nothing.
	Host = "echo.backstop.invalid"
	// NotifyURL is the merchant's endpoint.
	NotifyURL = "https://" + Host + "/notify"
	// Currency and Amount are those of the orders that the guide creates.
	Currency = "CNY"
	Amount   = 1999
	// KeyField is the field of the supplier's config with its key.
	KeyField = "key"
)

// The acts of the guide, as in the audit.
const (
	MakeAct     = "sandbox.make"
	OrderAct    = "sandbox.order"
	CallbackAct = "sandbox.callback"
	DismissAct  = "guide.dismiss"
	ActObject   = "guide"
)

// NewAPIKey returns a new key for the merchant. Keys that begin with sk_test_ belong to test mode.
func NewAPIKey() string { return "sk_sandbox_" + strings.ToLower(rand.Text()+rand.Text()) }

// Declaration returns the apply file of the supplier and the merchant, with new secrets.
func Declaration(apiKey string) []byte {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	return written(map[string]any{
		"suppliers": []any{map[string]any{
			"code": Code, "kind": "sortedparams", "ask_pending": false,
			"config": config(rand.Text()),
		}},
		"merchants": []any{map[string]any{
			"code": Code, "name": "Sandbox", "api_key": apiKey,
			"signing_secret": "whsec_" + base64.StdEncoding.EncodeToString(secret),
			"notify":         map[string]any{"urls": []string{NotifyURL}, "ack": "text", "ack_text": "success"},
		}},
	})
}

// config is that of the supplier.
func config(key string) map[string]any {
	return map[string]any{
		"format": "form", "algorithm": "hmac-sha256", KeyField: key, "sign_case": "lower", "order_field": "order_no", "trade_field": "trade_no",
		"amount_field": "amount", "amount_unit": "minor", "currency": Currency, "status_field": "status", "paid_values": []string{"PAID"},
	}
}

// Rekeyed returns the apply file that gives the merchant a new key.
func Rekeyed(apiKey string) []byte {
	return written(map[string]any{"merchants": []any{map[string]any{"code": Code, "api_key": apiKey}}})
}

func written(file map[string]any) []byte {
	text, err := json.Marshal(file) // JSON is valid YAML
	if err != nil {
		panic("sandbox: " + err.Error()) // texts only
	}
	return text
}

// Callback returns the callback by which the supplier reports an order as paid, signed with its key.
func Callback(key, orderNo string, amount int64) *supplier.Request {
	req, err := sortedparams.Kind.Sign(written(config(key)), supplier.Report{
		OrderRef: orderNo, TradeNo: "SB" + orderNo, Amount: amount, Currency: Currency, Status: supplier.Paid,
	})
	if err != nil {
		panic("sandbox: " + err.Error()) // the config is ours
	}
	req.Path = "/callback/" + Code
	return req
}

// maxBody bounds what the endpoint reads.
const maxBody = 1 << 20

// Endpoint answers the merchant's notifications.
func Endpoint(r *http.Request) (*http.Response, error) {
	answer := func(status int, text string) (*http.Response, error) {
		return &http.Response{
			Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1,
			ProtoMinor: 1,
			Header:     http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, Body: io.NopCloser(bytes.NewReader([]byte(text))),
			ContentLength: int64(len(text)), Request: r,
		}, nil
	}
	if r.Body != nil {
		defer r.Body.Close()
		if n, err := io.Copy(io.Discard, io.LimitReader(r.Body, maxBody+1)); err != nil || n > maxBody {
			return answer(http.StatusBadRequest, "the body is too large or broken")
		}
	}
	if r.Method != http.MethodPost || r.Header.Get("Webhook-Id") == "" || r.Header.Get("Webhook-Signature") == "" {
		return answer(http.StatusBadRequest, "this is the endpoint of the sandbox: it takes signed notifications only")
	}
	return answer(http.StatusOK, "success")
}
