package client

import (
	"context"
	"net/url"
	"time"
)

// Order is an order with its payment. Amounts are in minor units of Currency.
type Order struct {
	OrderNo         string     `json:"order_no"`
	OutTradeNo      string     `json:"out_trade_no"`
	Supplier        string     `json:"supplier"`
	Amount          int64      `json:"amount"`
	Currency        string     `json:"currency"`
	Status          string     `json:"status"` // pending, paying, closing, paid, failed, closed
	NotifyStatus    string     `json:"notify_status"`
	SupplierTradeNo *string    `json:"supplier_trade_no"`
	PaidAmount      int64      `json:"paid_amount"`
	FeeAmount       int64      `json:"fee_amount"`
	RefundedAmount  int64      `json:"refunded_amount"`
	RefundStatus    string     `json:"refund_status"`
	DisputedAmount  int64      `json:"disputed_amount"`
	CreatedAt       time.Time  `json:"created_at"`
	ExpiresAt       time.Time  `json:"expires_at"`
	PaidAt          *time.Time `json:"paid_at"`
	ClosedAt        *time.Time `json:"closed_at"`
	CloseReason     *string    `json:"close_reason"`
	Version         int64      `json:"version"` // the higher one is newer
}

// NewOrder is a request for an order. The same OutTradeNo with the same content is the same order.
type NewOrder struct {
	OutTradeNo string `json:"out_trade_no"`
	Amount     int64  `json:"amount"`   // minor units
	Currency   string `json:"currency"` // ISO 4217
	Supplier   string `json:"supplier"`
	Subject    string `json:"subject"`
	NotifyURL  string `json:"notify_url,omitempty"` // instead of the merchant's endpoints
	ExpiresIn  int64  `json:"expires_in,omitempty"` // seconds; 0 = as the installation does
	Items      []Item `json:"items,omitempty"`
}

// Item is an article of which an order reserves some.
type Item struct {
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
}

// CreateOrder creates an order, or returns the one that was created before with this number.
func (c *Client) CreateOrder(ctx context.Context, o NewOrder) (*Order, error) {
	return answer[Order](ctx, c.post, at("orders"), o)
}

// Order returns an order by its number.
func (c *Client) Order(ctx context.Context, orderNo string) (*Order, error) {
	return read[Order](ctx, c, at("orders", orderNo))
}

// FindOrder returns an order by the merchant's number.
func (c *Client) FindOrder(ctx context.Context, outTradeNo string) (*Order, error) {
	return read[Order](ctx, c, at("orders")+"?out_trade_no="+url.QueryEscape(outTradeNo))
}

// CancelOrder closes an order that is not paid. A payment that is under way may still win.
func (c *Client) CancelOrder(ctx context.Context, orderNo string) (*Order, error) {
	return answer[Order](ctx, c.post, at("orders", orderNo, "cancel"), nil)
}

// Pay is how a buyer pays. Zero values are as the supplier does.
type Pay struct {
	Method    string `json:"method,omitempty"` // qr, redirect, app
	Supplier  string `json:"supplier,omitempty"`
	ReturnURL string `json:"return_url,omitempty"`
	ClientIP  string `json:"client_ip,omitempty"`
	Payer     string `json:"payer,omitempty"`
}

// Payment is a payment that was started, with what the buyer needs.
type Payment struct {
	Order
	Payment struct {
		Attempt   string  `json:"attempt"`
		Reference string  `json:"reference"`
		Status    string  `json:"status"`
		Kind      string  `json:"kind"`  // of Value: qr, redirect, app
		Value     *string `json:"value"` // the code, the address or the parameters
	} `json:"payment"`
}

// PayOrder starts a payment of an order.
func (c *Client) PayOrder(ctx context.Context, orderNo string, p Pay) (*Payment, error) {
	return answer[Payment](ctx, c.post, at("orders", orderNo, "pay"), p)
}

