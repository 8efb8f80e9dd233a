package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/breaker"
	"backstop/internal/list"
	"backstop/internal/merchant"
	"backstop/internal/notify"
	"backstop/internal/recipient"
	"backstop/internal/report"
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
	Steps     MerchantSteps
	Keys      access.MerchantKeys
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
	if err := b.addSteps(ctx, m); err != nil {
		return nil, err
	}
	if m.Keys, err = access.MerchantKeysOf(ctx, b.db.Read, m.Code); err != nil {
		return nil, err
	}
	m.Pinged, err = b.pingOf(ctx, m.ID, pinged)
	return m, err
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

// pingOf returns the attempt of a ping to a merchant by its notification; nil = there is none.
func (b *Reader) pingOf(ctx context.Context, merchantID int64, notification string) (*notify.Attempt, error) {
	event, err := notify.FindEvent(ctx, b.db.Read, notification)
	if errors.Is(err, notify.ErrNoDelivery) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var rows []notify.Attempt
	err = b.db.Read.NewRaw("SELECT a.* FROM deliveries AS d JOIN notify_attempts AS a ON a.delivery_id = d.id"+
		" WHERE d.subject_id = ? AND d.event_type = ? AND d.recipient_id = ? LIMIT 1", event.SubjectID, notify.Ping, merchantID).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read the result of a ping: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	MaskAttempt(&rows[0])
	return &rows[0], nil
}

// MerchantList declares the list of merchants. Its pages are in the order of declaration and
// come from Merchants.
var MerchantList = list.New(list.Spec{
	Name:    "merchants",
	Sources: []list.Source{{Table: "merchants", Alias: "m", Key: "id", MerchantColumn: "m.id"}},
	Fields: []list.Field{
		{Name: "merchant", Column: "code", Indexed: true, Suggest: codes("merchants", "name")},
		{
			Name: "state", Values: []string{MerchantEnabled, MerchantDisabled},
			Match: func(_ context.Context, _ list.Lookup, state string) (list.Match, error) {
				return list.Match{Where: "m." + merchantStates[state]}, nil
			},
		},
	},
	NoTimeFilter: true,
})

// Values of the field "state" of MerchantList.
const (
	MerchantEnabled  = "enabled"
	MerchantDisabled = "disabled"
)

// merchantStates are their conditions.
var merchantStates = map[string]string{"": "id > 0", MerchantEnabled: "disabled_at IS NULL", MerchantDisabled: "disabled_at IS NOT NULL"}

// MerchantStatus is the state of one merchant.
type MerchantStatus struct {
	MerchantHealth
	ID         int64
	Disabled   bool
	LastOK     int64 // Unix µs, 0 = never
	LastFailed int64
	DueAt      int64 // when the longest-waiting notification was or is due; 0 = none waits
}

// MerchantStatuses reads one page of merchants by id, after the given one, with the figures of
// the overview.
func (b *Reader) MerchantStatuses(ctx context.Context, code string, after int64, limit int) (all []MerchantStatus, next int64, err error) {
	return b.merchantStatuses(ctx, list.All(), code, "", after, limit)
}

// merchantStatuses is MerchantStatuses for those in a state; "" = any.
func (b *Reader) merchantStatuses(ctx context.Context, scope list.Scope, code, state string, after int64, limit int) (all []MerchantStatus,
	next int64, err error,
) {
	var rows []struct {
		ID         int64
		Code, Name string
		DisabledAt *int64
	}
	q := scope.In(b.db.Read.NewSelect(), "id").TableExpr("merchants").Column("id", "code", "name", "disabled_at").
		Where("id > ?", after).Where(merchantStates[state]).OrderExpr("id").Limit(int64(limit) + 1)
	if code != "" {
		q = q.Where("code = ?", code)
	}
	if err := q.Scan(ctx, &rows); err != nil {
		return nil, 0, fmt.Errorf("read merchants: %w", err)
	}
	if len(rows) > limit {
		rows = rows[:limit]
		next = rows[limit-1].ID
	}
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	s, err := report.Of(ctx, b.db, ids, b.db.Now()-healthSpan.Microseconds())
	if err != nil {
		return nil, 0, err
	}
	risk, err := report.AtRisk(ctx, b.db)
	if err != nil {
		return nil, 0, err
	}
	slow, err := notify.SlowRecipients(ctx, b.db)
	if err != nil {
		return nil, 0, err
	}
	for _, r := range rows {
		all = append(all, MerchantStatus{
			MerchantHealth: MerchantHealth{
				Health: s.Health[r.ID], Code: r.Code, Name: r.Name, AtRisk: risk.ByMerchant[r.ID], Waiting: risk.Waiting[r.ID].Orders(),
				Breaker: b.breakers.Of(recipient.OfMerchant(r.ID)), Slow: slices.Contains(slow, r.ID),
			},
			ID: r.ID, Disabled: r.DisabledAt != nil, LastOK: s.OKAt[r.ID], LastFailed: s.FailedAt[r.ID], DueAt: s.DueAt[r.ID],
		})
	}
	return all, next, nil
}

// Merchants reads one page of the list of merchants.
func (b *Reader) Merchants(ctx context.Context, q list.Query, s list.Slice) (list.Page[MerchantStatus], error) {
	rows, next, err := b.merchantStatuses(ctx, q.Scope, q.Get("merchant"), q.Get("state"), s.At.ID, cmp.Or(s.Rows, list.PageSize))
	page := list.Page[MerchantStatus]{Rows: rows, Count: int64(len(rows)), More: next > 0}
	if next > 0 {
		page.Older = list.Cursor{ID: next}
	}
	return page, err
}

// MerchantCodes returns the codes of merchants and subscribers by id.
func (b *Reader) MerchantCodes(ctx context.Context, ids []int64) (map[int64]string, error) {
	named, err := b.named(ctx, ids)
	codes := make(map[int64]string, len(named))
	for id, n := range named {
		codes[id] = n.Code
	}
	return codes, err
}
