package payment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/failpoint"
	"backstop/internal/base/invalid"
	"backstop/internal/base/seal"
	"backstop/internal/merchant"
	"backstop/internal/order"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"

	"github.com/uptrace/bun"
)

// PayRequest is a merchant's request to start a payment (contract §8).
type PayRequest struct {
	Method    string `json:"method" max:"16" choices:"qr|redirect|app" example:"qr" doc:"How the buyer pays; without it as the supplier's kind does."`
	Supplier  string `json:"supplier" max:"64" doc:"The supplier's code; without it that of the open payment, else the order's."`
	ReturnURL string `json:"return_url" kind:"url" max:"2048" example:"https://m1.example/back" doc:"Where the supplier sends the buyer afterwards."`
	ClientIP  string `json:"client_ip" kind:"ip" max:"45" example:"203.0.113.9" doc:"The buyer's address."`
	Payer     string `json:"payer" max:"128" doc:"The buyer's id at the supplier, if the method needs one (WeChat's openid)."`
}

// Payment is the response: the order and the payment that was started for it.
type Payment struct {
	Order     *order.Order
	AttemptID int64
	Supplier  string // code
	Reference string
	Status    string // one of Pay…
	Kind      string // supplier.Value…
	Value     string // what the buyer needs
}

// Statuses of a Payment (contract §8).
const (
	PaySubmitted = "submitted"
	PayUnknown   = "unknown" // the supplier has not answered: repeating the call repeats the start
	PayFailed    = "failed"  // refused: the order may be paid again
	PayNone      = "none"    // payments at this supplier are started by the merchant
)

// startAgain is how long a start may be repeated. Stripe forgets an idempotency key after 24
// hours and would then start a second payment.
const startAgain = 20 * time.Hour

// starting is the work left once the attempt is committed.
type starting struct {
	entry   supplier.Entry
	attempt *Attempt
	call    bool // the supplier must be called
	again   bool // it may have been called before
}

// Pay starts a payment, at most one at a time for an order. The attempt is committed before the
// supplier is called; a call without a clear answer is PayUnknown, never a failure. A repeat
// starts nothing new.
//
// Errors: order.ErrNotFound, ErrState, ErrAttemptOpen, ErrSupplier, suppliercall.ErrShadow, suppliercall.ErrDown (nothing is
// written), *invalid.FieldError ("supplier", and what the supplier's protocol cannot express).
func (p *Processor) Pay(ctx context.Context, m *merchant.Merchant, orderNo string, r PayRequest) (Payment, error) {
	if err := p.o.Calls.Shadow(); err != nil {
		return Payment{}, err
	}
	a, err := p.requests.Do(ctx, &request{merchant: m, orderNo: orderNo, pay: &r})
	if err == nil {
		err = a.err
	}
	if err != nil {
		return Payment{}, err
	}
	if a.start.call {
		// The merchant may disconnect; the result is stored all the same.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.o.CallTimeout+startMargin)
		defer cancel()
		if a.order, err = p.start(ctx, a.order, a.start, r); err != nil {
			return Payment{}, err
		}
	}
	return p.started(a.order, a.start)
}

// startMargin is how long a start may wait for its turn and its two commits.
const startMargin = 2 * time.Second

// pick chooses the supplier and the attempt of a request to pay, and returns what to write. On
// an error nothing is written.
func (p *Processor) pick(o *order.Order, attempts []*Attempt, r *PayRequest) (*starting, error) {
	now := p.o.DB.Now()
	if i := slices.IndexFunc(attempts, (*Attempt).open); i >= 0 {
		return p.pickOpen(o, attempts[i], r, now)
	}
	s, err := p.payable(o, r)
	if err != nil {
		return nil, err
	}
	x := &starting{entry: s, attempt: &Attempt{
		ID: p.o.DB.NewID(), OrderID: o.ID, AccountID: s.AccountID, SupplierID: s.ID, SupplierRef: nextRef(o.OrderNo, attempts),
		Status: Submitted, Amount: o.Amount, CreatedAt: now, UpdatedAt: now,
	}}
	if p.o.Calls == nil || s.Can().Payer == nil {
		return x, nil
	}
	if o.ExpiresAt <= now {
		return nil, fmt.Errorf("%w: %s has expired", ErrState, o.OrderNo)
	}
	if p.o.Calls.Down(s.ID) {
		return nil, suppliercall.ErrDown
	}
	x.attempt.Status, x.call = AttemptCreated, true
	return x, nil
}

