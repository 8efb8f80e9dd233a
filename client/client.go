// Package client calls Backstop as a merchant's system does, and checks the notifications that it sends.
// It depends on the standard library only.
//
// Every request that changes something carries the merchant's own number (out_trade_no, out_refund_no,
// out_payout_no), by which a repeat is the same request. So the client repeats what a broken connection
// or a busy server left open, and the caller may repeat whatever returned an error that IsUncertain.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// maxAnswer bounds an answer in bytes.
	maxAnswer = 16 << 20
	// maxWait bounds the wait before a repeat, whatever Retry-After says.
	maxWait = 30 * time.Second
)

// Client calls one installation for one merchant. It is safe for concurrent use.
type Client struct {
	BaseURL   string // "https://pay.example.com"
	APIKey    string
	PayoutKey string       // for payouts; "" = none are requested
	HTTP      *http.Client // nil = one with a time limit of 30 s
	Tries     int          // of one request; 0 = 4, 1 = no repeats
	// Wait is how long before the first repeat, doubled for each further one; 0 = 500 ms. Retry-After goes
	// before it.
	Wait time.Duration
}

// Error is a refusal by the server. Codes are listed at /docs of the installation.
type Error struct {
	Status         int    // of HTTP
	Code           string // "invalid_field"
	Message, Field string // Field is what is wrong with the request; "" = nothing that has a name
	RequestID      string // for whoever runs the installation
}

func (e *Error) Error() string {
	text := fmt.Sprintf("backstop: %d %s: %s", e.Status, e.Code, e.Message)
	if e.Field != "" {
		text += " (" + e.Field + ")"
	}
	return text
}

// IsUncertain reports whether an error leaves open if the request was carried out: repeat it, with the
// same number, until it does not.
func IsUncertain(err error) bool {
	if err == nil {
		return false
	}
	refused, ok := errors.AsType[*Error](err)
	return !ok || refused.Status >= http.StatusInternalServerError
}

// repeatable reports whether the same request may succeed a moment later.
func repeatable(err error) bool {
	refused, ok := errors.AsType[*Error](err)
	return !ok || refused.Status >= http.StatusInternalServerError || refused.Status == http.StatusTooManyRequests ||
		refused.Status == http.StatusRequestTimeout
}

// do sends a request until it has an answer that a repeat would not change, and decodes the answer.
func (c *Client) do(ctx context.Context, key, method, path string, body, into any) error {
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			return fmt.Errorf("backstop: write the request: %w", err)
		}
	}
	tries, wait := c.Tries, c.Wait
	if tries <= 0 {
		tries = 4
	}
	if wait <= 0 {
		wait = 500 * time.Millisecond
	}
	for n := 1; ; n++ {
		after, err := c.once(ctx, key, method, path, sent, into)
		if err == nil || n >= tries || !repeatable(err) || ctx.Err() != nil {
			return err
		}
		if after <= 0 {
			after = wait << (n - 1)
			after = after/2 + rand.N(after/2+1) // so that callers that failed together do not come back together
		}
		pause := time.NewTimer(min(after, maxWait))
		select {
		case <-ctx.Done():
			pause.Stop()
			return err
		case <-pause.C:
		}
	}
}

// once sends a request. after is what Retry-After says; 0 = nothing.
func (c *Client) once(ctx context.Context, key, method, path string, body []byte, into any) (after time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.BaseURL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("backstop: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	sender := c.HTTP
	if sender == nil {
		sender = standard
	}
	answer, err := sender.Do(r)
	if err != nil {
		return 0, fmt.Errorf("backstop: %w", err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return 0, fmt.Errorf("backstop: read the answer: %w", err)
	}
	if answer.StatusCode >= http.StatusOK && answer.StatusCode < http.StatusMultipleChoices {
		if into == nil {
			return 0, nil
		}
		if err := json.Unmarshal(text, into); err != nil {
			return 0, fmt.Errorf("backstop: the answer to %s %s is not as described: %w", method, path, err)
		}
		return 0, nil
	}
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && seconds > 0 {
		after = time.Duration(seconds) * time.Second
	}
	refused := &Error{Status: answer.StatusCode, RequestID: answer.Header.Get("X-Request-Id"), Code: "unreadable", Message: answer.Status}
	var read struct {
		Error struct{ Code, Message, Field string }
	}
	if json.Unmarshal(text, &read) == nil && read.Error.Code != "" {
		refused.Code, refused.Message, refused.Field = read.Error.Code, read.Error.Message, read.Error.Field
	}
	return after, refused
}

var standard = &http.Client{
	Timeout:       30 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a key is sent to its host only
}

func (c *Client) get(ctx context.Context, path string, into any) error {
	return c.do(ctx, c.APIKey, http.MethodGet, path, nil, into)
}

func (c *Client) post(ctx context.Context, path string, body, into any) error {
	return c.do(ctx, c.APIKey, http.MethodPost, path, body, into)
}

// at joins a path of constants and values.
func at(parts ...string) string {
	path := "/api/v1"
	for i, part := range parts {
		if i%2 == 1 {
			part = url.PathEscape(part)
		}
		path += "/" + part
	}
	return path
}
