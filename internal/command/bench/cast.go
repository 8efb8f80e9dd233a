package bench

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	Merchants = 20
	// hanging is how many of the merchants never answer while isolation is measured.
	hanging      = 2
	SupplierCode = "bench"
	Amount       = 1999 // of every order, minor units
)

// Cast is the supplier and the merchants of a server under test.
type Cast struct {
	SupplierKey string
	Keys        []string // API keys, by merchant
	// More adds to the declaration of merchants and suppliers; nil = nothing.
	More func(all map[string]any, merchants, suppliers []map[string]any)
}

// NewCast makes the usual merchants and more additional ones.
func NewCast(more int) *Cast {
	c := &Cast{SupplierKey: Secret()}
	for range Merchants + more {
		c.Keys = append(c.Keys, "sk_bench_"+Secret())
	}
	return c
}

func MerchantCode(i int) string { return fmt.Sprintf("bench-%d", i) }

// Secret returns 32 random bytes in hex.
func Secret() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // crypto/rand never fails (Go 1.24)
	return hex.EncodeToString(b)
}

// Declaration returns the apply file; JSON is valid YAML.
func (c *Cast) Declaration() ([]byte, error) {
	var list []map[string]any
	for i, key := range c.Keys {
		sign := make([]byte, 32)
		_, _ = rand.Read(sign)
		list = append(list, map[string]any{
			"code": MerchantCode(i), "name": fmt.Sprintf("Bench %d", i), "api_key": key,
			"signing_secret": "whsec_" + base64.StdEncoding.EncodeToString(sign),
		})
	}
	suppliers := []map[string]any{{"code": SupplierCode, "kind": "sortedparams", "enabled": true, "config": c.Config()}}
	all := map[string]any{"merchants": list, "suppliers": suppliers}
	if c.More != nil {
		c.More(all, list, suppliers)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("declare the merchants: %w", err)
	}
	return text, nil
}

// Config returns the config of a supplier.
func (c *Cast) Config() map[string]any {
	return map[string]any{
		"format": "form", "algorithm": "hmac-sha256", "key": c.SupplierKey, "sign_case": "lower",
		"order_field": "order_no", "trade_field": "trade_no", "amount_field": "amount", "amount_unit": "minor",
		"currency": "CNY", "status_field": "status", "paid_values": []string{"1"},
	}
}

// order returns the request that creates order number i.
func (c *Cast) order(merchant, i int, notifyURL string) (Post, error) {
	return c.OrderAt(SupplierCode, merchant, i, notifyURL)
}

func (c *Cast) OrderAt(supplier string, merchant, i int, notifyURL string) (Post, error) {
	body, err := json.Marshal(map[string]any{
		"out_trade_no": fmt.Sprintf("b%d", i), "amount": Amount, "currency": "CNY", "supplier": supplier,
		"subject": "bench", "notify_url": notifyURL,
		"expires_in": 1800 + i%1800, // as if created over half an hour
	})
	if err != nil {
		return Post{}, fmt.Errorf("write an order: %w", err)
	}
	return Post{Path: "/api/v1/orders", ContentType: "application/json", Key: c.Keys[merchant], Body: body}, nil
}

// callbackAt returns a supplier's signed message about an order.
func (c *Cast) callbackAt(supplier, orderNo string, i int) Post {
	// The names are sorted, and no value needs escaping.
	text := "amount=" + strconv.Itoa(Amount) + "&order_no=" + orderNo + "&status=1&trade_no=t" + strconv.Itoa(i)
	return Post{Path: "/callback/" + supplier, ContentType: "application/x-www-form-urlencoded", Body: []byte(Signed(c.SupplierKey, text))}
}

// Signed returns sorted parameters with their signature.
func Signed(key, text string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return text + "&sign=" + hex.EncodeToString(mac.Sum(nil))
}

// await waits until the server uses the applied settings.
func (c *Cast) await(ctx context.Context, to *caller) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		// This order is never paid, so it has no notification.
		p, err := c.order(0, 0, "")
		if err != nil {
			return err
		}
		p.Body = []byte(strings.Replace(string(p.Body), `"b0"`, `"probe"`, 1))
		var answer string
		status, err := to.Send(p, func(body []byte) { answer = string(body) })
		switch {
		case err != nil:
			return err
		case status == http.StatusCreated || status == http.StatusOK:
			return nil
		case status != http.StatusUnauthorized:
			return fmt.Errorf("an order was answered %d %s", status, answer)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server does not use the applied settings: %s", answer)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
