// Package alipay parses asynchronous notifications of Alipay (支付宝), signed with RSA2, and
// starts, queries and closes payments.
//
// It verifies with the standard library; the README lists what the Alipay library does
// differently. The tests check our messages with that library.
package alipay

import (
	"cmp"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"backstop/internal/base/mask"
	"backstop/internal/base/textlimit"
	"backstop/internal/supplier"
)

// What callbacks and answers hold that is neither a person's nor a secret.
var _ = mask.Declare(`notify_id notify_type notify_time app_id auth_app_id seller_id trade_no out_trade_no out_biz_no out_request_no
	trade_status total_amount receipt_amount invoice_amount buyer_pay_amount point_amount refund_fee refund_amount refund_status
	gmt_create gmt_payment gmt_refund gmt_close send_back_fee send_pay_date fund_change charset version sign_type sign method timestamp
	format product_code timeout_express time_expire biz_content code msg sub_code sub_msg trans_amount trans_currency pay_date order_id
	status refund_reason gmt_refund_pay amount fund_channel biz_scene settle_amount pay_amount`)

// Kind describes Alipay to the registry.
var Kind = supplier.Kind{
	Name: "alipay", Texts: &Texts,
	Fields: supplier.FieldsOf[config](fieldTexts),
	New:    newAdapter,
}

type config struct {
	AppID           string `json:"app_id" required:"true" example:"2021000000000000"`
	SellerID        string `json:"seller_id" example:"2088000000000000"`
	AlipayPublicKey string `json:"alipay_public_key" kind:"text" required:"true" example:"file:secrets/alipay-public.pem"`
	// For calls.
	AppPrivateKey string `json:"app_private_key" kind:"text" secret:"pem" example:"file:secrets/alipay-app.pem"`
	GatewayURL    string `json:"gateway_url" kind:"url" example:"https://openapi.alipay.com/gateway.do"`
}

type adapter struct {
	appID, sellerID string
	key             *rsa.PublicKey
	described       []supplier.Key
}

// Takes reports whether Alipay takes payments in a currency.
func (adapter) Takes(of string) bool { return of == currency }

func newAdapter(_ string, raw json.RawMessage, out supplier.Client) (supplier.Adapter, error) {
	var c config
	if err := supplier.DecodeConfig(raw, &c); err != nil {
		return nil, err
	}
	if c.AppID == "" {
		return nil, &supplier.FieldError{Field: "app_id", Problem: "is missing"}
	}
	key, err := supplier.ParsePublicKey(c.AlipayPublicKey)
	if err != nil {
		return nil, &supplier.FieldError{Field: "alipay_public_key", Problem: err.Error()}
	}
	a := &adapter{appID: c.AppID, sellerID: c.SellerID, key: key}
	a.described = []supplier.Key{supplier.RSAKey("alipay_public_key", "", supplier.PublicKey, key)}
	own, gateway, err := c.forCalls()
	switch {
	case err != nil:
		return a, supplier.ForCalls(err)
	// Alipay's console shows both public keys side by side; with the wrong one every
	// notification would be refused.
	case own != nil && own.PublicKey.Equal(key):
		return nil, &supplier.FieldError{Field: "alipay_public_key", Problem: "is the application's public key; expected Alipay's (支付宝公钥)"}
	case own == nil || out == nil:
		return a, nil
	}
	a.described = append(a.described, supplier.RSAKey("app_private_key", "", supplier.PrivateKey, &own.PublicKey))
	return &calls{adapter: *a, own: own, gateway: gateway, out: out}, nil
}

