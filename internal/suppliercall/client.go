// Package suppliercall makes the calls to suppliers: through egress, a few at a time per supplier, at
// its rate, not while its breaker is open, and each with a row committed before the call, so
// that a crash leaves a record that it may have been sent.
package suppliercall

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"backstop/internal/base/egress"
	"backstop/internal/supplier"
)

// Client sends the requests of adapters. It implements supplier.Client.
type Client struct {
	out     http.RoundTripper
	timeout time.Duration
}

// NewClient returns a Client; timeout covers one request from the dial to the last byte of the
// answer.
func NewClient(out *egress.Client, timeout time.Duration) *Client { return &Client{out, timeout} }

// Do sends the request once. Redirects are not followed.
func (c *Client) Do(r *http.Request) supplier.Exchange {
	ctx, cancel := context.WithTimeout(r.Context(), c.timeout)
	defer cancel()
	r = r.Clone(ctx)
	// The transport resends a request on a new connection if it can read the body again. What
	// moves money must not go out twice, whatever its headers say.
	r.GetBody = nil
	answer, err := c.out.RoundTrip(r)
	if err != nil {
		return supplier.Exchange{Class: classOf(ctx, err)}
	}
	defer answer.Body.Close()
	x := supplier.Exchange{Status: answer.StatusCode, Header: answer.Header}
	body, err := io.ReadAll(io.LimitReader(answer.Body, supplier.MaxAnswer+1))
	switch {
	case err != nil:
		x.Class = classOf(ctx, err)
	case len(body) > supplier.MaxAnswer:
		body, x.Class = body[:supplier.MaxAnswer], supplier.ClassBadAnswer
	}
	x.Body = body
	return x
}

// classOf returns the class of a request without an answer. A connection cut off after it was
// established is ClassBadAnswer: the supplier may have acted.
func classOf(ctx context.Context, err error) supplier.Class {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.Is(err, egress.ErrTLS):
		return supplier.ClassTLS
	case errors.Is(err, egress.ErrBlocked), errors.Is(err, egress.ErrURL):
		return supplier.ClassConnect
	case ctx.Err() != nil:
		return supplier.ClassTimeout
	case errors.As(err, &dns), errors.As(err, &op) && op.Op == "dial":
		return supplier.ClassConnect
	}
	return supplier.ClassBadAnswer
}
