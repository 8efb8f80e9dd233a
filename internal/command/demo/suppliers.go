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

// fact is what a supplier reports: somebody paid.
type fact struct {
	OrderNo, TradeNo string
	Amount           int64 // minor units of the supplier's currency
	At               time.Time
}

// message is a callback as it goes over the wire, by POST.
type message struct {
	header http.Header
	body   []byte
}

// payer is a simulated supplier: what apply is told of it, and its genuine
// signature under keys that live as long as the demo.
type payer interface {
	code() string
	kind() string
	currency() string
	config() map[string]any
	sign(f fact) (message, error)
}

// newPayers makes one supplier of each protocol. The account numbers stay the
// same from one demo to the next, the keys do not.
func newPayers() ([]payer, error) {
	wechatKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	alipayKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return []payer{
		&wechat{key: wechatKey, apiKey: randomHex(16)}, // 32 characters, as WeChat Pay wants
		&alipay{key: alipayKey},
		&stripe{secret: "whsec_" + randomHex(16)},
		&sorted{key: randomHex(16)},
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

func (*wechat) code() string     { return "demo-wechatpay" }
func (*wechat) kind() string     { return "wechatpay" }
func (*wechat) currency() string { return "CNY" }

func (w *wechat) config() map[string]any {
	return map[string]any{
		"mch_id": wechatMch, "app_id": wechatApp, "api_v3_key": w.apiKey,
		"public_key_id": wechatKeyID, "public_key": publicPEM(w.key),
	}
}

func (w *wechat) sign(f fact) (message, error) {
	at := f.At.Format(time.RFC3339)
	plain, err := json.Marshal(map[string]any{
		"mchid": wechatMch, "appid": wechatApp, "out_trade_no": f.OrderNo, "transaction_id": f.TradeNo,
		"trade_type": "NATIVE", "trade_state": "SUCCESS", "success_time": at,
		"amount": map[string]any{"total": f.Amount, "payer_total": f.Amount, "currency": w.currency(), "payer_currency": w.currency()},
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

func (*alipay) code() string     { return "demo-alipay" }
func (*alipay) kind() string     { return "alipay" }
func (*alipay) currency() string { return "CNY" }

func (a *alipay) config() map[string]any {
	return map[string]any{"app_id": alipayApp, "seller_id": alipaySeller, "alipay_public_key": publicPEM(a.key)}
}

func (a *alipay) sign(f fact) (message, error) {
	at := f.At.In(beijing).Format(time.DateTime)
	fields := map[string]string{
		"notify_id": "n" + f.TradeNo, "notify_time": at, "notify_type": "trade_status_sync",
		"app_id": alipayApp, "seller_id": alipaySeller, "charset": "utf-8", "version": "1.0",
		"out_trade_no": f.OrderNo, "trade_no": f.TradeNo, "trade_status": "TRADE_SUCCESS",
		"total_amount": money.Format(f.Amount, a.currency()), "gmt_payment": at,
	}
	signature, err := rsaSign(a.key, sortedPairs(fields))
	fields["sign"], fields["sign_type"] = signature, "RSA2"
	return formMessage(fields), err
}

// stripe signs events as Stripe does.
type stripe struct{ secret string }

func (*stripe) code() string     { return "demo-stripe" }
func (*stripe) kind() string     { return "stripe" }
func (*stripe) currency() string { return "USD" }

func (s *stripe) config() map[string]any {
	return map[string]any{"webhook_secrets": []string{s.secret}}
}

func (s *stripe) sign(f fact) (message, error) {
	return s.event(f, "evt_"+f.TradeNo, "payment_intent.succeeded", map[string]any{
		"id": "pi_" + f.TradeNo, "object": "payment_intent", "status": "succeeded",
		"amount": f.Amount, "amount_received": f.Amount, "currency": strings.ToLower(s.currency()),
		"metadata": map[string]any{"order_no": f.OrderNo},
	})
}

// disputeDue is how long a shop has to answer a dispute.
const disputeDue = 7 * 24 * time.Hour

// dispute says that the buyer wants the payment back. It carries nothing of the shop.
func (s *stripe) dispute(f fact) (message, error) {
	return s.event(f, "evt_dispute_"+f.TradeNo, "charge.dispute.created", map[string]any{
		"id": "du_" + f.TradeNo, "object": "dispute", "amount": f.Amount, "currency": strings.ToLower(s.currency()),
		"payment_intent": "pi_" + f.TradeNo, "charge": "ch_" + f.TradeNo, "reason": "product_not_received", "status": "needs_response",
		"evidence_details": map[string]any{"due_by": f.At.Add(disputeDue).Unix()},
	})
}

func (s *stripe) event(f fact, id, kind string, object map[string]any) (message, error) {
	body, err := json.Marshal(map[string]any{
		"id": id, "object": "event", "type": kind, "created": f.At.Unix(), "data": map[string]any{"object": object},
	})
	if err != nil {
		return message{}, fmt.Errorf("write the event: %w", err)
	}
	stamp := strconv.FormatInt(f.At.Unix(), 10)
	return message{http.Header{
		"Content-Type":     {"application/json"},
		"Stripe-Signature": {"t=" + stamp + ",v1=" + hmacHex(s.secret, stamp+"."+string(body))},
	}, body}, nil
}

// sorted signs sorted parameters by HMAC-SHA256, as smaller suppliers do.
type sorted struct{ key string }

func (*sorted) code() string     { return "demo-sorted" }
func (*sorted) kind() string     { return "sortedparams" }
func (*sorted) currency() string { return "CNY" }

func (s *sorted) config() map[string]any {
	return map[string]any{
		"format": "form", "algorithm": "hmac-sha256", "key": s.key, "sign_case": "lower",
		"order_field": "order_no", "trade_field": "trade_no", "amount_field": "amount", "amount_unit": "minor",
		"currency": s.currency(), "status_field": "status", "paid_values": []string{"1"},
		"account_field": "mch", "account": "90001",
	}
}

func (s *sorted) sign(f fact) (message, error) {
	fields := map[string]string{
		"mch": "90001", "order_no": f.OrderNo, "trade_no": f.TradeNo, "amount": strconv.FormatInt(f.Amount, 10), "status": "1",
	}
	fields["sign"] = hmacHex(s.key, sortedPairs(fields))
	return formMessage(fields), nil
}

// forge spoils a genuine message: the signature of a message about another
// amount, or one byte of the body.
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
		return message{other.header, genuine.body}, nil // signatures stand in the header
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
