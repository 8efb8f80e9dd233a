package console

import (
	"context"
	"fmt"
	"slices"

	"backstop/internal/audit"
	"backstop/internal/breaker"
	"backstop/internal/exception"
	"backstop/internal/notify"
	"backstop/internal/order"

	"github.com/uptrace/bun"
)

// events are an order's stored events of one kind.
type events[T any] struct {
	kind    ItemKind
	from    *bun.SelectQuery // all of them
	columns string           // "" = the model's columns
	key     string           // a column that grows with time
	keyOf   func(*T) int64
}

// read returns the oldest and newest events, oldest first. Those between are left out and
// counted.
func (e events[T]) read(ctx context.Context, b *Reader, s *Story) ([]T, error) {
	all, newest, err := e.ends(ctx, b, s)
	if err != nil {
		return nil, fmt.Errorf("read the order's events (%s): %w", e.kind, err)
	}
	return append(all, newest...), nil
}

func (e events[T]) ends(ctx context.Context, b *Reader, s *Story) (oldest, newest []T, err error) {
	rows := func(q *bun.SelectQuery, order string) *bun.SelectQuery {
		q = q.Clone().OrderExpr(e.key + order).Limit(storyEnds)
		if e.columns != "" {
			q = q.ColumnExpr(e.columns)
		}
		return q
	}
	if err := rows(e.from, "").Scan(ctx, &oldest); err != nil || len(oldest) < storyEnds {
		return oldest, nil, err
	}
	rest := e.from.Where(e.key+" > ?", e.keyOf(&oldest[storyEnds-1]))
	if err := rows(rest, " DESC").Scan(ctx, &newest); err != nil {
		return nil, nil, err
	}
	slices.Reverse(newest)
	if len(newest) < storyEnds {
		return oldest, newest, nil
	}
	var n int64
	between := rest.Where(e.key+" < ?", e.keyOf(&newest[0])).ColumnExpr("1").Limit(countedRows + 1)
	if err := b.db.Read.NewSelect().TableExpr("(?) AS b", between).ColumnExpr("count(*)").Scan(ctx, &n); err != nil {
		return nil, nil, err
	}
	s.leaveOut(e.kind, n)
	return oldest, newest, nil
}

// leaveOut records events that were not read; counting stops at countedRows.
func (s *Story) leaveOut(kind ItemKind, n int64) {
	if n == 0 {
		return
	}
	if s.Left.Events == nil {
		s.Left.Events = LeftEvents{}
	}
	c := s.Left.Events[kind]
	s.Left.Events[kind] = LeftCount{N: c.N + min(n, countedRows), More: c.More || n > countedRows}
}

// storyCallback selects everything of a callback except its body, which may be 256 KiB.
const storyCallback = "c.id, c.trade_no, c.outcome, c.received_at, c.remote_addr, c.method, c.query, c.headers, length(c.body) AS size, c.steps," +
	" COALESCE((SELECT su.code FROM suppliers AS su WHERE su.id = c.supplier_id), '') AS supplier," +
	" COALESCE(cr.seen, 0) AS seen, COALESCE(cr.last_seen_at, 0) AS last_seen_at, COALESCE(cr.last_addr, '') AS last_addr"

func (b *Reader) addCallbacks(ctx context.Context, s *Story) error {
	rows, err := events[Callback]{
		kind: ItemCallback, columns: storyCallback, key: "c.id", keyOf: func(c *Callback) int64 { return c.ID },
		from: b.db.Read.NewSelect().TableExpr("callbacks AS c").Join("LEFT JOIN callback_repeats AS cr ON cr.callback_id = c.id").
			Where("c.order_no = ?", s.Order.OrderNo),
	}.read(ctx, b, s)
	if err != nil {
		return err
	}
	for i := range rows {
		s.Items = append(s.Items, Item{At: rows[i].ReceivedAt, Phase: PaymentPhase, Callback: &rows[i]})
	}
	return nil
}

func (b *Reader) addHistory(ctx context.Context, s *Story) error {
	rows, err := events[order.History]{
		kind: ItemStatus, key: "oh.version", keyOf: func(h *order.History) int64 { return h.Version },
		from: b.db.Read.NewSelect().Model((*order.History)(nil)).ModelTableExpr(order.AllHistory+" AS oh").Where("oh.order_id = ?",
			s.Order.ID),
	}.read(ctx, b, s)
	for i := range rows {
		s.Items = append(s.Items, Item{At: rows[i].CreatedAt, Phase: PaymentPhase, Move: &rows[i]})
	}
	return err
}