// pickOpen continues with the open attempt.
func (p *Processor) pickOpen(o *order.Order, a *Attempt, r *PayRequest, now int64) (*starting, error) {
	s, known := p.o.Settings.Current().Suppliers.ByID(a.At(o))
	if r.Supplier != "" && (!known || s.Code != r.Supplier) {
		if _, err := p.payable(o, r); err != nil {
			return nil, err
		}
		return nil, ErrAttemptOpen
	}
	x := &starting{entry: s, attempt: a, again: true}
	if !known || !s.Enabled || p.o.Calls == nil || s.Can().Payer == nil || a.Status == Submitted {
		return x, nil
	}
	if now-a.CreatedAt > startAgain.Microseconds() || o.ExpiresAt <= now {
		return x, nil
	}
	if p.o.Calls.Down(s.ID) {
		return nil, suppliercall.ErrDown
	}
	x.call = true
	return x, nil
}

// payable returns the supplier for a new attempt.
func (p *Processor) payable(o *order.Order, r *PayRequest) (s supplier.Entry, err error) {
	all := p.o.Settings.Current().Suppliers
	known := false
	if r.Supplier == "" {
		s, known = all.ByID(o.SupplierID)
		if !known { // its settings cannot be used here
			return s, ErrSupplier
		}
	} else if s, known = all.Lookup(r.Supplier); !known {
		if _, broken := all.Broken(r.Supplier); broken {
			return s, ErrSupplier
		}
	}
	if !known || !s.Enabled {
		return s, &invalid.FieldError{Field: "supplier", Problem: fmt.Sprintf("no enabled supplier has the code %q",
			cmp.Or(s.Code, r.Supplier))}
	}
	return s, nil
}

// nextRef returns the reference of an order's next attempt: the order number, then with _2, _3,
// …. A reference is never reused.
func nextRef(orderNo string, attempts []*Attempt) string {
	last := 0
	for _, a := range attempts {
		if a.SupplierRef == orderNo {
			last = max(last, 1)
		} else if n, ok := strings.CutPrefix(a.SupplierRef, orderNo+"_"); ok {
			if n, err := strconv.Atoi(n); err == nil {
				last = max(last, n)
			}
		}
	}
	if last == 0 {
		return orderNo
	}
	return orderNo + "_" + strconv.Itoa(last+1)
}

// firstQuery returns when an order whose payment was just started is due.
func (p *Processor) firstQuery(o *order.Order, s supplier.Entry) int64 {
	if p.o.Calls == nil || s.Can().Querier == nil {
		return o.ExpiresAt
	}
	begun := *o
	begun.Status, begun.QueryTries = order.Paying, 0
	at, _ := p.o.Steps.Next(&begun, p.o.DB.Now())
	return at
}

// start calls the supplier and stores the result. It returns the updated order.
func (p *Processor) start(ctx context.Context, o *order.Order, x *starting, r PayRequest) (*order.Order, error) {
	a, s := x.attempt, x.entry
	var said supplier.Started
	done, err := p.o.Calls.Do(ctx, suppliercall.Call{
		To: s, Op: suppliercall.Pay, OrderID: o.ID, OrderNo: o.OrderNo, Reference: a.SupplierRef, Key: a.SupplierRef,
	}, func(ctx context.Context) (_ suppliercall.Said, err error) {
		said, err = s.Can().Start(ctx, supplier.Payment{
			Reference: a.SupplierRef, OrderNo: o.OrderNo, Subject: o.Subject, Amount: o.Amount, Currency: o.Currency,
			Method: r.Method, Payer: r.Payer, ReturnURL: r.ReturnURL, ClientIP: r.ClientIP, NotifyURL: p.o.CallbackURL(s.Code),
			CreatedAt: time.UnixMicro(o.CreatedAt), ExpiresAt: time.UnixMicro(o.ExpiresAt),
		})
		return suppliercall.Said{Exchange: said.Exchange, Status: string(said.State)}, err
	})
	field := (*supplier.FieldError)(nil)
	switch {
	case errors.As(err, &field) && !x.again:
		_, failed := p.keepStart(ctx, o, a, AttemptFailed, supplier.Started{}, nil)
		return o, errors.Join(&invalid.FieldError{Field: field.Field, Problem: field.Problem}, failed)
	case errors.As(err, &field):
		return o, &invalid.FieldError{Field: field.Field, Problem: field.Problem}
	case errors.Is(err, suppliercall.ErrDown), errors.Is(err, context.DeadlineExceeded): // nothing was sent; it may be repeated
		return o, nil
	case err != nil:
		return o, err
	}
	to := AttemptUnknown
	switch said.State {
	case supplier.Accepted:
		to = Submitted
	case supplier.StartRefused:
		// After a start without a clear answer, only the repeat may have been refused.
		if !x.again {
			to = AttemptFailed
		}
	}
	return p.keepStart(ctx, o, a, to, said, done)
}