// Scenario is what becomes of a payment in test mode.
type Scenario string

// The scenarios that the supplier sandbox plays.
const (
	Pays        Scenario = "pays"
	OtherAmount Scenario = "other_amount"
	Late        Scenario = "late" // after the order has expired
	Twice       Scenario = "twice"
	LostAnswer  Scenario = "lost_answer"
	Fails       Scenario = "fails"
)

// Played is what a scenario has done.
type Played struct {
	OrderNo   string `json:"order_no"`
	Status    string `json:"status"` // of the order, afterwards
	Callbacks []struct {
		Status  int    `json:"status"` // of HTTP
		Outcome string `json:"outcome"`
		Body    string `json:"body"`
	} `json:"callbacks"`
	LateAt *time.Time `json:"late_at"` // when a late payment will be made
}

// PlayPayment has the supplier sandbox pay an order, with a key of test mode. A live key is refused with not_found.
func (c *Client) PlayPayment(ctx context.Context, orderNo string, s Scenario) (*Played, error) {
	return answer[Played](ctx, c.post, at("test/orders", orderNo)+"/"+url.PathEscape(string(s)), nil)
}

// Refund is a refund of a payment, in part or whole.
type Refund struct {
	RefundNo         string     `json:"refund_no"`
	OutRefundNo      *string    `json:"out_refund_no"`
	OrderNo          *string    `json:"order_no"`
	Amount           int64      `json:"amount"`
	Currency         string     `json:"currency"`
	FeeReturned      int64      `json:"fee_returned"`
	Status           string     `json:"status"`
	SupplierRefundNo *string    `json:"supplier_refund_no"`
	Reason           *string    `json:"reason"`
	CreatedAt        time.Time  `json:"created_at"`
	FinishedAt       *time.Time `json:"finished_at"`
	Version          int64      `json:"version"`
}

// NewRefund is a request for a refund. The same OutRefundNo with the same content is the same refund.
type NewRefund struct {
	OutRefundNo string `json:"out_refund_no"`
	Amount      int64  `json:"amount"`
	Reason      string `json:"reason"`
	NotifyURL   string `json:"notify_url,omitempty"`
}

// CreateRefund refunds a paid order.
func (c *Client) CreateRefund(ctx context.Context, orderNo string, r NewRefund) (*Refund, error) {
	return answer[Refund](ctx, c.post, at("orders", orderNo, "refunds"), r)
}

// Refund returns a refund by its number.
func (c *Client) Refund(ctx context.Context, refundNo string) (*Refund, error) {
	return read[Refund](ctx, c, at("refunds", refundNo))
}

// CancelRefund cancels a refund that was not sent to the supplier yet.
func (c *Client) CancelRefund(ctx context.Context, refundNo string) (*Refund, error) {
	return answer[Refund](ctx, c.post, at("refunds", refundNo, "cancel"), nil)
}

// Balance is what a merchant has in one currency, in minor units.
type Balance struct {
	Currency  string `json:"currency"`
	Available int64  `json:"available"`
	Frozen    int64  `json:"frozen"`
	Reserved  int64  `json:"reserved"`
	InTransit int64  `json:"in_transit"`
}

// Balances returns the balances in all currencies.
func (c *Client) Balances(ctx context.Context) ([]Balance, error) {
	page, err := read[struct {
		Items []Balance `json:"items"`
	}](ctx, c, at("balance"))
	if err != nil {
		return nil, err
	}
	return page.Items, nil
}

func read[T any](ctx context.Context, c *Client, path string) (*T, error) {
	var v T
	if err := c.get(ctx, path, &v); err != nil {
		return nil, err
	}
	return &v, nil
}

func answer[T any](ctx context.Context, post func(context.Context, string, any, any) error, path string, body any) (*T, error) {
	var v T
	if err := post(ctx, path, body, &v); err != nil {
		return nil, err
	}
	return &v, nil
}
