package importer

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"backstop/internal/base/money"
	"backstop/internal/base/textlimit"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/supplier"

	"github.com/uptrace/bun"
)

// Limits of a line's texts, the same as in the merchant API.
const (
	maxNo      = 64
	maxSubject = 256 // characters
	maxReason  = 64
	maxURL     = 2048
)

// defaultExpiry is the life of an open order without expires_at.
const defaultExpiry = 30 * time.Minute

// line is one order of the file: the fields of the order object and notify_url. Numbers
// are parsed separately for better error messages.
type line struct {
	OrderNo         string          `json:"order_no"`
	OutTradeNo      string          `json:"out_trade_no"`
	Merchant        string          `json:"merchant"`
	Supplier        string          `json:"supplier"`
	Amount          json.RawMessage `json:"amount"`
	Currency        string          `json:"currency"`
	Status          string          `json:"status"`
	NotifyStatus    json.RawMessage `json:"notify_status"` // accepted and ignored: it is derived from deliveries
	SupplierTradeNo string          `json:"supplier_trade_no"`
	PaidAmount      json.RawMessage `json:"paid_amount"`
	CreatedAt       string          `json:"created_at"`
	ExpiresAt       string          `json:"expires_at"`
	PaidAt          string          `json:"paid_at"`
	ClosedAt        string          `json:"closed_at"`
	CloseReason     string          `json:"close_reason"`
	Version         json.RawMessage `json:"version"`
	Subject         string          `json:"subject"`
	NotifyURL       string          `json:"notify_url"`
	Items           json.RawMessage `json:"items"`
}

// staged is a row of the staging table.
type staged struct {
	bun.BaseModel `bun:"table:import_orders"`

	RunID           int64                 `bun:"run_id,pk"`
	Line            int64                 `bun:"line,pk"`
	ID              int64                 `bun:"id"`
	HistoryID       int64                 `bun:"history_id"`
	AttemptID       int64                 `bun:"attempt_id"`
	AttemptStatus   payment.AttemptStatus `bun:"attempt_status"` // "" = the order has no attempt
	AccountID       int64                 `bun:"account_id"`
	OrderNo         string                `bun:"order_no"`
	MerchantID      int64                 `bun:"merchant_id"`
	OutTradeNo      string                `bun:"out_trade_no"`
	SupplierID      int64                 `bun:"supplier_id"`
	Amount          int64                 `bun:"amount"`
	Currency        string                `bun:"currency"`
	Exponent        int                   `bun:"exponent"`
	Subject         string                `bun:"subject"`
	NotifyURL       string                `bun:"notify_url"`
	Status          string                `bun:"status"`
	Version         int64                 `bun:"version"`
	SupplierTradeNo string                `bun:"supplier_trade_no"`
	PaidAmount      int64                 `bun:"paid_amount"`
	CloseReason     string                `bun:"close_reason"`
	CreatedAt       int64                 `bun:"created_at"`
	ExpiresAt       int64                 `bun:"expires_at"`
	NextAt          *int64                `bun:"next_at"`
	PaidAt          *int64                `bun:"paid_at"`
	ClosedAt        *int64                `bun:"closed_at"`
}

// reading turns one line into a row and reports its problems.
type reading struct {
	line
	env   Env
	known *known
	now   int64 // Unix µs
	note  func(field, problem string)
}

func (r *reading) wrong(field, format string, args ...any) {
	r.note(field, fmt.Sprintf(format, args...))
}

// row is the line's order; it is valid only if no problem was reported.
func (r *reading) row(raw []byte) *staged {
	if err := supplier.DecodeConfig(raw, &r.line); err != nil {
		if f := supplier.AsField(err); f != nil {
			r.wrong(f.Field, "%s", f.Problem)
		} else {
			r.wrong("", "not one JSON object")
		}
		return nil
	}
	s := &staged{
		OrderNo: r.number("order_no", r.OrderNo, true), OutTradeNo: r.number("out_trade_no", r.OutTradeNo, false),
		SupplierTradeNo: r.number("supplier_trade_no", r.SupplierTradeNo, false),
		Amount:          r.whole("amount", r.Amount, 1, money.MaxMinor, 0), Currency: r.Currency,
		Version: r.whole("version", r.Version, 1, math.MaxInt32, 1),
		Subject: r.text("subject", r.Subject, maxSubject), CloseReason: r.text("close_reason", r.CloseReason, maxReason),
		NotifyURL: r.text("notify_url", r.NotifyURL, maxURL), Status: r.Status,
	}
	if s.OutTradeNo == "" {
		s.OutTradeNo = s.OrderNo
	}
	r.parties(s)
	r.life(s)
	return s
}