// keepStart stores the end of a start, by compare-and-set: a callback may have been faster.
// Attempt and order are then read again.
func (p *Processor) keepStart(ctx context.Context, o *order.Order, a *Attempt, to AttemptStatus, said supplier.Started,
	done *suppliercall.Done,
) (*order.Order, error) {
	next := *a
	next.Status, next.UpdatedAt = to, p.o.DB.Now()
	if to == Submitted {
		next.Kind, next.Value, next.ExternalID = said.Kind, said.Value, said.ExternalID
		if next.Kind == supplier.ValueClientSecret {
			next.Value = p.o.Keys.Seal(valuePlace(a), []byte(said.Value))
		}
	}
	committed := func() {}
	err := p.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		from := slices.DeleteFunc(Moves.From(to, Moves.Open()...), func(s AttemptStatus) bool { return s == Submitted })
		res, err := tx.NewUpdate().Model(&next).Column("status", "kind", "value", "external_id", "updated_at").WherePK().
			Where("pa.order_id = ?", a.OrderID).Where("pa.status IN (?)", bun.List(from)).Exec(ctx)
		if err != nil {
			return fmt.Errorf("store a started payment: %w", err)
		}
		if n, _ := res.RowsAffected(); n == 0 {
			if err := tx.NewSelect().Model(&next).WherePK().Where("pa.order_id = ?", a.OrderID).Scan(ctx); err != nil {
				return fmt.Errorf("read an attempt: %w", err)
			}
			if o, err = order.ByNo(ctx, tx, o.OrderNo); err != nil {
				return err
			}
		}
		if done == nil {
			return nil
		}
		committed, err = p.o.Calls.End(ctx, tx, done)
		return err
	})
	if err != nil {
		return o, err
	}
	committed()
	failpoint.Hit("after_pay")
	*a = next
	return o, nil
}

// valuePlace is the place for which an attempt's value is sealed.
func valuePlace(a *Attempt) seal.Place {
	return seal.Place{Table: "payment_attempts", Row: strconv.FormatInt(a.ID, 10), Field: "value"}
}

// started returns the answer about an attempt.
func (p *Processor) started(o *order.Order, x *starting) (Payment, error) {
	a := x.attempt
	out := Payment{
		Order: o, AttemptID: a.ID, Supplier: x.entry.Code, Reference: a.SupplierRef, Status: PaySubmitted,
		Kind: a.Kind, Value: a.Value,
	}
	switch a.Status {
	case AttemptCreated, AttemptUnknown:
		out.Status = PayUnknown
	case AttemptFailed, AttemptClosed:
		out.Status = PayFailed
	case Submitted:
		if a.Kind == "" {
			out.Status = PayNone
		}
	}
	if out.Kind == supplier.ValueClientSecret {
		plain, err := p.o.Keys.Open(valuePlace(a), a.Value)
		if err != nil {
			return out, fmt.Errorf("open what the buyer needs: %w", err)
		}
		out.Value = string(plain)
	}
	if out.Kind == "" {
		out.Kind = supplier.ValueNone
	}
	return out, nil
}
