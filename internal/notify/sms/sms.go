// Package sms tells people of merchants by text message, through whatever HTTP
// gateway they have: a template says what to send, a rule what success is.
//
// Credentials: "gateway" (see Gateway); all others can be named by its templates
// as .Secret.
package sms

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"backstop/internal/base/egress"
	"backstop/internal/notify"
	"backstop/internal/notify/outcome"
)

const (
	// maxAnswer is how much of an answer is read and judged.
	maxAnswer = 64 << 10
	// maxKeep is how much of it is kept.
	maxKeep = 4 << 10
)

// gatewayCredential names the template among the credentials.
const gatewayCredential = "gateway"

// Channel sends text messages. It is safe for concurrent use.
type Channel struct{ client *egress.Client }

var _ notify.Channel = (*Channel)(nil)

// New returns a channel that calls out through client.
func New(client *egress.Client) *Channel { return &Channel{client: client} }

// Send asks the gateway once.
func (c *Channel) Send(parent context.Context, m notify.Message) notify.Result {
	start := time.Now()
	result := c.attempt(parent, m)
	// A gateway's answer may quote the request, and with it the key.
	secrets := secretsOf(m)
	result.Error = outcome.Hide(result.Error, secrets)
	if len(result.ResponseBody) > 0 {
		result.ResponseBody = []byte(outcome.Clean(outcome.Hide(string(result.ResponseBody), secrets), maxKeep))
	}
	result.Took = time.Since(start)
	return result
}

// secretsOf are the credentials without the template, which is none by itself.
func secretsOf(m notify.Message) map[string]string {
	secrets := make(map[string]string, len(m.Credentials))
	for name, value := range m.Credentials {
		if name != gatewayCredential {
			secrets[name] = value
		}
	}
	return secrets
}

func (c *Channel) attempt(parent context.Context, m notify.Message) notify.Result {
	if problem := outcome.Unsendable(m); problem != "" {
		return notify.Result{Class: notify.Internal, Error: problem}
	}
	number, err := numberOf(m.URL)
	if err != nil {
		class, text := outcome.Unusable(err)
		return notify.Result{Class: class, Error: text}
	}
	g, err := parseGateway(m.Credentials[gatewayCredential])
	if err != nil {
		return notify.Result{Class: notify.Internal, Error: outcome.OneLine(err.Error())}
	}
	ctx, cancel := context.WithTimeout(parent, m.Timeout)
	defer cancel()
	req, err := c.request(ctx, g, valuesOf(number, m))
	if err != nil {
		if errors.Is(err, egress.ErrBlocked) || errors.Is(err, egress.ErrURL) {
			class, text := outcome.Unusable(err)
			return notify.Result{Class: class, Error: text}
		}
		return notify.Result{Class: notify.Internal, Error: outcome.OneLine(err.Error())}
	}
	return c.ask(parent, req, g, m)
}

// ask makes the call and judges the answer.
func (c *Channel) ask(parent context.Context, req *http.Request, g *gateway, m notify.Message) notify.Result {
	// Path and query may hold a key: only the host is shown.
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
		result.Class, result.Error = outcome.Of(parent, req.Context(), answered.Load(), err)
		return result
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	result.Status = resp.StatusCode
	result.ResponseBody = body[:min(len(body), maxKeep)]
	if err != nil {
		result.Class, result.Error = outcome.Of(parent, req.Context(), true, err)
		return result
	}
	said := "answered " + strconv.Itoa(resp.StatusCode)
	switch {
	case len(g.OKStatus) > 0 && !slices.Contains(g.OKStatus, resp.StatusCode), len(g.OKStatus) == 0 && resp.StatusCode/100 != 2:
		result.Class, result.Error = notify.BadStatus, said
	case !strings.Contains(string(body), g.OKText):
		result.Class, result.Error = notify.BadText, said+", but without the text that means success"
	default:
		result.Class = notify.OK
	}
	return result
}

// request fills the templates.
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
			return nil, errors.New("a header of the gateway's is not one line")
		}
		req.Header.Set(name, value)
	}
	return req, nil
}

// valuesOf is what the templates can name of a message. Data holds the fields of
// the frozen body as text; numbers as they are written.
func valuesOf(number string, m notify.Message) values {
	v := values{
		To: number, ID: m.ID, Type: m.Type, Time: strconv.FormatInt(m.At.Unix(), 10), Data: map[string]string{}, Secret: secretsOf(m),
	}
	var frozen struct {
		Data map[string]json.RawMessage `json:"data"`
	}
	// A body without data is still an event that one can be told of.
	_ = json.Unmarshal(m.Body, &frozen)
	for name, raw := range frozen.Data {
		text := string(raw)
		if strings.HasPrefix(text, `"`) {
			_ = json.Unmarshal(raw, &text)
		}
		if text != "null" {
			v.Data[name] = text
		}
	}
	return v
}
