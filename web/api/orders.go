package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/payment"
	"backstop/internal/recipient"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

func (s *handlers) createOrder(c *fiber.Ctx) error {
	o, created, err := s.Payments.Create(c.UserContext(), web.MerchantOf(c), *requestOf[payment.CreateRequest](c))
	if err != nil {
		return err
	}
	if created {
		c.Status(http.StatusCreated)
	}
	return s.sendOrder(c, o)
}

func (s *handlers) getOrder(c *fiber.Ctx) error {
	no, err := web.OrderNo(c)
	if err != nil {
		return err
	}
	o, err := order.ByNo(c.UserContext(), s.DB.Read, no)
	if err != nil {
		return err
	}
	return s.sendOrder(c, o)
}

// orderQuery names an order by the merchant's number.
type orderQuery struct {
	OutTradeNo string `query:"out_trade_no" kind:"ascii" required:"true" max:"64" says:"use 1 to 64 visible ASCII characters" doc:"The merchant's number of the order."`
}

func (orderQuery) ignoresOthers() {}

func (s *handlers) findOrder(c *fiber.Ctx) error {
	o, err := order.ByOutTradeNo(c.UserContext(), s.DB.Read, web.MerchantOf(c).ID, requestOf[orderQuery](c).OutTradeNo)
	if err != nil {
		return err
	}
	return s.sendOrder(c, o)
}

// paidOrder is the response to a pay request: the order, and what the buyer needs if the
// supplier's kind can start a payment.
type paidOrder struct {
	orderView
	Payment paymentView `json:"payment"`
}

type paymentView struct {
	Attempt   string  `json:"attempt"`
	Supplier  string  `json:"supplier"`
	Reference string  `json:"reference"`
	Status    string  `json:"status"`
	Kind      string  `json:"kind"`
	Value     *string `json:"value"`
	ExpiresAt string  `json:"expires_at"`
}

func (s *handlers) payOrder(c *fiber.Ctx) error {
	no, err := web.OrderNo(c)
	if err != nil {
		return err
	}
	p, err := s.Payments.Pay(c.UserContext(), web.MerchantOf(c), no, *requestOf[payment.PayRequest](c))
	if err != nil {
		return notInState(err, errNotPayable)
	}
	view, err := s.viewOrder(c, p.Order)
	if err != nil {
		return err
	}
	out := paidOrder{orderView: view, Payment: paymentView{
		Attempt: strconv.FormatInt(p.AttemptID, 10), Supplier: p.Supplier, Reference: p.Reference, Status: p.Status, Kind: p.Kind,
		ExpiresAt: view.ExpiresAt,
	}}
	if p.Value != "" {
		out.Payment.Value = &p.Value
	}
	return c.JSON(out)
}

func (s *handlers) cancelOrder(c *fiber.Ctx) error {
	no, err := web.OrderNo(c)
	if err != nil {
		return err
	}
	o, err := s.Payments.Cancel(c.UserContext(), web.MerchantOf(c), no)
	if err != nil {
		return notInState(err, errNotCancellable)
	}
	return s.sendOrder(c, o)
}

// Conflicts with the order's status.
var (
	errNotPayable     = web.Error{Status: http.StatusConflict, Code: "order_not_payable"}
	errNotCancellable = web.Error{Status: http.StatusConflict, Code: "order_not_cancellable"}
)

// notInState is the call's own error for a conflict with the order's status, which it names.
func notInState(err error, own web.Error) error {
	if errors.Is(err, payment.ErrState) {
		own.Message = err.Error()
		return &own
	}
	return err
}

// sendOrder responds with an order.
func (s *handlers) sendOrder(c *fiber.Ctx, o *order.Order) error {
	view, err := s.viewOrder(c, o)
	if err != nil {
		return err
	}
	return c.JSON(view)
}

