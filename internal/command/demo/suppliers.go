package demo

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"backstop/internal/base/money"
)

// fact is a payment that a supplier reports.
type fact struct {
	OrderNo, TradeNo string
	Amount           int64 // minor units of the supplier's currency
	At               time.Time
}

// message is a callback, sent by POST.
type message struct {
	header http.Header
	body   []byte
}

// payer is a simulated supplier, with keys of this run.
type payer struct {
	code, kind, currency string
	config               map[string]any // for apply
	sign                 func(f fact) (message, error)
	dispute              func(f fact) (message, error) // nil = no disputes
}

// newPayers makes one supplier of each protocol. The account numbers are the same in each
// run, the keys are not.
func newPayers() ([]payer, error) {
	wechatKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	alipayKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	wechatAPIKey, stripeSecret, sortedKey := randomHex(16), stripe("whsec_"+randomHex(16)), sorted(randomHex(16))
	return []payer{
		{code: "demo-wechatpay", kind: "wechatpay", currency: "CNY", sign: (&wechat{wechatKey, wechatAPIKey}).sign, config: map[string]any{
			"mch_id": wechatMch, "app_id": wechatApp, "api_v3_key": wechatAPIKey, // of 32 characters
			"public_key_id": wechatKeyID, "public_key": publicPEM(wechatKey),
		}},
		{code: "demo-alipay", kind: "alipay", currency: "CNY", sign: (&alipay{alipayKey}).sign, config: map[string]any{
			"app_id": alipayApp, "seller_id": alipaySeller, "alipay_public_key": publicPEM(alipayKey),
		}},
		{code: "demo-stripe", kind: "stripe", currency: "USD", sign: stripeSecret.sign, dispute: stripeSecret.dispute, config: map[string]any{
			"webhook_secrets": []string{string(stripeSecret)},
		}},
		{code: "demo-sorted", kind: "sortedparams", currency: "CNY", sign: sortedKey.sign, config: map[string]any{
			"format": "form", "algorithm": "hmac-sha256", "key": string(sortedKey), "sign_case": "lower",
			"order_field": "order_no", "trade_field": "trade_no", "amount_field": "amount", "amount_unit": "minor",
			"currency": "CNY", "status_field": "status", "paid_values": []string{"1"},
			"account_field": "mch", "account": "90001",
		}},
	}, nil
}

// wechat signs as WeChat Pay's API v3 does.
type wechat struct {
	key    *rsa.PrivateKey
	apiKey string
}

const (
	wechatKeyID = "PUB_KEY_ID_0119000000012026010100000000"
	wechatMch   = "1900000001"
	wechatApp   = "wx8888888888888888"
)