// forCalls returns the application's key and the gateway; without a key there are no calls.
func (c config) forCalls() (*rsa.PrivateKey, *url.URL, error) {
	if err := supplier.CheckURL("gateway_url", c.GatewayURL); err != nil {
		return nil, nil, err
	}
	if c.AppPrivateKey == "" && c.GatewayURL != "" {
		return nil, nil, &supplier.FieldError{Field: "app_private_key", Problem: "is missing: without it gateway_url cannot be called"}
	}
	if c.AppPrivateKey == "" {
		return nil, nil, nil
	}
	own, err := supplier.ParsePrivateKey(c.AppPrivateKey)
	if err != nil {
		return nil, nil, &supplier.FieldError{Field: "app_private_key", Problem: err.Error()}
	}
	gateway, err := url.Parse(cmp.Or(c.GatewayURL, defaultGateway))
	if err != nil {
		return nil, nil, &supplier.FieldError{Field: "gateway_url", Problem: "is not an address"}
	}
	return own, gateway, nil
}

// Keys describes the keys.
func (a *adapter) Keys() []supplier.Key { return a.described }

// Parse parses a notification: the POST body, ignoring the query. The README lists what each
// notification means.
func (a *adapter) Parse(req *supplier.Request, t *supplier.Trace) (supplier.Callback, error) {
	fields, err := supplier.ParseForm(string(req.Body))
	if err != nil {
		t.FailBy("form", err)
		return supplier.Callback{}, err
	}
	if err := a.verify(fields); err != nil {
		t.FailBy("signature", err)
		return supplier.Callback{}, err
	}
	t.Pass("signature", signatureHolds)
	if err := supplier.CheckUnsigned(req, fields, signedNames(fields)); err != nil {
		t.FailBy("unsigned", err)
		return supplier.Callback{}, err
	}
	got, err := a.translate(fields)
	for _, value := range fields {
		err = cmp.Or(err, supplier.CheckCut(value, read))
	}
	if err != nil {
		return t.FailContent(got, err, signedText(fields))
	}
	t.Pass("content", contentRead)
	return got, nil
}

// verify checks RSA-SHA256 over the parameters. sign_type is fixed: a message that could choose
// plain RSA would be checked with SHA-1.
func (a *adapter) verify(fields map[string]string) error {
	if fields["sign_type"] != "RSA2" {
		return supplier.RefuseSignature(signType, strconv.Quote(textlimit.Clip(fields["sign_type"], 20)))
	}
	given, err := base64.StdEncoding.Strict().DecodeString(fields["sign"])
	if err != nil || len(given) == 0 {
		return supplier.RefuseSignature(noSign)
	}
	digest := sha256.Sum256([]byte(signedText(fields)))
	if rsa.VerifyPKCS1v15(a.key, crypto.SHA256, digest[:], given) != nil {
		return supplier.RefuseSignature(signatureWrong)
	}
	return nil
}

// signedText joins all parameters except sign and sign_type by name. Parameters with an empty
// value count (Alipay's Java SDK, AlipaySignature.rsaCheckV1), and values are not trimmed: what
// is not signed must not be read.
func signedText(fields map[string]string) string {
	return supplier.JoinPairs(fields, signedNames(fields))
}

// signedNames lists the signed parameters in byte order. The signature itself is not among
// them: base64 may contain any number of line breaks.
func signedNames(fields map[string]string) []string {
	names := slices.Sorted(maps.Keys(fields))
	return slices.DeleteFunc(names, func(name string) bool { return name == "sign" || name == "sign_type" })
}

// Reply answers with a body: exactly "success" stops the notifications, anything else makes
// Alipay repeat them.
func (a *adapter) Reply(r supplier.Result) supplier.Reply {
	body := "fail"
	if r == supplier.Taken {
		body = "success"
	}
	return supplier.Reply{Status: r.HTTPStatus(), ContentType: "text/plain", Body: []byte(body)}
}

// Identity returns the application and, if configured, the seller.
func (a *adapter) Identity() map[string]string {
	return map[string]string{"app_id": a.appID, "seller_id": a.sellerID}
}

// Account is the application, which, unlike the seller, is always configured. Trade numbers are
// unique over all of Alipay.
func (a *adapter) Account() string { return "alipay:" + a.appID }
