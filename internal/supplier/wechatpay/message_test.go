package wechatpay

import (
	"cmp"
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"testing"
	"time"

	"backstop/internal/supplier"
	"backstop/internal/supplier/suppliertest"
)

// Keys and numbers of the tests only.
const (
	testAPIKey      = "test-only-api-v3-key-32-letters!"
	testMchID       = "1900000001"
	testAppID       = "wxtestonly00000001"
	testPublicKeyID = "PUB_KEY_ID_0119000000012026030100000000000001"
)

// platform is one of WeChat Pay's signing keys, as the tests hold it.
type platform struct {
	key    *rsa.PrivateKey
	serial string
}

func loadKey(tb testing.TB, path string) *rsa.PrivateKey {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	key, err := supplier.ParsePrivateKey(string(text))
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// pemOf writes a private key as a config holds it.
func pemOf(tb testing.TB, key *rsa.PrivateKey) string {
	tb.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func publicKeyMode(tb testing.TB) platform {
	return platform{loadKey(tb, "testdata/test-only-public-key-mode.pem"), testPublicKeyID}
}

func certificateMode(tb testing.TB) platform {
	return platform{loadKey(tb, "testdata/test-only-platform-certificate.pem"), "5157F09EFDC096DE15EBE81A47057A7232F1B8E1"}
}

func (p platform) publicKey(tb testing.TB) string {
	der, err := x509.MarshalPKIXPublicKey(&p.key.PublicKey)
	if err != nil {
		tb.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// certificate is the platform's, valid between the two moments.
func (p platform) certificate(tb testing.TB, from, to time.Time) string {
	tb.Helper()
	serial, ok := new(big.Int).SetString(p.serial, 16)
	if !ok {
		tb.Fatalf("serial %q", p.serial)
	}
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "Backstop test only"}, NotBefore: from, NotAfter: to}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &p.key.PublicKey, p.key)
	if err != nil {
		tb.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func (p platform) validCertificate(tb testing.TB) string {
	return p.certificate(tb, suppliertest.Now.AddDate(-1, 0, 0), suppliertest.Now.AddDate(4, 0, 0))
}

func testConfig(tb testing.TB) config {
	return config{
		MchID: testMchID, AppID: testAppID, APIV3Key: testAPIKey,
		PublicKeyID: testPublicKeyID, PublicKey: publicKeyMode(tb).publicKey(tb),
		Certificates: []string{certificateMode(tb).validCertificate(tb)},
	}
}

func newTest(tb testing.TB, change func(*config)) supplier.Adapter {
	tb.Helper()
	return newTestOut(tb, nil, change)
}

func newTestOut(tb testing.TB, out supplier.Client, change func(*config)) supplier.Adapter {
	tb.Helper()
	c := testConfig(tb)
	if change != nil {
		change(&c)
	}
	raw, err := json.Marshal(c)
	if err != nil {
		tb.Fatal(err)
	}
	a, err := Kind.New("wx-main", raw, out)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

// transaction is a payment as WeChat Pay describes it, the coupon included.
func transaction(c suppliertest.Change) string {
	twice := ""
	if c.Duplicate {
		twice = `,"out_trade_no":"ORDER-20260301-OTHER"`
	}
	return fmt.Sprintf(
		`{"mchid":%q,"appid":%q,"out_trade_no":%q,"transaction_id":%q,"trade_type":"NATIVE","trade_state":%q,"trade_state_desc":"支付成功","bank_type":"OTHERS","attach":"","success_time":"2026-03-01T15:59:58+08:00","payer":{"openid":"oTestOnly0001"},"amount":{"total":%s,"payer_total":1899,"currency":"CNY","payer_currency":"CNY"}%s}`,
		cmp.Or(c.Account, testMchID), testAppID, cmp.Or(c.OrderRef, "ORDER-20260301-0001"),
		cmp.Or(c.TradeNo, "4200000000202603010000000001"), cmp.Or(c.Status, "SUCCESS"),
		cmp.Or(c.Amount, "1999"), twice)
}

// envelope encrypts a resource and wraps it.
func envelope(eventType, plain string) string {
	block, err := aes.NewCipher([]byte(testAPIKey))
	if err != nil {
		panic(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	const nonce, associated = "testnonce012", "transaction"
	sealed := gcm.Seal(nil, []byte(nonce), []byte(plain), []byte(associated))
	return fmt.Sprintf(
		`{"id":"EV-2026030116000000001","create_time":"2026-03-01T15:59:59+08:00","resource_type":"encrypt-resource","event_type":%q,"summary":"支付成功","resource":{"original_type":"transaction","algorithm":"AEAD_AES_256_GCM","ciphertext":%q,"associated_data":%q,"nonce":%q}}`,
		eventType, base64.StdEncoding.EncodeToString(sealed), associated, nonce)
}

// signed puts a body into a request as WeChat Pay does.
func (p platform) signed(body string, c suppliertest.Change) *supplier.Request {
	stamp, nonce := fmt.Sprint(c.At().Unix()), "5K8264ILTKCH16CQ2502SI8ZNMTM67VS"
	digest := sha256.Sum256([]byte(stamp + "\n" + nonce + "\n" + body + "\n"))
	raw, err := rsa.SignPKCS1v15(nil, p.key, crypto.SHA256, digest[:])
	if err != nil {
		panic(err)
	}
	signature := base64.StdEncoding.EncodeToString(raw)
	if c.Tamper != nil {
		signature = c.Tamper(signature)
	}
	return &supplier.Request{
		Method: http.MethodPost, Path: "/callback/wx-main", Body: []byte(body), ReceivedAt: suppliertest.Now,
		Header: http.Header{
			"Content-Type":             {"application/json"},
			"User-Agent":               {"Mozilla/4.0"},
			"Wechatpay-Nonce":          {nonce},
			"Wechatpay-Serial":         {p.serial},
			"Wechatpay-Signature":      {signature},
			"Wechatpay-Signature-Type": {"WECHATPAY2-SHA256-RSA2048"},
			"Wechatpay-Timestamp":      {stamp},
		},
	}
}

func (p platform) message(c suppliertest.Change) *supplier.Request {
	return p.signed(envelope("TRANSACTION.SUCCESS", transaction(c)), c)
}