func (w *wechat) sign(f fact) (message, error) {
	at := f.At.Format(time.RFC3339)
	plain, err := json.Marshal(map[string]any{
		"mchid": wechatMch, "appid": wechatApp, "out_trade_no": f.OrderNo, "transaction_id": f.TradeNo,
		"trade_type": "NATIVE", "trade_state": "SUCCESS", "success_time": at,
		"amount": map[string]any{"total": f.Amount, "payer_total": f.Amount, "currency": "CNY", "payer_currency": "CNY"},
	})
	if err != nil {
		return message{}, fmt.Errorf("write the resource: %w", err)
	}
	block, err := aes.NewCipher([]byte(w.apiKey))
	if err != nil {
		return message{}, fmt.Errorf("seal the resource: %w", err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return message{}, fmt.Errorf("seal the resource: %w", err)
	}
	nonce := randomHex(6) // 12 characters: the nonce of GCM
	body, err := json.Marshal(map[string]any{
		"id": "EV-" + f.TradeNo, "create_time": at, "resource_type": "encrypt-resource",
		"event_type": "TRANSACTION.SUCCESS", "summary": "支付成功",
		"resource": map[string]any{
			"original_type": "transaction", "algorithm": "AEAD_AES_256_GCM",
			"ciphertext":      base64.StdEncoding.EncodeToString(gcm.Seal(nil, []byte(nonce), plain, []byte("transaction"))),
			"associated_data": "transaction", "nonce": nonce,
		},
	})
	if err != nil {
		return message{}, fmt.Errorf("write the notification: %w", err)
	}
	stamp, once := strconv.FormatInt(f.At.Unix(), 10), randomHex(16)
	signature, err := rsaSign(w.key, stamp+"\n"+once+"\n"+string(body)+"\n")
	return message{http.Header{
		"Content-Type": {"application/json"}, "Wechatpay-Timestamp": {stamp}, "Wechatpay-Nonce": {once},
		"Wechatpay-Serial": {wechatKeyID}, "Wechatpay-Signature": {signature},
		"Wechatpay-Signature-Type": {"WECHATPAY2-SHA256-RSA2048"},
	}, body}, err
}

// alipay signs as Alipay does, by RSA2.
type alipay struct{ key *rsa.PrivateKey }

const (
	alipayApp    = "2021000000000001"
	alipaySeller = "2088000000000001"
)

// beijing is the zone of Alipay's times.
var beijing = time.FixedZone("UTC+8", 8*60*60)

func (a *alipay) sign(f fact) (message, error) {
	at := f.At.In(beijing).Format(time.DateTime)
	fields := map[string]string{
		"notify_id": "n" + f.TradeNo, "notify_time": at, "notify_type": "trade_status_sync",
		"app_id": alipayApp, "seller_id": alipaySeller, "charset": "utf-8", "version": "1.0",
		"out_trade_no": f.OrderNo, "trade_no": f.TradeNo, "trade_status": "TRADE_SUCCESS",
		"total_amount": money.Format(f.Amount, "CNY"), "gmt_payment": at,
	}
	signature, err := rsaSign(a.key, sortedPairs(fields))
	fields["sign"], fields["sign_type"] = signature, "RSA2"
	return formMessage(fields), err
}

// stripe is a secret that signs events as Stripe does.
type stripe string

func (s stripe) sign(f fact) (message, error) {
	return s.event(f, "evt_"+f.TradeNo, "payment_intent.succeeded", map[string]any{
		"id": "pi_" + f.TradeNo, "object": "payment_intent", "status": "succeeded",
		"amount": f.Amount, "amount_received": f.Amount, "currency": "usd",
		"metadata": map[string]any{"order_no": f.OrderNo},
	})
}

// disputeDue is the time limit to answer a dispute.
const disputeDue = 7 * 24 * time.Hour

// dispute reports that the buyer demands the payment back. It contains no data of the shop.
func (s stripe) dispute(f fact) (message, error) {
	return s.event(f, "evt_dispute_"+f.TradeNo, "charge.dispute.created", map[string]any{
		"id": "du_" + f.TradeNo, "object": "dispute", "amount": f.Amount, "currency": "usd",
		"payment_intent": "pi_" + f.TradeNo, "charge": "ch_" + f.TradeNo, "reason": "product_not_received", "status": "needs_response",
		"evidence_details": map[string]any{"due_by": f.At.Add(disputeDue).Unix()},
	})
}

func (s stripe) event(f fact, id, kind string, object map[string]any) (message, error) {
	body, err := json.Marshal(map[string]any{
		"id": id, "object": "event", "type": kind, "created": f.At.Unix(), "data": map[string]any{"object": object},
	})
	if err != nil {
		return message{}, fmt.Errorf("write the event: %w", err)
	}
	stamp := strconv.FormatInt(f.At.Unix(), 10)
	return message{http.Header{
		"Content-Type":     {"application/json"},
		"Stripe-Signature": {"t=" + stamp + ",v1=" + hmacHex(string(s), stamp+"."+string(body))},
	}, body}, nil
}

// sorted is a key that signs sorted parameters by HMAC-SHA256, as smaller suppliers do.
type sorted string

func (s sorted) sign(f fact) (message, error) {
	fields := map[string]string{
		"mch": "90001", "order_no": f.OrderNo, "trade_no": f.TradeNo, "amount": strconv.FormatInt(f.Amount, 10), "status": "1",
	}
	fields["sign"] = hmacHex(string(s), sortedPairs(fields))
	return formMessage(fields), nil
}

// forge makes an invalid message: with the signature for another amount, or with one
// changed byte in the body.
func forge(p payer, f fact, flip bool) (message, error) {
	genuine, err := p.sign(f)
	if err != nil {
		return message{}, err
	}
	if flip {
		genuine.body[len(genuine.body)/2] ^= 1
		return genuine, nil
	}
	f.Amount++
	other, err := p.sign(f)
	if err != nil {
		return message{}, err
	}
	if genuine.header.Get("Content-Type") == "application/json" {
		return message{other.header, genuine.body}, nil // the signature is in the header
	}
	fields, err := url.ParseQuery(string(genuine.body))
	if err != nil {
		return message{}, fmt.Errorf("read the own form: %w", err)
	}
	others, err := url.ParseQuery(string(other.body))
	if err != nil {
		return message{}, fmt.Errorf("read the own form: %w", err)
	}
	fields.Set("sign", others.Get("sign"))
	return message{genuine.header, []byte(fields.Encode())}, nil
}

func sortedPairs(fields map[string]string) string {
	pairs := make([]string, 0, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		pairs = append(pairs, name+"="+fields[name])
	}
	return strings.Join(pairs, "&")
}

func formMessage(fields map[string]string) message {
	values := url.Values{}
	for name, value := range fields {
		values.Set(name, value)
	}
	return message{http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, []byte(values.Encode())}
}

func rsaSign(key *rsa.PrivateKey, text string) (string, error) {
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	return base64.StdEncoding.EncodeToString(signature), nil
}

func hmacHex(key, text string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

func publicPEM(key *rsa.PrivateKey) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&key.PublicKey)}))
}

// randomHex is n random bytes as 2n characters.
func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // crypto/rand never fails (Go 1.24)
	return hex.EncodeToString(b)
}
