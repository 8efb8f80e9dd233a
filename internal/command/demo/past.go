package demo

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/ledger"
	"backstop/internal/notify"
	orders "backstop/internal/order"
	"backstop/internal/payment"
	"github.com/uptrace/bun"
)

// pastOrder is one order of the past: created, paid a moment later, and notified at once.
type pastOrder struct {
	merchant int64
	shop     *shop
	supplier pastSupplier
	currency string
	amount   int64
	at       int64 // when it was paid, Unix µs
	took     time.Duration
	url      string
}

// past are the rows of some orders of the past, as they would be stored after their payment: with
// the ids of their time.
type past struct {
	accounts   map[[2]string]int64 // of the ledger, by code and currency
	journal    int64
	journals   []pastJournal
	orders     []*orders.Order
	history    []orders.History
	attempts   []payment.Attempt
	callbacks  []pastCallback
	transfers  []ledger.Transfer
	deliveries []pastDelivery
}

type pastJournal struct {
	bun.BaseModel `bun:"table:journals"`

	ID        int64 `bun:"id,pk"`
	CreatedAt int64 `bun:"created_at"`
}

type pastCallback struct {
	bun.BaseModel `bun:"table:callbacks"`

	ID         int64  `bun:"id,pk"`
	SupplierID int64  `bun:"supplier_id"`
	OrderID    int64  `bun:"order_id"`
	OrderNo    string `bun:"order_no"`
	TradeNo    string `bun:"trade_no"`
	EventKey   string `bun:"event_key"`
	Digest     string `bun:"digest"`
	Outcome    string `bun:"outcome"`
	ReceivedAt int64  `bun:"received_at"`
	RemoteAddr string `bun:"remote_addr"`
	Method     string `bun:"method"`
	Query      string `bun:"query"`
	Headers    string `bun:"headers"`
	Body       []byte `bun:"body"`
}

// pastDelivery is a delivery with its event and its only attempt.
type pastDelivery struct {
	bun.BaseModel `bun:"table:deliveries"`

	ID          int64         `bun:"id,pk"`
	EventID     int64         `bun:"event_id"`
	RecipientID int64         `bun:"recipient_id"`
	SubjectID   int64         `bun:"subject_id"`
	EventType   string        `bun:"event_type"`
	Channel     string        `bun:"channel"`
	URL         string        `bun:"url"`
	Status      notify.Status `bun:"status"`
	Attempts    int64         `bun:"attempts"`
	LastClass   notify.Class  `bun:"last_class"`
	CreatedAt   int64         `bun:"created_at"`
	FinishedAt  int64         `bun:"finished_at"`
	Currency    string        `bun:"currency"`
	Amount      int64         `bun:"amount"`
	Counted     bool          `bun:"counted"`
	Version     int64         `bun:"version"`
	Body        string        `bun:"body"`
	FirstClass  notify.Class  `bun:"first_class"`
	FirstStatus int64         `bun:"first_status"`
	FirstAt     int64         `bun:"first_at"`
	FirstTookUS int64         `bun:"first_took_us"`
	FirstURL    string        `bun:"first_url"`
	FirstNode   string        `bun:"first_node"`
	FirstBody   []byte        `bun:"first_body"`
}

// open begins a part of the past, with a journal of its first moment.
func (h *history) open(ctx context.Context, tx db.Tx, at int64) error {
	h.past = &past{accounts: map[[2]string]int64{}, journal: db.IDAt(at)}
	var codes []string
	var rows, found []ledger.Account
	account := func(code, currency string) {
		codes = append(codes, code)
		rows = append(rows, ledger.Account{ID: db.IDAt(at) + int64(len(rows)), Code: code, Currency: currency})
	}
	for _, s := range h.suppliers {
		account(ledger.SupplierAccount(s.Code), s.currency())
	}
	for _, s := range h.shops {
		for _, currency := range []string{"CNY", "USD"} {
			account(ledger.MerchantAccount(s.code), currency)
		}
	}
	if _, err := tx.NewInsert().Model(&rows).On("CONFLICT (code, currency) DO NOTHING").Exec(ctx); err != nil {
		return fmt.Errorf("open the accounts of the past: %w", err)
	}
	if err := tx.NewSelect().Model(&found).Where("a.code IN (?)", bun.List(codes)).Scan(ctx); err != nil {
		return fmt.Errorf("read the accounts of the past: %w", err)
	}
	for _, a := range found {
		h.past.accounts[[2]string{a.Code, a.Currency}] = a.ID
	}
	return nil
}

