package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Payout is money on its way to an account.
type Payout struct {
	PayoutNo         string     `json:"payout_no"`
	OutPayoutNo      string     `json:"out_payout_no"`
	Supplier         *string    `json:"supplier"`
	Amount           int64      `json:"amount"`
	FeeAmount        int64      `json:"fee_amount"`
	Currency         string     `json:"currency"`
	Account          Account    `json:"account"` // its number masked
	Status           string     `json:"status"`
	Failure          *string    `json:"failure"`
	SupplierPayoutNo *string    `json:"supplier_payout_no"`
	CreatedAt        time.Time  `json:"created_at"`
	FinishedAt       *time.Time `json:"finished_at"`
	Version          int64      `json:"version"`
}

// Account is where a payout goes: the Code of one that is stored, or the rest.
type Account struct {
	Code   string `json:"code,omitempty"`
	Kind   string `json:"kind,omitempty"`
	Holder string `json:"holder,omitempty"`
	Number string `json:"number,omitempty"`
	Bank   string `json:"bank,omitempty"`
}

// NewPayout is a request for a payout. The same OutPayoutNo with the same content is the same payout.
type NewPayout struct {
	OutPayoutNo string  `json:"out_payout_no"`
	Amount      int64   `json:"amount"`
	Currency    string  `json:"currency"`
	Supplier    string  `json:"supplier"`
	Account     Account `json:"account"`
	NotifyURL   string  `json:"notify_url,omitempty"`
}

// CreatePayout requests a payout, with the payout key.
func (c *Client) CreatePayout(ctx context.Context, p NewPayout) (*Payout, error) {
	return answer[Payout](ctx, c.postPayout, at("payouts"), p)
}

// Payout returns a payout by its number.
func (c *Client) Payout(ctx context.Context, payoutNo string) (*Payout, error) {
	return read[Payout](ctx, c, at("payouts", payoutNo))
}

// FindPayout returns a payout by the merchant's number.
func (c *Client) FindPayout(ctx context.Context, outPayoutNo string) (*Payout, error) {
	return read[Payout](ctx, c, at("payouts")+"?out_payout_no="+url.QueryEscape(outPayoutNo))
}

// CancelPayout cancels a payout that was not begun yet, with the payout key.
func (c *Client) CancelPayout(ctx context.Context, payoutNo string) (*Payout, error) {
	return answer[Payout](ctx, c.postPayout, at("payouts", payoutNo, "cancel"), nil)
}

func (c *Client) postPayout(ctx context.Context, path string, body, into any) error {
	return c.do(ctx, c.PayoutKey, http.MethodPost, path, body, into)
}
