// Package wechatpay parses notifications of WeChat Pay (微信支付), API v3, and starts, queries and
// closes payments.
//
// It verifies and decrypts with the standard library; the README lists what the official SDK
// leaves unchecked. The tests check our messages with that SDK.
package wechatpay

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"backstop/internal/base/mask"
	"backstop/internal/base/text"
	"backstop/internal/base/textlimit"
	"backstop/internal/supplier"
)

// What callbacks and answers hold that is neither a person's nor a secret.
var _ = mask.Declare(`id create_time event_type resource_type summary resource original_type algorithm mchid appid mch_id sp_mchid
	sub_mchid out_trade_no transaction_id trade_type trade_state trade_state_desc bank_type success_time amount total payer_total currency
	payer_currency out_refund_no refund_id refund_status refund channel status funds_account refund_fee total_fee cash_fee fee_type
	result_code return_code return_msg err_code err_code_des time_end code message notify_url description time_expire prepay_id
	combine_out_trade_no combine_mchid combine_appid complaint_id complaint_time complaint_state action_type from discount_refund
	settlement_refund settlement_total`,
	"Wechatpay-Timestamp Wechatpay-Nonce Wechatpay-Serial Wechatpay-Signature Wechatpay-Signature-Type")

// Kind describes WeChat Pay to the registry.
var Kind = supplier.Kind{
	Name: "wechatpay", Texts: &Texts,
	Fields: supplier.FieldsOf[config](fieldTexts),
	New:    newAdapter,
}

// window is the tolerated difference of a notification's time from ours, in either direction
// (pay.weixin.qq.com, 如何验证签名: 5 minutes).
const window = 5 * time.Minute

// probePrefix begins the signature of probes: WeChat Pay occasionally sends a wrong signature
// to check that it is refused, and counts anything but 4xx or 5xx as a defect of the merchant.
const probePrefix = "WECHATPAY/SIGNTEST/"

// signatureType is the only supported type of signature, and the default for messages without
// the header.
const signatureType = "WECHATPAY2-SHA256-RSA2048"

type adapter struct {
	mchID, appID string
	apiKey       []byte
	keys         map[string]platformKey // by the serial in messages
	described    []supplier.Key
	*caller      // nil = no calls can be made
}

// Takes reports whether WeChat Pay takes payments in a currency (境内商户号仅支持人民币).
func (*adapter) Takes(currency string) bool { return currency == "CNY" }

// platformKey verifies WeChat Pay's signatures: the public key (it does not expire; its times
// are zero) or a platform certificate.
type platformKey struct {
	key                 *rsa.PublicKey
	notBefore, notAfter time.Time
}

// Keys describes the keys.
func (a *adapter) Keys() []supplier.Key { return a.described }

// Parse verifies, decrypts and parses a notification. The README lists what each notification
// means.
func (a *adapter) Parse(req *supplier.Request, t *supplier.Trace) (supplier.Callback, error) {
	if err := supplier.CheckSigned(req, t, window, a.verify); err != nil {
		return supplier.Callback{}, err
	}
	n, err := readNotification(req.Body)
	if err != nil {
		return t.FailContent(n.callback(), err, "")
	}
	plain, err := n.Resource.open(a.apiKey)
	if err != nil {
		t.FailBy("decrypt", err)
		return supplier.Callback{}, &supplier.Unreadable{
			Kind: "decrypt_failed", Result: supplier.InternalFailed, Reason: text.Of(err), Callback: n.callback(),
		}
	}
	t.Pass("decrypt", decrypted)
	got, err := translate(n, plain)
	if err != nil {
		return t.FailContent(got, err, "")
	}
	t.Pass("content", contentRead)
	return got, nil
}

// verify returns the signed time. The signature covers "time\nnonce\nbody\n".
func (a *adapter) verify(req *supplier.Request, t *supplier.Trace) (time.Time, error) {
	var stamp, nonce, serial, signature string
	for _, h := range []struct {
		name string
		into *string
	}{
		{"Wechatpay-Timestamp", &stamp},
		{"Wechatpay-Nonce", &nonce},
		{"Wechatpay-Serial", &serial},
		{"Wechatpay-Signature", &signature},
	} {
		values := req.Header.Values(h.name)
		if len(values) != 1 || values[0] == "" {
			return time.Time{}, supplier.RefuseSignature(oneHeader, h.name)
		}
		*h.into = values[0]
	}
	if strings.HasPrefix(signature, probePrefix) {
		return time.Time{}, supplier.RefuseSignature(probe)
	}
	// The message must not choose how it is verified: any other type is refused.
	if types := req.Header.Values("Wechatpay-Signature-Type"); len(types) > 1 || len(types) == 1 && types[0] != signatureType {
		return time.Time{}, supplier.RefuseSignature(wrongType, strconv.Quote(textlimit.Clip(strings.Join(types, ", "), 80)), signatureType)
	}
	known, ok := a.keys[serial]
	if !ok {
		return time.Time{}, supplier.RefuseSignature(noSerial, strconv.Quote(textlimit.Clip(serial, 80)))
	}
	if err := known.validAt(req.ReceivedAt); err != nil {
		return time.Time{}, err
	}
	given, err := base64.StdEncoding.Strict().DecodeString(signature)
	if err != nil {
		return time.Time{}, supplier.RefuseSignature(notBase64)
	}
	digest := sha256.New()
	for _, part := range [][]byte{[]byte(stamp), []byte(nonce), req.Body} {
		digest.Write(part)
		digest.Write([]byte{'\n'})
	}
	if rsa.VerifyPKCS1v15(known.key, crypto.SHA256, digest.Sum(nil), given) != nil {
		return time.Time{}, supplier.RefuseSignature(signatureWrong, textlimit.Clip(serial, 80))
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return time.Time{}, supplier.RefuseSignature(timeNoNumber)
	}
	t.Pass("signature", signatureHolds)
	return time.Unix(seconds, 0).UTC(), nil
}

// validAt refuses a certificate outside its validity period: WeChat Pay signs with a newer one
// some time before the end.
func (k platformKey) validAt(now time.Time) error {
	if k.notAfter.IsZero() {
		return nil
	}
	if now.Before(k.notBefore) || now.After(k.notAfter) {
		return supplier.RefuseSignature(certificateDates,
			k.notBefore.UTC().Format(time.DateOnly), k.notAfter.UTC().Format(time.DateOnly))
	}
	return nil
}

// Reply answers with a status, which alone decides: 2xx ends the notifications, even with FAIL
// in the body.
func (a *adapter) Reply(r supplier.Result) supplier.Reply {
	code, message := "FAIL", replies[r]
	if r == supplier.Taken {
		code = "SUCCESS"
	}
	return supplier.Reply{
		Status: r.HTTPStatus(), ContentType: "application/json",
		Body: fmt.Appendf(nil, `{"code":%q,"message":%q}`, code, message),
	}
}

var replies = map[supplier.Result]string{
	supplier.Taken:          "OK",
	supplier.BadSignature:   "bad signature",
	supplier.Malformed:      "malformed",
	supplier.Unavailable:    "busy, send again",
	supplier.InternalFailed: "internal error, send again",
}

// Identity returns the merchant and, if configured, the application.
func (a *adapter) Identity() map[string]string {
	return map[string]string{"mch_id": a.mchID, "app_id": a.appID}
}

// Account is the merchant: one merchant number may serve several applications, and transaction
// numbers are unique within it.
func (a *adapter) Account() string { return "wechatpay:" + a.mchID }
