package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"backstop/internal/base/seal"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/payment"

	"github.com/gofiber/fiber/v2"
)

// missEvery is how often an unknown API key may make us look for newer settings;
// see callback.Receiver, where the same holds for unknown suppliers.
const missEvery = 250 * time.Millisecond

// maxKey bounds an API key in bytes; ours have about 60.
const maxKey = 512

// bearer is the hash of the key that a request brings, or "".
func bearer(c *fiber.Ctx) string {
	if key := bearerKey(c); key != "" {
		return seal.HashToken(key)
	}
	return ""
}

func bearerKey(c *fiber.Ctx) string {
	var lines []string
	c.Request().Header.VisitAllInOrder(func(key, value []byte) {
		if strings.EqualFold(string(key), fiber.HeaderAuthorization) {
			lines = append(lines, string(value))
		}
	})
	if len(lines) != 1 {
		return ""
	}
	scheme, key, _ := strings.Cut(lines[0], " ")
	key = strings.Trim(key, " ")
	if !strings.EqualFold(scheme, "Bearer") || key == "" || len(key) > maxKey {
		return ""
	}
	return key
}

// admitMerchant lets a merchant's API key in. Keys are found by their hash, so
// that the time of a look-up says nothing of the key itself.
func (s *Server) admitMerchant(c *fiber.Ctx) error {
	if isEncoded(copyHeader(&c.Request().Header)) {
		return errEncoded
	}
	hash := bearer(c)
	if hash == "" {
		return errUnauthorized
	}
	m := s.o.Settings.Merchants().ByKeyHash(hash)
	if m == nil && s.misses.Allow() {
		ctx, cancel := work()
		defer cancel()
		// Where the look fails, the settings that we have stay in force.
		_ = s.o.Settings.Refresh(ctx)
		m = s.o.Settings.Merchants().ByKeyHash(hash)
	}
	if m == nil {
		return errUnauthorized
	}
	c.Locals(localCaller, "merchant:"+m.Code)
	if !s.keys.allow(hash) {
		return errTooMany
	}
	if m.Broken {
		return errUnreadable
	}
	c.Locals(localMerchant, m)
	c.Set(fiber.HeaderCacheControl, "no-store")
	return c.Next()
}

// asMerchant is who admitMerchant let in.
func asMerchant(c *fiber.Ctx) *merchant.Merchant {
	m, _ := c.Locals(localMerchant).(*merchant.Merchant)
	return m
}

func (s *Server) createOrder(c *fiber.Ctx) error {
	r, err := readCreate(c.Request().Body(), s.o.Config.OrderExpiryMax)
	if err != nil {
		return err
	}
	ctx, cancel := work()
	defer cancel()
	o, created, err := s.o.Payments.Create(ctx, asMerchant(c), r)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	view, err := s.viewOrder(ctx, o, asMerchant(c))
	if err != nil {
		return err
	}
	return c.Status(status).JSON(view)
}

func (s *Server) getOrder(c *fiber.Ctx) error {
	no, err := orderNo(c)
	if err != nil {
		return err
	}
	ctx, cancel := work()
	defer cancel()
	o, err := order.ByNo(ctx, s.o.DB.Read, no)
	if err != nil {
		return err
	}
	return s.sendOrder(ctx, c, o)
}

func (s *Server) findOrder(c *fiber.Ctx) error {
	no := c.Query("out_trade_no")
	if problem := badOutTradeNo(no); problem != "" {
		return invalidField("out_trade_no", problem)
	}
	ctx, cancel := work()
	defer cancel()
	o, err := order.ByOutTradeNo(ctx, s.o.DB.Read, asMerchant(c).ID, no)
	if err != nil {
		return err
	}
	return s.sendOrder(ctx, c, o)
}

// paidOrder is the answer to a request to pay: the order, and what the buyer
// needs where its supplier's kind can start a payment (none can yet).
type paidOrder struct {
	orderView
	Payment *struct{} `json:"payment"`
}

func (s *Server) payOrder(c *fiber.Ctx) error {
	ctx, cancel := work()
	defer cancel()
	o, err := s.ask(ctx, c, s.o.Payments.Pay, "order_not_payable")
	if err != nil {
		return err
	}
	view, err := s.viewOrder(ctx, o, asMerchant(c))
	if err != nil {
		return err
	}
	return c.JSON(paidOrder{orderView: view})
}

