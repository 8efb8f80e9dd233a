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
	merchants = 20
	// hanging is how many of the merchants never answer while isolation is measured.
	hanging      = 2
	supplierCode = "bench"
	amount       = 1999 // of every order, minor units
)

// cast is the supplier and the merchants of a server under test.
type cast struct {
	supplierKey string
	keys        []string // API keys, by merchant
	asked       string   // query URL of a second supplier; "" = there is none
	askedRate   int      // its query_rate
	funds       *fundsCast
}

// newCast makes the usual merchants and more additional ones.
func newCast(more int) *cast {
	c := &cast{supplierKey: secret()}
	for range merchants + more {
		c.keys = append(c.keys, "sk_bench_"+secret())
	}
	return c
}

func merchantCode(i int) string { return fmt.Sprintf("bench-%d", i) }

// secret returns 32 random bytes in hex.
func secret() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // crypto/rand never fails (Go 1.24)
	return hex.EncodeToString(b)
}

// declaration returns the apply file; JSON is valid YAML.
func (c *cast) declaration() ([]byte, error) {
	var list []map[string]any
	for i, key := range c.keys {
		sign := make([]byte, 32)
		_, _ = rand.Read(sign)
		list = append(list, map[string]any{
			"code": merchantCode(i), "name": fmt.Sprintf("Bench %d", i), "api_key": key,
			"signing_secret": "whsec_" + base64.StdEncoding.EncodeToString(sign),
		})
	}
	suppliers := []map[string]any{{"code": supplierCode, "kind": "sortedparams", "enabled": true, "config": c.config()}}
	if c.asked != "" {
		config := c.config()
		config["query_url"], config["answer_format"], config["paying_values"] = c.asked, "form", []string{"0"}
		suppliers = append(suppliers, map[string]any{
			"code": askedCode, "kind": "sortedparams", "enabled": true, "query_rate": fmt.Sprintf("%d/s", c.askedRate), "config": config,
		})
	}
	all := map[string]any{"merchants": list, "suppliers": suppliers}
	if c.funds != nil {
		c.funds.declare(c, all, list, suppliers)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("declare the merchants: %w", err)
	}
	return text, nil
}

// config returns the config of a supplier.
func (c *cast) config() map[string]any {
	return map[string]any{
		"format": "form", "algorithm": "hmac-sha256", "key": c.supplierKey, "sign_case": "lower",
		"order_field": "order_no", "trade_field": "trade_no", "amount_field": "amount", "amount_unit": "minor",
		"currency": "CNY", "status_field": "status", "paid_values": []string{"1"},
	}
}

// order returns the request that creates order number i.
func (c *cast) order(merchant, i int, notifyURL string) (post, error) {
	return c.orderAt(supplierCode, merchant, i, notifyURL)
}

func (c *cast) orderAt(supplier string, merchant, i int, notifyURL string) (post, error) {
	body, err := json.Marshal(map[string]any{
		"out_trade_no": fmt.Sprintf("b%d", i), "amount": amount, "currency": "CNY", "supplier": supplier,
		"subject": "bench", "notify_url": notifyURL,
		"expires_in": 1800 + i%1800, // as if created over half an hour
	})
	if err != nil {
		return post{}, fmt.Errorf("write an order: %w", err)
	}
	return post{path: "/api/v1/orders", contentType: "application/json", key: c.keys[merchant], body: body}, nil
}

// callback returns the supplier's signed message about an order.
func (c *cast) callback(orderNo string, i int) post {
	return c.callbackAt(supplierCode, orderNo, i)
}

func (c *cast) callbackAt(supplier, orderNo string, i int) post {
	// The names are sorted, and no value needs escaping.
	text := "amount=" + strconv.Itoa(amount) + "&order_no=" + orderNo + "&status=1&trade_no=t" + strconv.Itoa(i)
	return post{path: "/callback/" + supplier, contentType: "application/x-www-form-urlencoded", body: []byte(signed(c.supplierKey, text))}
}

// signed returns sorted parameters with their signature.
func signed(key, text string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return text + "&sign=" + hex.EncodeToString(mac.Sum(nil))
}

// await waits until the server uses the applied settings.
func (c *cast) await(ctx context.Context, to *caller) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		// This order is never paid, so it has no notification.
		p, err := c.order(0, 0, "")
		if err != nil {
			return err
		}
		p.body = []byte(strings.Replace(string(p.body), `"b0"`, `"probe"`, 1))
		var answer string
		status, err := to.send(p, func(body []byte) { answer = string(body) })
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
