package api

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"backstop/internal/base/waittest"
	"backstop/internal/notify"
	"backstop/internal/notify/websocket"
	"backstop/internal/recipient"
	"backstop/web/webtest"

	ws "github.com/fasthttp/websocket"
)

// dial opens a merchant's connection with a key.
func (h *harness) dial(key string) (*ws.Conn, int, error) {
	header := http.Header{}
	if key != "" {
		header.Set("Authorization", "Bearer "+key)
	}
	conn, resp, err := ws.DefaultDialer.Dial("ws://"+h.Addr+"/api/v1/notify/ws", header)
	if resp == nil {
		return conn, 0, err
	}
	return conn, resp.StatusCode, err
}

func TestMerchantsConnectWithTheirKeyAndAreTold(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, key := range []string{"", "sk_live_wrong", webtest.MonitorToken} {
		if _, status, err := h.dial(key); err == nil || status != http.StatusUnauthorized {
			t.Errorf("with the key %q: %d, %v", key, status, err)
		}
	}
	conn, _, err := h.dial(webtest.KeyOfGalaxy)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	go func() {
		for {
			var frame struct{ ID string }
			_, body, err := conn.ReadMessage()
			if err != nil || json.Unmarshal(body, &frame) != nil {
				return
			}
			_ = conn.WriteJSON(map[string]string{"ack": frame.ID})
		}
	}()
	message := notify.Message{
		ID: "ntf_1", URL: websocket.Target, To: recipient.OfMerchant(1), At: time.Now(), Timeout: 5 * time.Second,
		Body: []byte(`{"id":"ntf_1"}`),
	}
	waittest.Until(t, "the merchant is connected", func() bool { return len(h.Sockets.Connected()) == 1 })
	if r := h.Sockets.Send(t.Context(), message); r.Class != notify.OK {
		t.Errorf("%q (%s)", r.Class, r.Error)
	}
	message.To = recipient.OfMerchant(2)
	if r := h.Sockets.Send(t.Context(), message); r.Class != notify.NotConnected {
		t.Errorf("the other merchant: %q", r.Class)
	}
}

func TestWhatIsNoWebSocketIsNotUpgraded(t *testing.T) {
	t.Parallel()
	h := open(t)
	if got := h.Api(t, webtest.KeyOfGalaxy, http.MethodGet, "/api/v1/notify/ws", ""); got.Problem() != "400 bad_request" {
		t.Errorf("%s", got.Problem())
	}
}