func (s *Server) cancelOrder(c *fiber.Ctx) error {
	ctx, cancel := work()
	defer cancel()
	o, err := s.ask(ctx, c, s.o.Payments.Cancel, "order_not_cancellable")
	if err != nil {
		return err
	}
	return s.sendOrder(ctx, c, o)
}

// ask has one of a merchant's orders moved; stateCode names the conflict where
// its status does not allow that.
func (s *Server) ask(ctx context.Context, c *fiber.Ctx, move func(context.Context, *merchant.Merchant, string) (*order.Order, error), stateCode string) (*order.Order, error) {
	no, err := orderNo(c)
	if err != nil {
		return nil, err
	}
	o, err := move(ctx, asMerchant(c), no)
	if errors.Is(err, payment.ErrState) {
		return nil, &apiError{status: http.StatusConflict, code: stateCode, message: payment.ErrState.Error()}
	}
	return o, err
}

// orderNo reads the order's number from the path.
func orderNo(c *fiber.Ctx) (string, error) {
	no, err := url.PathUnescape(c.Params("order_no"))
	if err != nil || !isStorable(no) {
		return "", order.ErrNotFound
	}
	return no, nil
}

// sendOrder answers with an order of the asking merchant; another's does not
// exist.
func (s *Server) sendOrder(ctx context.Context, c *fiber.Ctx, o *order.Order) error {
	m := asMerchant(c)
	if o.MerchantID != m.ID {
		return order.ErrNotFound
	}
	view, err := s.viewOrder(ctx, o, m)
	if err != nil {
		return err
	}
	return c.JSON(view)
}

// orderView is the order as merchants see it (contract, merchant API). A moment
// that has not come is null, a text that is not known yet is empty.
type orderView struct {
	OrderNo         string  `json:"order_no"`
	OutTradeNo      string  `json:"out_trade_no"`
	Merchant        string  `json:"merchant"`
	Supplier        string  `json:"supplier"`
	Amount          int64   `json:"amount"`
	Currency        string  `json:"currency"`
	Status          string  `json:"status"`
	NotifyStatus    string  `json:"notify_status"`
	SupplierTradeNo string  `json:"supplier_trade_no"`
	PaidAmount      int64   `json:"paid_amount"`
	CreatedAt       string  `json:"created_at"`
	ExpiresAt       string  `json:"expires_at"`
	PaidAt          *string `json:"paid_at"`
	ClosedAt        *string `json:"closed_at"`
	CloseReason     string  `json:"close_reason"`
	Version         int64   `json:"version"`
}

func (s *Server) viewOrder(ctx context.Context, o *order.Order, m *merchant.Merchant) (orderView, error) {
	code, err := s.supplierCode(ctx, o.SupplierID)
	if err != nil {
		return orderView{}, err
	}
	var told []notify.Delivery
	if !o.Status.Open() { // what is open was never told of
		if told, err = notify.OfSubject(ctx, s.o.DB.Read, o.ID); err != nil {
			return orderView{}, err
		}
	}
	parked := notify.IsParked(s.o.Breakers, s.o.Settings.Merchants(), o.MerchantID)
	return orderView{
		OrderNo: o.OrderNo, OutTradeNo: o.OutTradeNo, Merchant: m.Code, Supplier: code,
		Amount: o.Amount, Currency: o.Currency, Status: string(o.Status), NotifyStatus: notify.OrderStatus(told, parked),
		SupplierTradeNo: o.SupplierTradeNo, PaidAmount: o.PaidAmount,
		CreatedAt: notify.Stamp(o.CreatedAt), ExpiresAt: notify.Stamp(o.ExpiresAt),
		PaidAt: stamp(o.PaidAt), ClosedAt: stamp(o.ClosedAt), CloseReason: o.CloseReason, Version: o.Version,
	}, nil
}

func stamp(us *int64) *string {
	if us == nil {
		return nil
	}
	text := notify.Stamp(*us)
	return &text
}

// supplierCode is almost always in memory; a supplier whose keys cannot be opened
// is not, and its orders are shown all the same.
func (s *Server) supplierCode(ctx context.Context, id int64) (string, error) {
	if e, ok := s.o.Settings.Current().Suppliers.ByID(id); ok {
		return e.Code, nil
	}
	var codes []string
	if err := s.o.DB.Read.NewRaw("SELECT code FROM suppliers WHERE id = ?", id).Scan(ctx, &codes); err != nil {
		return "", fmt.Errorf("read the supplier's code: %w", err)
	}
	if len(codes) == 0 {
		return "", nil
	}
	return codes[0], nil
}
