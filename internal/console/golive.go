package console

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"backstop/internal/callback"
	"backstop/internal/notify"
	"backstop/internal/report"
	"backstop/internal/supplier"
	"backstop/internal/suppliercall"
)

// MerchantSteps is how far a merchant has come on the way to its first payment.
type MerchantSteps struct {
	Pinged       bool
	Acknowledged bool // a ping, or any notification
	Ordered      bool
}

// Over reports whether nothing is left to do. A merchant without endpoints has nothing to acknowledge.
func (m *Merchant) Over() bool {
	return m.Steps.Ordered && (m.Steps.Acknowledged || len(m.Addresses) == 0)
}

// addSteps reads how far the merchant has come.
func (b *Reader) addSteps(ctx context.Context, m *Merchant) error {
	err := b.db.Read.NewRaw("SELECT EXISTS (SELECT 1 FROM orders WHERE merchant_id = ?)", m.ID).Scan(ctx, &m.Steps.Ordered)
	if err != nil {
		return fmt.Errorf("look for an order of %s: %w", m.Code, err)
	}
	m.Steps.Acknowledged = m.LastOK > 0
	for _, a := range m.Addresses {
		m.Steps.Acknowledged = m.Steps.Acknowledged || a.OKAt != nil
	}
	if m.Over() {
		return nil
	}
	var params string
	err = b.db.Read.NewRaw("SELECT params FROM audit WHERE object = 'merchant' AND object_id = ? AND action = ? ORDER BY number DESC LIMIT 1",
		m.Code, notify.PingAct("merchant")).Scan(ctx, &params)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for a ping of %s: %w", m.Code, err)
	}
	m.Steps.Pinged = true
	var last struct{ Notification string }
	_ = json.Unmarshal([]byte(params), &last) // of an act that cannot be read, no answer is known
	a, err := b.pingOf(ctx, m.ID, last.Notification)
	if err == nil && a != nil {
		m.Steps.Acknowledged = m.Steps.Acknowledged || a.Class == notify.OK
	}
	return err
}

// SupplierSteps is how far a supplier has come on the way to its first order.
type SupplierSteps struct {
	Received bool // any callback
	Verified bool // an authentic one
	Queried  bool // its last query was answered
}

// SupplierSteps reads how far a supplier has come.
func (b *Reader) SupplierSteps(ctx context.Context, id int64, code string) (s SupplierSteps, err error) {
	last, err := report.LastCallbacks(ctx, b.db, callback.Refused)
	if err != nil {
		return s, err
	}
	s.Verified = last[id] > 0
	err = b.db.Read.NewRaw("SELECT EXISTS (SELECT 1 FROM refused_callbacks WHERE supplier = ?)", code).Scan(ctx, &s.Received)
	if err != nil {
		return s, fmt.Errorf("look for a callback of %s: %w", code, err)
	}
	s.Received = s.Received || s.Verified
	var class string
	err = b.db.Read.NewRaw("SELECT class FROM supplier_calls WHERE supplier_id = ? AND op = ? AND state = 'ended' ORDER BY id DESC LIMIT 1", id,
		suppliercall.Query).Scan(ctx, &class)
	if errors.Is(err, sql.ErrNoRows) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("look for a query of %s: %w", code, err)
	}
	s.Queried = supplier.Class(class).Healthy()
	return s, nil
}
