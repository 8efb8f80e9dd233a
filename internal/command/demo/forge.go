package demo

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/url"

	"backstop/internal/simulator"
)

// codes are the demo's suppliers by kind.
var codes = map[string]string{
	"wechatpay": "demo-wechatpay", "alipay": "demo-alipay", "stripe": "demo-stripe", "sortedparams": "demo-sorted",
}

// names are what they are called.
var names = map[string]string{
	"wechatpay": "微澜支付 Ripple Pay", "alipay": "云阶支付 Terrace Pay", "stripe": "经纬国际卡 Meridian Cards", "sortedparams": "四方聚合 Quad Pay",
}

// forge returns an invalid message: with the signature of another amount or, with flip, with
// one changed byte in the body.
func forge(p *simulator.Account, f simulator.Fact, flip bool) (simulator.Message, error) {
	genuine, err := p.Callback(f)
	if err != nil {
		return simulator.Message{}, fmt.Errorf("sign the callback: %w", err)
	}
	if flip {
		genuine.Body[len(genuine.Body)/2] ^= 1
		return genuine, nil
	}
	f.Amount++
	other, err := p.Callback(f)
	if err != nil {
		return simulator.Message{}, fmt.Errorf("sign the callback: %w", err)
	}
	if genuine.Header.Get("Content-Type") == "application/json" {
		return simulator.Message{Header: other.Header, Body: genuine.Body}, nil // the signature is in the header
	}
	fields, err := url.ParseQuery(string(genuine.Body))
	if err != nil {
		return simulator.Message{}, fmt.Errorf("read the own form: %w", err)
	}
	others, err := url.ParseQuery(string(other.Body))
	if err != nil {
		return simulator.Message{}, fmt.Errorf("read the own form: %w", err)
	}
	fields.Set("sign", others.Get("sign"))
	return simulator.Message{Header: genuine.Header, Body: []byte(fields.Encode())}, nil
}

// randomHex returns n random bytes as 2n hex characters.
func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // crypto/rand never fails (Go 1.24)
	return hex.EncodeToString(b)
}