// parties finds merchant, supplier and currency.
func (r *reading) parties(s *staged) {
	var ok bool
	if s.MerchantID, ok = r.known.merchants[r.Merchant]; r.Merchant == "" {
		r.wrong("merchant", "missing")
	} else if !ok {
		r.wrong("merchant", "there is no merchant %q: apply it first", textlimit.Clip(r.Merchant, maxShown))
	}
	sup, ok := r.known.suppliers[r.Supplier]
	if s.SupplierID, s.AccountID = sup.ID, sup.AccountID; r.Supplier == "" {
		r.wrong("supplier", "missing")
	} else if !ok {
		r.wrong("supplier", "there is no supplier %q: apply it first", textlimit.Clip(r.Supplier, maxShown))
	}
	var err error
	if s.Exponent, err = money.Exponent(r.Currency); r.Currency == "" {
		r.wrong("currency", "missing")
	} else if err != nil {
		r.wrong("currency", "%v", err)
	}
	if len(r.Amount) == 0 {
		r.wrong("amount", "missing: a whole number of minor units")
	}
	if r.NotifyURL != "" {
		if err := r.env.CheckURL(r.NotifyURL); err != nil {
			r.wrong("notify_url", "%v", err)
		}
	}
	if items := string(r.Items); items != "" && items != "null" && items != "[]" {
		r.wrong("items", "stock reservations cannot be imported: apply stock without what these orders reserve, and leave items out")
	}
}

// attempts has the status of the payment attempt of an imported order, by the order's status:
// callbacks and second payments find the order through its attempt. A pending or closed order
// has none.
var attempts = map[order.Status]payment.AttemptStatus{
	order.Paying: payment.Submitted, order.Closing: payment.Submitted, order.Paid: payment.Succeeded, order.Failed: payment.AttemptFailed,
}

// life reads the status and the fields that depend on it.
func (r *reading) life(s *staged) {
	status := order.Status(r.Status)
	if !slices.Contains(order.Statuses, status) {
		r.wrong("status", "use pending, paying, closing, paid, failed or closed")
		return
	}
	s.AttemptStatus = attempts[status]
	s.CreatedAt = r.moment("created_at", r.CreatedAt, r.now)
	s.ExpiresAt = r.moment("expires_at", r.ExpiresAt, max(r.now, s.CreatedAt)+defaultExpiry.Microseconds())
	if r.ExpiresAt != "" && s.ExpiresAt <= s.CreatedAt {
		r.wrong("expires_at", "must be after created_at")
	}
	if s.CreatedAt > r.now+time.Hour.Microseconds() {
		r.wrong("created_at", "must not be in the future")
	}
	switch next := s.ExpiresAt; status {
	case order.Pending, order.Paying:
		s.NextAt = &next
	case order.Closing:
		// The other system had started to close the order: its grace begins now.
		next = r.now + r.env.ClosingGrace.Microseconds()
		s.NextAt = &next
	}
	r.ends(s, status)
}

// ends reads how an order ended, and rejects the fields that other statuses do not have.
func (r *reading) ends(s *staged, status order.Status) {
	s.PaidAmount = r.whole("paid_amount", r.PaidAmount, 0, money.MaxMinor, 0)
	if status == order.Paid {
		if s.PaidAmount == 0 {
			s.PaidAmount = s.Amount
		}
		at := r.moment("paid_at", r.PaidAt, r.now)
		s.PaidAt = &at
	} else if s.PaidAmount != 0 {
		r.wrong("paid_amount", "only a paid order has one")
	} else if r.PaidAt != "" {
		r.wrong("paid_at", "only a paid order has one")
	}
	if status == order.Closed {
		at := r.moment("closed_at", r.ClosedAt, r.now)
		s.ClosedAt = &at
	} else if r.ClosedAt != "" {
		r.wrong("closed_at", "only a closed order has one")
	}
	if r.CloseReason != "" && status != order.Closed && status != order.Closing {
		r.wrong("close_reason", "only a closing or closed order has one")
	}
	if (status == order.Closed || status == order.Closing) && s.CloseReason == "" {
		s.CloseReason = "imported"
	}
}

// number checks and returns an order or trade number: visible ASCII, as used in suppliers'
// messages. Order numbers are also part of URL paths.
func (r *reading) number(field, text string, required bool) string {
	if text == "" && required {
		r.wrong(field, "missing")
	}
	hidden := func(c rune) bool {
		return c <= ' ' || c > '~' || field == "order_no" && strings.ContainsRune("/?#%", c)
	}
	if len(text) > maxNo || strings.ContainsFunc(text, hidden) {
		r.wrong(field, "use 1 to %d visible ASCII characters (an order_no must not contain / ? # %%)", maxNo)
	}
	return text
}

func (r *reading) text(field, text string, longest int) string {
	if utf8.RuneCountInString(text) > longest || strings.ContainsFunc(text, unicode.IsControl) {
		r.wrong(field, "use at most %d characters, no control characters", longest)
	}
	return text
}

// whole reads a whole number; otherwise is the default.
func (r *reading) whole(field string, raw json.RawMessage, minValue, maxValue, otherwise int64) int64 {
	if len(raw) == 0 || string(raw) == "null" {
		return otherwise
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < minValue || n > maxValue {
		r.wrong(field, "use a whole number from %d to %d, without quotes", minValue, maxValue)
		return otherwise
	}
	return n
}

// moment reads a time in Unix µs; otherwise is the default.
func (r *reading) moment(field, text string, otherwise int64) int64 {
	if text == "" {
		return otherwise
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.Year() < 2000 || at.Year() > 2200 {
		r.wrong(field, "use a time such as 2026-01-31T08:00:00Z (RFC 3339)")
		return otherwise
	}
	return at.UnixMicro()
}

// maxShown bounds a wrong text in a message, in characters.
const maxShown = 60