// add adds an order with all its rows.
func (p *past) add(o pastOrder) {
	id, created, two := db.IDAt(o.at)+1, o.at-time.Second.Microseconds(), int64(2)
	no, callback := strconv.FormatInt(id, 10), id+1
	trade := "past" + no
	p.orders = append(p.orders, &orders.Order{
		ID: id, OrderNo: no, MerchantID: o.merchant, OutTradeNo: "past-" + no, SupplierID: o.supplier.ID, Amount: o.amount,
		Currency: o.currency, Exponent: 2,
		Subject: "demo: paid", NotifyURL: o.url, Status: orders.Paid, Version: two, CreatedAt: created, ExpiresAt: created +
			time.Hour.Microseconds(),
		SupplierTradeNo: trade, PaidAmount: o.amount, PaidAt: &o.at,
		PaidFrom: orders.Pending, PaidVersion: &two, PaidBy: "supplier:" + o.supplier.Code, PaidCallback: &callback, ConfirmedAt: &o.at,
	})
	p.history = append(p.history, orders.History{
		ID: id, OrderID: id, Version: 1, To: orders.Pending, Cause: orders.Created, Actor: "merchant:" + o.shop.code, CreatedAt: created,
	})
	p.attempts = append(p.attempts, payment.Attempt{
		ID: id, OrderID: id, AccountID: o.supplier.AccountID, SupplierRef: no, SupplierTradeNo: trade, Status: payment.Succeeded,
		Amount: o.amount, CreatedAt: created, UpdatedAt: o.at, SupplierID: o.supplier.ID,
	})
	p.callbacks = append(p.callbacks, pastCallback{
		ID: callback, SupplierID: o.supplier.ID, OrderID: id, OrderNo: no, TradeNo: trade, EventKey: trade, Digest: trade,
		Outcome:    payment.Paid,
		ReceivedAt: o.at, RemoteAddr: "127.0.0.1", Method: "POST", Body: []byte("{}"),
	})
	p.transfers = append(p.transfers, ledger.Transfer{
		ID: id, JournalID: p.journal, DebitAccount: p.accounts[[2]string{ledger.SupplierAccount(o.supplier.Code), o.currency}],
		CreditAccount: p.accounts[[2]string{ledger.MerchantAccount(o.shop.code), o.currency}],
		Amount:        o.amount, Currency: o.currency, Ref: "paid:" + no, CreatedAt: o.at,
	})
	p.deliveries = append(p.deliveries, pastDelivery{
		ID: id + 2, EventID: id + 2, RecipientID: o.merchant, SubjectID: id, EventType: "order.paid", Channel: "webhook", URL: o.url,
		Status: notify.Delivered, Attempts: 1, LastClass: notify.OK, CreatedAt: o.at, FinishedAt: o.at + o.took.Microseconds(),
		Currency: o.currency, Amount: o.amount, Counted: true, Version: 2, Body: `{"order_no":"` + no + `"}`,
		FirstClass: notify.OK, FirstStatus: 200, FirstAt: o.at, FirstTookUS: o.took.Microseconds(), FirstURL: o.url, FirstNode: "demo",
		FirstBody: []byte("success"),
	})
}

// write adds the rows to the writes. The ledger folds their journal like any other.
func (p *past) write(w *db.Writes) {
	if len(p.orders) == 0 {
		return
	}
	w.Insert(&p.orders, "")
	w.Insert(&p.history, "")
	w.Insert(&p.attempts, "")
	w.Insert(&p.callbacks, "")
	p.journals = []pastJournal{{ID: p.journal, CreatedAt: p.transfers[0].CreatedAt}}
	w.Insert(&p.journals, "")
	w.Insert(&p.transfers, "")
	w.Insert(&p.deliveries, "")
}