// orderView is an order in the merchant API. Missing values are null.
type orderView struct {
	OrderNo         string  `json:"order_no"`
	OutTradeNo      string  `json:"out_trade_no"`
	Merchant        string  `json:"merchant"`
	Supplier        string  `json:"supplier"`
	Amount          int64   `json:"amount"`
	Currency        string  `json:"currency"`
	Status          string  `json:"status"`
	NotifyStatus    string  `json:"notify_status"`
	SupplierTradeNo *string `json:"supplier_trade_no"`
	PaidAmount      int64   `json:"paid_amount"`
	FeeAmount       int64   `json:"fee_amount"` // what the merchant pays of it
	CreatedAt       string  `json:"created_at"`
	ExpiresAt       string  `json:"expires_at"`
	PaidAt          *string `json:"paid_at"`
	ClosedAt        *string `json:"closed_at"`
	CloseReason     *string `json:"close_reason"`
	Version         int64   `json:"version"`
	AskedAt         *string `json:"asked_at"` // when its supplier was last asked
	NextAt          *string `json:"next_at"`  // when it is looked at again
	RefundedAmount  int64   `json:"refunded_amount"`
	RefundStatus    string  `json:"refund_status"`
	DisputedAmount  int64   `json:"disputed_amount"` // of open and lost disputes
}

// viewOrder converts an order of the calling merchant; another merchant's counts as not found.
func (s *handlers) viewOrder(c *fiber.Ctx, o *order.Order) (orderView, error) {
	if o.MerchantID != web.MerchantOf(c).ID {
		return orderView{}, order.ErrNotFound
	}
	return s.orderOf(c.UserContext(), o)
}

// orderOf converts an order, whoever the caller is.
func (s *handlers) orderOf(ctx context.Context, o *order.Order) (orderView, error) {
	code, err := s.supplierCode(ctx, o.SupplierID)
	if err != nil {
		return orderView{}, err
	}
	var deliveries []notify.Delivery
	if !o.Status.Open() { // an open order has no close reason
		if deliveries, err = notify.OfSubject(ctx, s.DB.Read, o.ID); err != nil {
			return orderView{}, err
		}
	}
	parked := notify.IsParked(s.Breakers, s.Settings.Merchants(), recipient.OfMerchant(o.MerchantID))
	var of string
	if m := s.Settings.Merchants().ByID(o.MerchantID); m != nil {
		of = m.Code
	}
	return orderView{
		OrderNo: o.OrderNo, OutTradeNo: o.OutTradeNo, Merchant: of, Supplier: code,
		Amount: o.Amount, Currency: o.Currency, Status: string(o.Status), NotifyStatus: notify.OrderStatus(deliveries, parked),
		SupplierTradeNo: orNull(o.SupplierTradeNo), PaidAmount: o.PaidAmount, FeeAmount: o.FeeAmount,
		CreatedAt: notify.Stamp(o.CreatedAt), ExpiresAt: notify.Stamp(o.ExpiresAt),
		PaidAt: notify.StampOr(o.PaidAt), ClosedAt: notify.StampOr(o.ClosedAt), CloseReason: orNull(o.CloseReason), Version: o.Version,
		AskedAt: notify.StampOr(o.QueriedAt), NextAt: notify.StampOr(nextOf(o)),
		RefundedAmount: o.RefundedAmount, RefundStatus: o.RefundStatus(), DisputedAmount: o.DisputedAmount,
	}, nil
}

// nextOf returns when an order is next due; an ended order keeps a value that no longer
// applies.
func nextOf(o *order.Order) *int64 {
	if !o.Status.Open() {
		return nil
	}
	return o.NextAt
}

// supplierCode is almost always found in memory; a supplier whose keys cannot be opened is not
// there, but its orders are shown all the same.
func (s *handlers) supplierCode(ctx context.Context, id int64) (string, error) {
	if e, ok := s.Settings.Current().Suppliers.ByID(id); ok {
		return e.Code, nil
	}
	var codes []string
	if err := s.DB.Read.NewRaw("SELECT code FROM suppliers WHERE id = ?", id).Scan(ctx, &codes); err != nil {
		return "", fmt.Errorf("read the supplier's code: %w", err)
	}
	if len(codes) == 0 {
		return "", nil
	}
	return codes[0], nil
}
