package sms

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"text/template"

	"backstop/internal/notify/webhook"
)

var (
	// ErrTarget means that a URL cannot be used.
	ErrTarget = errors.New("bad sms address")
	// ErrGateway means that a gateway cannot be used. Its text contains no secret.
	ErrGateway = errors.New("bad sms gateway")
)

// Gateway is the request to an SMS provider, as JSON in the credential "gateway". URL, headers
// and body are templates.
type Gateway struct {
	Method  string            `json:"method"` // POST (default) or GET
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	// Success is a response with one of these statuses (default any 2xx) that contains OKText,
	// if set: many gateways respond 200 to everything.
	OKStatus []int  `json:"ok_status"`
	OKText   string `json:"ok_text"`
}

// maxDigits is the limit of E.164.
const minDigits, maxDigits = 5, 15

// CheckTarget checks a URL: sms:+8613800000000. Errors are ErrTarget.
func CheckTarget(raw string) error {
	_, err := numberOf(raw)
	return err
}

func numberOf(raw string) (string, error) {
	number, ok := strings.CutPrefix(raw, "sms:")
	digits := strings.TrimPrefix(number, "+")
	if !ok || len(digits) < minDigits || len(digits) > maxDigits ||
		strings.ContainsFunc(digits, func(c rune) bool { return c < '0' || c > '9' }) {
		return "", fmt.Errorf("%w: must be sms: and a number of %d to %d digits, preferably with + and country code", ErrTarget, minDigits,
			maxDigits)
	}
	return number, nil
}

// CheckCredentials checks the credentials of an endpoint. Errors are ErrGateway.
func CheckCredentials(credentials map[string]string) error {
	_, err := parseGateway(credentials[gatewayCredential])
	return err
}

// gateway is a Gateway with its templates parsed.
type gateway struct {
	Gateway
	url, body *template.Template
	headers   map[string]*template.Template
}

func parseGateway(text string) (*gateway, error) {
	wrong := func(format string, args ...any) (*gateway, error) {
		return nil, fmt.Errorf("%w: %s", ErrGateway, fmt.Sprintf(format, args...))
	}
	g := &gateway{headers: map[string]*template.Template{}}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&g.Gateway); err != nil {
		return wrong("must be JSON with method, url, headers, body, ok_status and ok_text only")
	}
	if g.Method == "" {
		g.Method = http.MethodPost
	}
	if !slices.Contains([]string{http.MethodGet, http.MethodPost}, g.Method) {
		return wrong("method must be GET or POST")
	}
	// The host is fixed: a message's content must not choose it.
	if host := hostPart(g.URL); host == "" || strings.Contains(host, "{{") {
		return wrong("url must begin with https://, a host without templates, and a path")
	}
	for _, status := range g.OKStatus {
		if status < 200 || status > 599 {
			return wrong("ok_status holds HTTP statuses")
		}
	}
	var err error
	if g.url, err = parseTemplate(g.URL); err != nil {
		return wrong("url %v", err)
	}
	if g.body, err = parseTemplate(g.Body); err != nil {
		return wrong("body %v", err)
	}
	plain := map[string]string{}
	for name, value := range g.Headers {
		if g.headers[name], err = parseTemplate(value); err != nil {
			return wrong("the header %.60q %v", name, err)
		}
		if !strings.EqualFold(name, "Content-Type") { // it belongs to the body
			plain[name] = ""
		}
	}
	if err := webhook.CheckHeaders(plain); err != nil {
		return wrong("%v", err)
	}
	return g, nil
}

// hostPart returns the URL up to its path, or "".
func hostPart(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	end := strings.IndexAny(rest, "/?")
	if !ok || end < 1 {
		return ""
	}
	return scheme + "://" + rest[:end]
}
