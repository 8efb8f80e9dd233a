// Package sms sends notifications as text messages through any HTTP gateway: a template defines
// the request, a rule defines success.
//
// Credentials: "gateway" (see Gateway); its templates can use all others as .Secret.
package sms

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"backstop/internal/base/egress"
	"backstop/internal/notify"
	"backstop/internal/notify/outcome"
)

const (
	// maxAnswer is how much of a response is read and checked.
	maxAnswer = 64 << 10
	// maxKeep is how much of it is stored.
	maxKeep = 4 << 10
)

// gatewayCredential is the credential with the Gateway.
const gatewayCredential = "gateway"

// Channel sends text messages. It is safe for concurrent use.
type Channel struct{ client *egress.Client }

var _ notify.Channel = (*Channel)(nil)

// New returns a channel that calls out through client.
func New(client *egress.Client) *Channel { return &Channel{client: client} }

// Send calls the gateway once.
func (c *Channel) Send(ctx context.Context, m notify.Message) notify.Result {
	secrets := secretsOf(m)
	result := outcome.Send(ctx, m, secrets, func(ctx context.Context) notify.Result { return c.attempt(ctx, m) })
	// A gateway's response may quote the request, and with it the key.
	if len(result.ResponseBody) > 0 {
		result.ResponseBody = []byte(outcome.Clean(outcome.Hide(string(result.ResponseBody), secrets), maxKeep))
	}
	return result
}

// secretsOf returns the credentials without the gateway, which is not a secret.
func secretsOf(m notify.Message) map[string]string {
	secrets := make(map[string]string, len(m.Credentials))
	for name, value := range m.Credentials {
		if name != gatewayCredential {
			secrets[name] = value
		}
	}
	return secrets
}

func (c *Channel) attempt(ctx context.Context, m notify.Message) notify.Result {
	number, err := numberOf(m.URL)
	if err != nil {
		return outcome.Unusable(err)
	}
	g, err := parseGateway(m.Credentials[gatewayCredential])
	if err != nil {
		return outcome.Internal(err)
	}
	req, err := c.request(ctx, g, valuesOf(number, m))
	switch {
	case errors.Is(err, egress.ErrBlocked), errors.Is(err, egress.ErrURL):
		return outcome.Unusable(err)
	case err != nil:
		return outcome.Internal(err)
	}
	return c.call(req, g, m)
}

// call makes the request and checks the response.
func (c *Channel) call(req *http.Request, g *gateway, m notify.Message) notify.Result {
	// Path and query may contain a key: only the host is recorded.
	result := notify.Result{RequestHeader: g.Method + " " + hostPart(g.URL) + "/***"}
	var answered atomic.Bool
	remote := ""
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn:              func(info httptrace.GotConnInfo) { remote = info.Conn.RemoteAddr().String() },
		GotFirstResponseByte: func() { answered.Store(true) },
	}))
	resp, err := c.client.RoundTripAs(m.ClientCert, req)
	result.RemoteAddr = remote
	if err != nil {
		result.Class, result.Error = outcome.Of(req.Context(), answered.Load(), err)
		return result
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	result.Status = resp.StatusCode
	result.ResponseBody = body[:min(len(body), maxKeep)]
	if err != nil {
		result.Class, result.Error = outcome.Of(req.Context(), true, err)
		return result
	}
	text := "answered " + strconv.Itoa(resp.StatusCode)
	switch {
	case len(g.OKStatus) > 0 && !slices.Contains(g.OKStatus, resp.StatusCode), len(g.OKStatus) == 0 && resp.StatusCode/100 != 2:
		result.Class, result.Error = outcome.OfStatus(resp.StatusCode), text
	case !strings.Contains(string(body), g.OKText):
		result.Class, result.Error = notify.BadText, text+", but without the text that means success"
	default:
		result.Class = notify.OK
	}
	return result
}

// request fills in the templates.
func (c *Channel) request(ctx context.Context, g *gateway, v values) (*http.Request, error) {
	raw, err := run(g.url, v)
	if err != nil {
		return nil, err
	}
	to, err := c.client.Parse(raw)
	if err != nil {
		return nil, err
	}
	body, err := run(g.body, v)
	if err != nil {
		return nil, err
	}
	var reader io.Reader
	if g.Method != http.MethodGet {
		reader = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, g.Method, to.String(), reader)
	if err != nil {
		return nil, errors.New("the gateway's request cannot be made")
	}
	req.Header.Set("User-Agent", "Backstop/1")
	for name, t := range g.headers {
		value, err := run(t, v)
		if err != nil || strings.ContainsAny(value, "\r\n\x00") {
			return nil, errors.New("a header of the gateway is not one line")
		}
		req.Header.Set(name, value)
	}
	return req, nil
}

// valuesOf returns what the templates can use of a message.
func valuesOf(number string, m notify.Message) values {
	fields, _ := notify.Fields(m.Body) // an event without data can be notified too
	return values{To: number, ID: m.ID, Type: m.Type, Time: strconv.FormatInt(m.At.Unix(), 10), Data: fields, Secret: secretsOf(m)}
}
