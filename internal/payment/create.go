package payment

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/bulk"
	"backstop/internal/base/invalid"
	"backstop/internal/base/money"
	"backstop/internal/merchant"
	"backstop/internal/order"
	"backstop/internal/report"
	"backstop/internal/stock"
	"backstop/internal/supplier"
)

// CreateRequest is a merchant's request to create an order (contract §4).
type CreateRequest struct {
	OutTradeNo string       `json:"out_trade_no" kind:"ascii" required:"true" max:"64" example:"GX-1" doc:"The merchant's number of the order: the same number with the same content is the same order."`
	Amount     int64        `json:"amount" kind:"money" required:"true" example:"1999" doc:"The amount in minor units of the currency."`
	Currency   string       `json:"currency" required:"true" max:"64" example:"CNY" doc:"ISO 4217; one that the supplier takes."`
	Supplier   string       `json:"supplier" required:"true" max:"64" example:"wx" doc:"The supplier's code."`
	Subject    string       `json:"subject" required:"true" max:"256" example:"Two tickets" doc:"What is paid for, as the buyer reads it."`
	NotifyURL  string       `json:"notify_url" max:"2048" example:"https://m1.example/notify" doc:"Where this order is notified, instead of the merchant's endpoints."`
	ExpiresIn  int64        `json:"expires_in" min:"1" example:"900" doc:"How long the order can be paid, in seconds; without it BACKSTOP_ORDER_EXPIRY."`
	Items      []stock.Line `json:"items" max:"100" doc:"The articles with limited stock that it reserves."`
}

// digest is the same for requests with the same content.
func (r CreateRequest) digest() string {
	text := fmt.Appendf(nil, "%q %d %q %q %q %q %d", r.OutTradeNo, r.Amount, r.Currency, r.Supplier, r.Subject, r.NotifyURL, r.ExpiresIn)
	for _, l := range r.Items {
		text = fmt.Appendf(text, " %q %d", l.SKU, l.Quantity)
	}
	return shortSum(text)
}

type createItem struct {
	order *order.Order
	lines []stock.Line
	tried bool // its order may exist already
}

func (c *createItem) key() string {
	return strconv.FormatInt(c.order.MerchantID, 36) + " " + c.order.OutTradeNo
}

type createResult struct {
	order   *order.Order
	created bool
	err     error // out of stock, conflict: errors of this item only
}

// Create creates an order, or returns the one created by the same request before (created =
// false). Errors: *invalid.FieldError, ErrConflict, stock.ErrOutOfStock, db.ErrBusy.
func (p *Processor) Create(ctx context.Context, m *merchant.Merchant, r CreateRequest) (o *order.Order, created bool, err error) {
	if o, err = p.newOrder(m, r); err != nil {
		if old := p.made(ctx, m, r); old != nil {
			return old, false, nil
		}
		return nil, false, err
	}
	res, err := p.creates.Do(ctx, &createItem{order: o, lines: r.Items})
	if err != nil {
		return nil, false, err
	}
	if errors.Is(res.err, stock.ErrUnknownSKU) {
		return nil, false, &invalid.FieldError{Field: "items", Problem: res.err.Error()}
	}
	return res.order, res.created, res.err
}

// made returns the order that the same request created while it was still acceptable, or nil.
// The supplier may have been disabled since, and a merchant that missed the response must not
// conclude that there is no order.
func (p *Processor) made(ctx context.Context, m *merchant.Merchant, r CreateRequest) *order.Order {
	old, err := order.ByOutTradeNo(ctx, p.o.DB.Read, m.ID, r.OutTradeNo)
	if err != nil || old.RequestDigest != r.digest() {
		return nil
	}
	return old
}

// newOrder validates the request and returns its order.
func (p *Processor) newOrder(m *merchant.Merchant, r CreateRequest) (*order.Order, error) {
	exponent, err := money.Exponent(r.Currency)
	if err != nil {
		return nil, &invalid.FieldError{Field: "currency", Problem: err.Error()}
	}
	if r.Amount < 1 || r.Amount > money.MaxMinor {
		return nil, &invalid.FieldError{Field: "amount", Problem: fmt.Sprintf("must be a whole number of minor units from 1 to %d",
			int64(money.MaxMinor))}
	}
	now := p.o.Settings.Current()
	suppliers := now.Suppliers
	if _, broken := suppliers.Broken(r.Supplier); broken {
		return nil, ErrSupplier
	}
	s, ok := suppliers.Lookup(r.Supplier)
	if !ok || !s.Enabled {
		return nil, &invalid.FieldError{Field: "supplier", Problem: fmt.Sprintf("no enabled supplier has the code %q", r.Supplier)}
	}
	if !supplier.Takes(s.Adapter, r.Currency) {
		return nil, &invalid.FieldError{Field: "currency", Problem: fmt.Sprintf("the supplier %s does not take %s", s.Code, r.Currency)}
	}
	if r.NotifyURL != "" {
		if err := p.o.CheckURL(r.NotifyURL); err != nil {
			return nil, &invalid.FieldError{Field: "notify_url", Problem: err.Error()}
		}
	}
	expiry := p.o.Expiry
	if r.ExpiresIn != 0 {
		if r.ExpiresIn < 1 || r.ExpiresIn > int64(p.o.ExpiryMax/time.Second) {
			return nil, &invalid.FieldError{Field: "expires_in", Problem: fmt.Sprintf("must be from 1 to %d seconds",
				int64(p.o.ExpiryMax/time.Second))}
		}
		expiry = time.Duration(r.ExpiresIn) * time.Second
	}
	id, at := p.o.DB.NewID(), p.o.DB.Now()
	expires := at + expiry.Microseconds()
	return &order.Order{
		ID: id, OrderNo: strconv.FormatInt(id, 10), MerchantID: m.ID, OutTradeNo: r.OutTradeNo, SupplierID: s.ID,
		Amount: r.Amount, Currency: r.Currency, Exponent: exponent, Subject: r.Subject, NotifyURL: r.NotifyURL,
		RequestDigest: r.digest(), Status: order.Pending, Version: 1, HasItems: len(r.Items) > 0,
		CreatedAt: at, ExpiresAt: expires, NextAt: &expires, FeeRule: feeRule(now, m),
	}, nil
}

