package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/list"
	"backstop/internal/notify"
	"backstop/internal/recipient"
	"backstop/internal/report"
)

// Realtime is the current state, in the figures of the overview.
type Realtime struct {
	At       int64 // Unix µs
	Outcomes *Outcomes
	Queues   *Queues
	Risk     *report.Risk
	Windows  []Window
}

// Window is the results of the last minutes.
type Window struct {
	Minutes int
	From    int64 // Unix µs
	report.Point
	Notified []report.Notified
}

// windows are the spans of Realtime, in minutes.
var windows = []int{1, 5, 60}

// lately returns the last minutes of a per-minute curve, including the current minute. For one
// minute it returns the last complete one, because a minute that has just begun is nearly
// empty.
func lately(points []report.Point, minutes int) []report.Point {
	if minutes == 1 {
		return points[len(points)-2 : len(points)-1]
	}
	return points[len(points)-minutes:]
}

func (b *Reader) window(ctx context.Context, points []report.Point, minutes int) (Window, error) {
	span := lately(points, minutes)
	w := Window{Minutes: minutes, From: span[0].Start, Point: report.Total(span)}
	var err error
	w.Notified, err = report.Orders(ctx, b.db, w.From, span[len(span)-1].Start, time.Minute)
	return w, err
}

// Realtime reads the figures of the last hour, as the overview shows them.
func (b *Reader) Realtime(ctx context.Context, sizes func(context.Context) (map[string]queue.Size, error)) (*Realtime, error) {
	r := &Realtime{At: b.db.Now()}
	var err error
	if r.Outcomes, err = b.Outcomes(ctx, RangeOf("1h")); err != nil {
		return nil, err
	}
	if r.Queues, err = b.Queues(ctx, sizes); err != nil {
		return nil, err
	}
	for _, minutes := range windows {
		w, err := b.window(ctx, r.Outcomes.Points, minutes)
		if err != nil {
			return nil, err
		}
		r.Windows = append(r.Windows, w)
	}
	r.Risk, err = report.AtRisk(ctx, b.db)
	return r, err
}

// MerchantList declares the list of merchants. Its pages are in the order of declaration and
// come from Merchants.
var MerchantList = list.New(list.Spec{
	Name:    "merchants",
	Sources: []list.Source{{Table: "merchants", Alias: "m", Key: "id", MerchantColumn: "m.id"}},
	Fields: []list.Field{
		{Word: "merchant", Column: "code", Indexed: true, Suggest: codes("merchants", "name")},
		{
			Word: "state", Values: []string{MerchantEnabled, MerchantDisabled},
			Match: func(_ context.Context, _ list.Lookup, state string) (list.Match, error) {
				return list.Match{Where: "m." + merchantStates[state]}, nil
			},
		},
	},
	Timeless: true,
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
	return b.merchantStatuses(ctx, code, "", after, limit)
}

// merchantStatuses is MerchantStatuses for those in a state; "" = any.
func (b *Reader) merchantStatuses(ctx context.Context, code, state string, after int64, limit int) (all []MerchantStatus, next int64,
	err error,
) {
	var rows []struct {
		ID         int64
		Code, Name string
		DisabledAt *int64
	}
	q := b.db.Read.NewSelect().TableExpr("merchants").Column("id", "code", "name", "disabled_at").
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
	rows, next, err := b.merchantStatuses(ctx, q.Get("merchant"), q.Get("state"), s.At.ID, cmp.Or(s.Rows, list.PageSize))
	page := list.Page[MerchantStatus]{Rows: rows, Count: int64(len(rows)), More: next > 0}
	if next > 0 {
		page.Older = list.Cursor{ID: next}
	}
	return page, err
}

// Node is one process that reports as running.
type Node struct {
	Name      string
	StartedAt int64 // Unix µs
	SeenAt    int64
}

// Alive reports whether the node was seen recently.
func (n Node) Alive(now int64) bool { return now-n.SeenAt < db.NodeGone.Microseconds() }

// Nodes reads the processes of the last hour, except those that stopped in an orderly way.
func (b *Reader) Nodes(ctx context.Context) ([]Node, error) {
	var rows []Node
	if err := b.db.Read.NewRaw("SELECT name, started_at, seen_at FROM nodes ORDER BY slot").Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("read the nodes: %w", err)
	}
	return rows, nil
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
