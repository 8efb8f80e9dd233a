package console

import (
	"context"
	"errors"
	"fmt"

	"backstop/internal/act"
	"backstop/internal/breaker"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/recipient"
)

// Merchant is one merchant with its breaker, and its endpoints with their health.
type Merchant struct {
	MerchantStatus
	// Held means that its deliveries are parked; Parked counts them.
	Held      bool
	Parked    notify.Due
	History   []breaker.Change // of the breaker, newest first
	Addresses []Address
	Settings  merchant.Settings
	Pinged    *notify.Attempt // the result of a requested ping
}

// Address is one endpoint of a merchant with its health, without secrets.
type Address struct {
	Key                string   // identifies it in forms
	Name, Channel, URL string   // as displayed
	Events             []string // event types sent to it; empty = all
	Failures           int64    `bun:"failures"` // in a row
	OKAt               *int64   `bun:"last_ok_at"`
	FailedAt           *int64   `bun:"last_failed_at"`
	LastError          string   `bun:"last_error"`
	DisabledAt         *int64   `bun:"disabled_at"`
	Reason             string   `bun:"reason"` // why it is disabled
}

// historyShown bounds the displayed changes of a breaker.
const historyShown = 20

// Merchant reads one merchant by code; pinged is the id of a ping to show, or empty. Errors:
// act.ErrNotFound.
func (b *Reader) Merchant(ctx context.Context, code, pinged string) (*Merchant, error) {
	rows, _, err := b.MerchantStatuses(ctx, code, 0, 1)
	if err != nil {
		return nil, err
	}
	if code == "" || len(rows) == 0 {
		return nil, act.ErrNotFound
	}
	m := &Merchant{MerchantStatus: rows[0]}
	if m.Held = b.isParked(recipient.OfMerchant(m.ID)); m.Held {
		if m.Parked, err = notify.Parked(ctx, b.db, recipient.OfMerchant(m.ID)); err != nil {
			return nil, err
		}
	}
	if m.History, err = breaker.History(ctx, b.db, recipient.OfMerchant(m.ID), historyShown); err != nil {
		return nil, err
	}
	if err := b.addAddresses(ctx, m); err != nil {
		return nil, err
	}
	return m, b.addPing(ctx, m, pinged)
}

func (b *Reader) addAddresses(ctx context.Context, m *Merchant) error {
	var health []struct {
		Endpoint string
		Address  `bun:",extend"`
	}
	err := b.db.Read.NewRaw(
		"SELECT endpoint, failures, last_ok_at, last_failed_at, last_error, disabled_at, reason FROM endpoint_health WHERE recipient_id = ?", m.ID).
		Scan(ctx, &health)
	if err != nil {
		return fmt.Errorf("read the health of endpoints: %w", err)
	}
	known := b.settings.Merchants().ByID(m.ID)
	if known == nil {
		return nil // another node has just declared the merchant
	}
	m.Settings = known.Settings
	for i := range known.Endpoints {
		e := &known.Endpoints[i]
		a := Address{Key: e.Key(), Name: notify.Shown(e.Name), Channel: e.Channel, URL: notify.Shown(e.URL), Events: e.Events}
		for _, h := range health {
			if h.Endpoint == e.Name {
				a.Failures, a.OKAt, a.FailedAt, a.LastError, a.DisabledAt, a.Reason = h.Failures, h.OKAt, h.FailedAt, h.LastError,
					h.DisabledAt, h.Reason
			}
		}
		m.Addresses = append(m.Addresses, a)
	}
	return nil
}

func (b *Reader) addPing(ctx context.Context, m *Merchant, pinged string) error {
	event, err := notify.FindEvent(ctx, b.db.Read, pinged)
	if errors.Is(err, notify.ErrNoDelivery) {
		return nil
	}
	if err != nil {
		return err
	}
	var rows []notify.Attempt
	err = b.db.Read.NewRaw("SELECT a.* FROM deliveries AS d JOIN notify_attempts AS a ON a.delivery_id = d.id"+
		" WHERE d.subject_id = ? AND d.event_type = ? AND d.recipient_id = ? LIMIT 1", event.SubjectID, notify.Ping, m.ID).Scan(ctx, &rows)
	if err != nil {
		return fmt.Errorf("read the result of a ping: %w", err)
	}
	if len(rows) > 0 {
		MaskAttempt(&rows[0])
		m.Pinged = &rows[0]
	}
	return nil
}
