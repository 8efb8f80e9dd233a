package sandbox

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"backstop/internal/base/egress"
	"backstop/internal/supplier"
	"backstop/internal/supplier/sortedparams"
)

// The adapter of the product accepts what Callback signs, and nothing that differs from it.
func TestTheCallbackIsThatOfTheDeclaredSupplier(t *testing.T) {
	t.Parallel()
	var file struct {
		Suppliers []struct{ Config json.RawMessage }
	}
	if err := json.Unmarshal(Declaration("sk_sandbox_0"), &file); err != nil {
		t.Fatal(err)
	}
	adapter, err := sortedparams.Kind.New(Code, file.Suppliers[0].Config, nil)
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(file.Suppliers[0].Config, &config); err != nil {
		t.Fatal(err)
	}
	req := Callback(config[KeyField].(string), "ord_1", Amount)
	got, err := adapter.Parse(req, new(supplier.Trace))
	if err != nil || got.OrderRef != "ord_1" || got.Amount != Amount || got.Currency != Currency {
		t.Errorf("%+v, %v", got, err)
	}
	req.Body = bytes.Replace(req.Body, []byte("1999"), []byte("1"), 1)
	if _, err := adapter.Parse(req, new(supplier.Trace)); err == nil {
		t.Error("a changed amount is accepted")
	}
}

// The endpoint is reached without a connection, and opens nothing else.
func TestTheEndpointIsInsideTheProgram(t *testing.T) {
	t.Parallel()
	client := egress.New(egress.Config{Local: map[string]func(*http.Request) (*http.Response, error){Host: Endpoint}})
	defer client.Close()
	if err := client.CheckURL(NotifyURL); err != nil {
		t.Errorf("the URL of the endpoint: %v", err)
	}
	post := func(to string, signed bool) (int, error) {
		u, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		r := &http.Request{
			Method: http.MethodPost, URL: u, Host: u.Host, Header: http.Header{},
			Body: io.NopCloser(strings.NewReader("{}")),
		}
		if signed {
			r.Header.Set("Webhook-Id", "ntf_1")
			r.Header.Set("Webhook-Signature", "v1,x")
		}
		resp, err := client.RoundTrip(r)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	if status, err := post(NotifyURL, true); status != http.StatusOK || err != nil {
		t.Errorf("a notification: %d, %v", status, err)
	}
	if status, err := post(NotifyURL, false); status != http.StatusBadRequest || err != nil {
		t.Errorf("anything else: %d, %v", status, err)
	}
	for _, other := range []string{
		"https://127.0.0.1/notify", "https://127.0.0.1:8443/notify", "https://sub." + Host + "/notify",
		"https://" + Host + ":8443/notify",
	} {
		if status, err := post(other, true); err == nil {
			t.Errorf("%s was reached: %d", other, status)
		}
	}
	if err := client.CheckAddr("https", netip.MustParseAddrPort("127.0.0.1:443")); err == nil {
		t.Error("loopback is open")
	}
}
