package wechatpay

import (
	"cmp"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"backstop/internal/supplier"
)

// apiKeyLength is the length of an AES-256 key; WeChat Pay uses 32 letters and digits.
const apiKeyLength = 32

type config struct {
	MchID        string   `json:"mch_id" required:"true" example:"1900000001"`
	AppID        string   `json:"app_id" example:"wx8888888888888888"`
	APIV3Key     string   `json:"api_v3_key" secret:"true" required:"true" min:"32" max:"32" example:"file:secrets/wechatpay-apiv3"`
	PublicKeyID  string   `json:"public_key_id" example:"PUB_KEY_ID_0000000000000000000000000000"`
	PublicKey    string   `json:"public_key" kind:"text" example:"file:secrets/wechatpay-public.pem"`
	Certificates []string `json:"certificates" example:"[file:secrets/wechatpay-platform.pem]"`
	// For calls: serial and key of the merchant's own certificate.
	MerchantSerial     string `json:"merchant_serial" example:"5157F09EFDC096DE15EBE81A47057A72"`
	MerchantPrivateKey string `json:"merchant_private_key" kind:"text" secret:"pem" example:"file:secrets/wechatpay-merchant.pem"`
	BaseURL            string `json:"base_url" kind:"url" example:"https://api.mch.weixin.qq.com"`
}

func newAdapter(_ string, raw json.RawMessage, out supplier.Client) (supplier.Adapter, error) {
	var c config
	if err := supplier.DecodeConfig(raw, &c); err != nil {
		return nil, err
	}
	if c.MchID == "" {
		return nil, wrong("mch_id", "is missing")
	}
	if len(c.APIV3Key) != apiKeyLength {
		return nil, wrong("api_v3_key", fmt.Sprintf("has %d characters, an APIv3 key has %d", len(c.APIV3Key), apiKeyLength))
	}
	keys, described, err := c.platformKeys()
	if err != nil {
		return nil, err
	}
	a := &adapter{mchID: c.MchID, appID: c.AppID, apiKey: []byte(c.APIV3Key), keys: keys}
	a.described = append(described, supplier.Key{Field: "api_v3_key", Kind: supplier.SharedKey})
	a.caller, err = c.caller(out)
	if a.caller != nil {
		own := a.caller.key.Public().(*rsa.PublicKey)
		a.described = append(a.described, supplier.RSAKey("merchant_private_key", c.MerchantSerial, supplier.PrivateKey, own))
	}
	return a, supplier.ForCalls(err)
}

// caller returns what calls are made with; nil if the config has no keys for them, or there is
// no client.
func (c config) caller(out supplier.Client) (*caller, error) {
	if err := supplier.CheckURL("base_url", c.BaseURL); err != nil {
		return nil, err
	}
	switch {
	case c.MerchantPrivateKey == "" && c.MerchantSerial != "":
		return nil, wrong("merchant_private_key", "is missing; it belongs to merchant_serial")
	case c.MerchantPrivateKey == "" && c.BaseURL != "":
		return nil, wrong("merchant_private_key", "is missing: without it base_url cannot be called")
	case c.MerchantPrivateKey == "":
		return nil, nil
	}
	key, err := supplier.ParsePrivateKey(c.MerchantPrivateKey)
	switch {
	case err != nil:
		return nil, wrong("merchant_private_key", err.Error())
	case c.MerchantSerial == "":
		return nil, wrong("merchant_serial", "is missing; give the serial of the certificate that merchant_private_key belongs to")
	case strings.Trim(c.MerchantSerial, "0123456789ABCDEFabcdef") != "":
		return nil, wrong("merchant_serial", "is not a certificate's serial in hexadecimal digits")
	case out == nil:
		return nil, nil
	}
	return &caller{
		out: out, base: strings.TrimRight(cmp.Or(c.BaseURL, defaultBase), "/"),
		serial: c.MerchantSerial, key: key, answersUnder: c.PublicKeyID,
	}, nil
}

// platformKeys returns all keys that WeChat Pay may sign with. While a merchant migrates from
// certificates to the public key, both are in use, in a proportion set in WeChat Pay's console.
func (c config) platformKeys() (map[string]platformKey, []supplier.Key, error) {
	keys, described := make(map[string]platformKey), []supplier.Key(nil)
	if (c.PublicKeyID == "") != (c.PublicKey == "") {
		return nil, nil, wrong("public_key_id", "and public_key belong together; one of them is missing")
	}
	if c.PublicKey != "" {
		key, err := supplier.ParsePublicKey(c.PublicKey)
		if err != nil {
			return nil, nil, wrong("public_key", err.Error())
		}
		keys[c.PublicKeyID] = platformKey{key: key}
		described = append(described, supplier.RSAKey("public_key", c.PublicKeyID, supplier.PublicKey, key))
	}
	for i, text := range c.Certificates {
		field := fmt.Sprintf("certificates[%d]", i)
		cert, err := parseCertificate(text)
		if err != nil {
			return nil, nil, wrong(field, err.Error())
		}
		serial := serialOf(cert)
		if _, twice := keys[serial]; twice {
			return nil, nil, wrong(field, "has a serial that another key has too")
		}
		keys[serial] = platformKey{key: cert.PublicKey.(*rsa.PublicKey), notBefore: cert.NotBefore, notAfter: cert.NotAfter}
		described = append(described, supplier.CertificateKey(field, serial, cert))
	}
	if len(keys) == 0 {
		return nil, nil, wrong("public_key", "is missing; give public_key_id and public_key, or certificates")
	}
	return keys, described, nil
}

// parseCertificate parses one PEM certificate with an RSA key. Its validity is checked per
// message: an old certificate beside a new one is not an error.
func parseCertificate(text string) (*x509.Certificate, error) {
	block, rest := pem.Decode([]byte(strings.TrimSpace(text)))
	switch {
	case block == nil || block.Type != "CERTIFICATE":
		return nil, errors.New("is not a PEM certificate")
	case len(rest) > 0:
		return nil, errors.New("holds more than one certificate; give each an entry of its own")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, errors.New("is not a readable certificate")
	}
	if key, ok := cert.PublicKey.(*rsa.PublicKey); !ok || key.N.BitLen() < 2048 {
		return nil, errors.New("does not hold an RSA key of at least 2048 bits")
	}
	return cert, nil
}

// serialOf formats a serial as in the header Wechatpay-Serial: upper-case hex of whole bytes.
func serialOf(cert *x509.Certificate) string { return fmt.Sprintf("%X", cert.SerialNumber.Bytes()) }

func wrong(field, problem string) error { return &supplier.FieldError{Field: field, Problem: problem} }