// addDeliveries reads the order's deliveries with the bodies of their events.
func (b *Reader) addDeliveries(ctx context.Context, s *Story) (err error) {
	s.Deliveries, err = events[notify.Delivery]{
		kind: ItemNotification, key: "d.id", keyOf: func(d *notify.Delivery) int64 { return d.ID },
		from: b.db.Read.NewSelect().Model((*notify.Delivery)(nil)).Where("d.subject_id = ?", s.Order.ID),
	}.read(ctx, b, s)
	if err != nil {
		return err
	}
	slices.Reverse(s.Deliveries)
	s.Parked, s.Bodies = map[int64]bool{}, map[int64]string{}
	var of []int64
	for i := range s.Deliveries {
		d := &s.Deliveries[i]
		s.Parked[d.ID] = b.holds(d)
		of = append(of, d.EventID)
		s.Items = append(s.Items, Item{At: d.CreatedAt, Phase: DeliveryPhase, Queued: d})
	}
	if len(of) == 0 {
		err := b.db.Read.NewRaw("SELECT coalesce(max(value), 0) FROM settings WHERE name = ?", notify.Since).Scan(ctx, &s.NotifiedSince)
		if err != nil {
			return fmt.Errorf("read the start of the retention of notifications: %w", err)
		}
		return nil
	}
	var bodies []notify.Event
	if err := b.db.Read.NewSelect().Model(&bodies).ModelTableExpr(notify.AllEvents+" AS e").Where("e.id IN (?)",
		bun.List(of)).Scan(ctx); err != nil {
		return fmt.Errorf("read the bodies of the order's notifications: %w", err)
	}
	for _, e := range bodies {
		s.Bodies[e.ID] = e.Body
	}
	return nil
}

func (b *Reader) addAttempts(ctx context.Context, s *Story) error {
	of, err := deliveriesOf(ctx, b.db.Read, s.Order.OrderNo)
	if err != nil || len(of) == 0 {
		return err
	}
	rows, err := events[notify.Attempt]{
		kind: ItemAttempt, key: "na.id", keyOf: func(a *notify.Attempt) int64 { return a.ID },
		from: b.db.Read.NewSelect().Model((*notify.Attempt)(nil)).ModelTableExpr(notify.AllAttempts+" AS na").
			Where("na.delivery_id IN (?)", bun.List(of)),
	}.read(ctx, b, s)
	for i := range rows {
		s.Items = append(s.Items, Item{At: rows[i].StartedAt, Phase: DeliveryPhase, Attempt: &rows[i]})
	}
	return err
}

// addBreaker reads the changes of the merchant's breaker while the order's notifications were
// open. Ids grow with time and so bound the query.
func (b *Reader) addBreaker(ctx context.Context, s *Story) error {
	if len(s.Deliveries) == 0 {
		return nil
	}
	from, until := s.Deliveries[len(s.Deliveries)-1].ID, int64(0)
	for _, d := range s.Deliveries {
		if d.FinishedAt == nil {
			until = b.db.Now()
			break
		}
		until = max(until, *d.FinishedAt)
	}
	rows, err := events[breaker.Change]{
		kind: ItemBreaker, key: "bh.id", keyOf: func(c *breaker.Change) int64 { return c.ID },
		from: b.db.Read.NewSelect().Model((*breaker.Change)(nil)).Where("bh.owner_id = ?", s.Order.MerchantID).
			Where("bh.id > ?", from).Where("bh.at <= ?", until),
	}.read(ctx, b, s)
	for i := range rows {
		s.Items = append(s.Items, Item{At: rows[i].At, Phase: DeliveryPhase, Breaker: &rows[i]})
	}
	return err
}

func (b *Reader) addExceptions(ctx context.Context, s *Story) (err error) {
	s.Exceptions, err = events[exception.Item]{
		kind: ItemException, key: "x.id", keyOf: func(x *exception.Item) int64 { return x.ID },
		from: b.db.Read.NewSelect().Model((*exception.Item)(nil)).Where("x.order_no = ?", s.Order.OrderNo),
	}.read(ctx, b, s)
	slices.Reverse(s.Exceptions)
	for i := range s.Exceptions {
		x := &s.Exceptions[i]
		s.Items = append(s.Items, Item{At: x.OpenedAt, Phase: ExceptionPhase, Exception: x})
		if x.ResolvedAt != nil {
			s.Items = append(s.Items, Item{At: *x.ResolvedAt, Phase: ExceptionPhase, Settled: x})
		}
	}
	return err
}

// addActs adds the acts on the order and its exceptions.
func (b *Reader) addActs(ctx context.Context, s *Story) error {
	var exceptions []string
	for i := range s.Exceptions {
		exceptions = append(exceptions, ExceptionID(s.Exceptions[i].ID))
	}
	for _, on := range []struct {
		object string
		ids    []string
	}{{"order", []string{s.Order.OrderNo}}, {ExceptionObject, exceptions}} {
		if len(on.ids) == 0 {
			continue
		}
		rows, err := events[audit.Row]{
			kind: ItemAct, key: "au.number", keyOf: func(r *audit.Row) int64 { return r.Number },
			from: b.db.Read.NewSelect().Model((*audit.Row)(nil)).Where("au.object = ?", on.object).Where("au.object_id IN (?)",
				bun.List(on.ids)),
		}.read(ctx, b, s)
		if err != nil {
			return err
		}
		for i := range rows {
			s.Items = append(s.Items, Item{At: rows[i].At, Phase: PeoplePhase, Act: &rows[i]})
		}
	}
	return nil
}