// create commits a batch of new orders. Stock is reserved in the order of the requests.
//
// Hardly any request is a repeat, so on PostgreSQL an order that comes alone and needs no stock is
// inserted without a look for an old one. If there is one, the item runs again. On SQLite a look costs
// less than what shares the transaction that would be rolled back.
func (p *Processor) create(ctx context.Context, tx db.Tx, items []*createItem) ([]createResult, error) {
	if it := items[0]; len(items) == 1 && len(it.lines) == 0 && !it.tried && p.o.DB.IsPostgres() {
		it.tried = true
		w := tx.Writes()
		order.InsertUnknown(w, p.o.DB, []*order.Order{it.order}, order.Created, p.actorOf)
		p.count(w, it.order)
		if err := w.ExecAlone(ctx); err != nil {
			return nil, fmt.Errorf("write an order: %w", err)
		}
		return []createResult{{order: it.order, created: true}}, nil
	}
	results := make([]createResult, len(items))
	existing, err := p.existing(ctx, tx, items)
	if err != nil {
		return nil, err
	}
	wants := make([][]stock.Line, len(items))
	for i, it := range items {
		if old := existing[it.key()]; old != nil {
			results[i] = createResult{order: old}
			if old.RequestDigest != it.order.RequestDigest {
				results[i].err = ErrConflict
			}
			continue
		}
		wants[i] = it.lines
	}
	reserved, errs, err := stock.Reserve(ctx, tx, p.o.DB, wants)
	if err != nil {
		return nil, err
	}
	var orders []*order.Order
	var lines []order.Item
	for i, it := range items {
		if results[i].order != nil {
			continue
		}
		if errs[i] != nil {
			results[i].err = errs[i]
			continue
		}
		results[i] = createResult{order: it.order, created: true}
		orders = append(orders, it.order)
		for sku, n := range reserved[i] {
			lines = append(lines, order.Item{OrderID: it.order.ID, SKUID: sku, Quantity: n})
		}
	}
	w := tx.Writes()
	order.Insert(w, p.o.DB, orders, order.Created, p.actorOf)
	p.count(w, orders...)
	if len(lines) > 0 {
		w.Add(tx.NewInsert().Model(&lines))
	}
	if err := w.Exec(ctx); err != nil {
		return nil, fmt.Errorf("write orders: %w", err)
	}
	return results, nil
}

// count adds new orders to the figures.
func (p *Processor) count(w *db.Writes, orders ...*order.Order) {
	figures := report.NewDelta(p.o.DB.Now())
	for _, o := range orders {
		figures.Created(o.CreatedAt, o.MerchantID, o.SupplierID, o.Currency, o.Amount)
	}
	figures.Write(w, p.o.DB)
}

// existing finds orders with the same out_trade_no. If another node commits one in between, the
// insert violates the unique index; the items then run again one by one and find it here.
func (p *Processor) existing(ctx context.Context, tx db.Tx, items []*createItem) (map[string]*order.Order, error) {
	keys := make([]orderKey, len(items))
	for i, it := range items {
		keys[i] = orderKey{it.order.MerchantID, it.order.OutTradeNo}
	}
	var rows []*order.Order
	// By pairs: with separate lists of merchants and numbers the planner tries every
	// combination, or reads all orders of the merchants.
	err := tx.Prepared(ctx, &rows, "WITH _k ? SELECT "+p.o.DB.Columns((*order.Order)(nil))+" FROM orders, _k"+
		" WHERE merchant_id = _k.key_merchant AND out_trade_no = _k.key_no", bulk.Each(&keys))
	if err != nil {
		return nil, fmt.Errorf("find orders by out_trade_no: %w", err)
	}
	found := make(map[string]*order.Order, len(rows))
	for _, o := range rows {
		found[(&createItem{order: o}).key()] = o
	}
	return found, nil
}

// orderKey is a key for existing.
type orderKey struct {
	Merchant int64  `bun:"key_merchant"`
	No       string `bun:"key_no"`
}

func (p *Processor) actorOf(o *order.Order) string { return "merchant:" + p.merchantCode(o.MerchantID) }

// merchantCode returns the merchant's code, or a substitute if the merchant's row is gone: the
// money is booked all the same.
func (p *Processor) merchantCode(id int64) string {
	if m := p.o.Settings.Merchants().ByID(id); m != nil {
		return m.Code
	}
	return "unknown-" + strconv.FormatInt(id, 10)
}
