package sweep

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/moves"
	"backstop/internal/breaker"
	"backstop/internal/compensation"
	"backstop/internal/compensation/rerun"
	"backstop/internal/fund/payout"
	"backstop/internal/fund/refund"
	"backstop/internal/notify"
	"backstop/internal/order"
	"backstop/internal/settings"

	"github.com/uptrace/bun"
)

// Kinds of rows that are pushed.
const (
	OpenOrders    = "orders"         // paying or closing, with nothing scheduled
	ExpiredOrders = "orders_expired" // pending past their expiry
	ClosedOrders  = "orders_closed"  // closed without querying the supplier for a payment
	Deliveries    = "deliveries"     // open, and never due
	Compensations = "compensations"  // overdue, or past their lease
	Refunds       = "refunds"        // on their way, and nothing makes their calls
	Payouts       = "payouts"
)

// Whats lists all kinds.
var Whats = []string{OpenOrders, ExpiredOrders, ClosedOrders, Deliveries, Compensations, Refunds, Payouts}

const (
	// late is when an overdue row counts as lost: every reader completes its rounds within a
	// minute, and no transaction stays open this long.
	late = 2 * time.Minute
	// postponed is longer than order.RetryClose: an order that could not be closed is due again
	// by then.
	postponed = 5 * time.Minute
)

// scan reads one table in the order of an indexed key.
type scan struct {
	table string
	key   string // id or a time
	rules []rule
}

// rule defines one kind of lost rows, and how to push them. Conditions are SQL for both
// engines; the table's alias is x, and names in braces are those of look.sql.
type rule struct {
	what string
	lost string
	// push makes those of the rows due that are still lost, and returns how many. nil = set
	// next_at to now.
	push func(ctx context.Context, tx db.Tx, l *look, ids []int64) (int, error)
}

// look holds the values for the conditions of one page.
type look struct {
	o       *Options
	now     int64
	mark    int64   // no reader looks at orders due before this
	tripped []int64 // suppliers with an open breaker
	queried []int64 // suppliers that can be queried
	pending []int64 // of those, suppliers that are also queried for orders without a started payment
}

// sql replaces the names in a condition by numbers.
func (l *look) sql(condition string) bun.Safe {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	list := func(ids []int64) string {
		texts := []string{"-1"} // no such id exists, and a list must not be empty
		for _, id := range ids {
			texts = append(texts, number(id))
		}
		return strings.Join(texts, ", ")
	}
	return bun.Safe(strings.NewReplacer(
		"{now}", number(l.now), "{late}", number(l.now-late.Microseconds()), "{mark}", number(l.mark), "{postponed}",
		number(l.now+postponed.Microseconds()),
		"{tripped}", list(l.tripped), "{asked}", list(l.queried), "{pending}", list(l.pending),
	).Replace(condition))
}

// overdue is the condition for an order that its readers do not find, or have skipped for
// minutes although nothing stops them.
var overdue = "x.next_at < {late} AND (x.next_at < {mark} OR " + order.QueriedSupplier("x") + " NOT IN ({tripped}))"

var (
	unfinished = order.Moves.In("x.status", order.Paying, order.Closing)
	waits      = order.Moves.In("x.status", order.Pending)
)

// scans are in execution order. The first one finds orders by next_at, whatever their age; the
// others go by the age of their rows.
var scans = []scan{
	{"orders", "next_at", []rule{
		{what: OpenOrders, lost: unfinished + " AND " + overdue},
		{what: ExpiredOrders, lost: waits + " AND " + overdue},
	}},
	{"orders", "id", []rule{
		{what: OpenOrders, lost: unfinished + " AND x.next_at IS NULL"},
		{what: ExpiredOrders, lost: waits + " AND x.expires_at < {late} AND (x.next_at IS NULL OR x.next_at > {postponed})"},
		{what: ClosedOrders, lost: unqueried, push: queryOnce},
	}},
	// A ping ends by itself within seconds.
	{
		"deliveries", "id",
		[]rule{{what: Deliveries, lost: notify.Moves.In("x.status", notify.Moves.Open()...) + " AND x.next_at IS NULL AND x.created_at < {late}" +
			" AND coalesce(x.lease_until, 0) < {late} AND x.event_type <> '" + notify.Ping + "'"}},
	},
	{"compensations", "id", []rule{{what: Compensations, lost: lostCompensation}}},
	{"refunds", "id", []rule{{
		what: Refunds, lost: refund.Moves.In("x.status", refund.Approved, refund.Submitted, refund.Unknown) + " AND x.created_at < {late} AND " +
			without(compensation.OfRefund),
		push: callAgain(refund.Items),
	}}},
	{"payouts", "id", []rule{{
		what: Payouts,
		lost: payout.Moves.In("x.status", payout.Approved, payout.Debiting, payout.Crediting, payout.Unknown, payout.Reversing, payout.Stuck) +
			" AND x.created_at < {late} AND " + without(compensation.OfPayout),
		push: callAgain(payout.Items),
	}}},
}

// without is the condition for a row whose calls no open compensation makes.
func without(subject string) string {
	return "NOT EXISTS (SELECT 1 FROM compensations AS c WHERE c.kind = '" + compensation.ReplayCall + "' AND c.subject_kind = '" +
		subject + "' AND c.subject_id = x.id AND " +
		compensation.Moves.In("c.state", compensation.Moves.Open()...) + ")"
}

// callAgain opens the compensations that make the calls of refunds or payouts.
func callAgain(read func(context.Context, bun.IDB, *settings.Store, []int64) ([]*compensation.Item, error)) func(context.Context, db.Tx,
	*look, []int64) (int, error) {
	return func(ctx context.Context, tx db.Tx, l *look, ids []int64) (int, error) {
		items, err := read(ctx, tx, l.o.Settings, ids)
		if err != nil {
			return 0, err
		}
		w := tx.Writes()
		l.o.Schedule.OpenDue(w, l.o.DB, items...)
		if err := w.Exec(ctx); err != nil {
			return 0, fmt.Errorf("open compensations of money on its way out: %w", err)
		}
		return len(items), nil
	}
}

// lostCompensation is the condition for one that is never due, or late without waiting for its
// supplier.
var lostCompensation = "(" + compensation.Moves.In("x.state", compensation.Waiting) + " AND x.next_at IS NULL OR " +
	compensation.Moves.In("x.state", compensation.Running) + " AND x.lease_until < {late} AND coalesce(x.next_at, {postponed}) > {now} OR " +
	compensation.Moves.In("x.state", compensation.Waiting, compensation.Running) + " AND x.next_at < {late} AND x.supplier_id NOT IN ({tripped}))"

// unqueried is the condition for an order closed by our clock or the merchant alone whose
// supplier can be queried but has not been since. The compensation opened by the push queries
// it once, whatever the result.
var unqueried = order.Moves.In("x.status", order.Closed) + " AND x.closed_at < {late} AND coalesce(x.queried_at, 0) < x.closed_at" +
	" AND (x.supplier_id IN ({pending}) OR x.supplier_id IN ({asked}) AND EXISTS (SELECT 1 FROM payment_attempts AS a WHERE a.order_id = x.id))" +
	" AND EXISTS (SELECT 1 FROM order_history AS h WHERE h.order_id = x.id AND h.version = x.version AND " +
	moves.Words("h.cause", order.ByTimeout, order.ByCancel, order.ByGrace) + ")" +
	" AND NOT EXISTS (SELECT 1 FROM compensations AS c WHERE c.subject_id = x.id AND c.subject_kind = '" + compensation.OfOrder +
	"' AND c.made_by = '" + rerun.MadeBySweep + "')"

// queryOnce has suppliers queried whether closed orders were paid.
func queryOnce(ctx context.Context, tx db.Tx, l *look, ids []int64) (int, error) {
	var orders []*order.Order
	err := tx.NewRaw("SELECT "+l.o.DB.Columns((*order.Order)(nil))+" FROM orders AS x WHERE x.id IN (?) AND ? ORDER BY x.id", bun.List(ids),
		l.sql(unqueried)).Scan(ctx, &orders)
	if err != nil {
		return 0, fmt.Errorf("read closed orders: %w", err)
	}
	items := make([]*compensation.Item, len(orders))
	for i, o := range orders {
		items[i] = rerun.Closed(o)
	}
	w := tx.Writes()
	l.o.Schedule.Open(w, l.o.DB, items...)
	if err := w.Exec(ctx); err != nil {
		return 0, fmt.Errorf("open queries about closed orders: %w", err)
	}
	return len(items), nil
}

// due makes those of the rows due now that are still lost. A time in the past would lie behind
// what readers have already passed.
func (l *look) due(ctx context.Context, tx db.Tx, table, lost string, ids []int64) (int, error) {
	res, err := tx.NewRaw("UPDATE ? AS x SET next_at = ? WHERE x.id IN (?) AND (?)", bun.Ident(table), l.o.DB.Now(), bun.List(ids),
		l.sql(lost)).Exec(ctx)
	if err != nil {
		return 0, fmt.Errorf("push %s: %w", table, err)
	}
	n, err := res.RowsAffected()
	return int(n), err
}

// newLook reads what the conditions of a page depend on.
func (o *Options) newLook(ctx context.Context) (l *look, err error) {
	l = &look{o: o, now: o.DB.Now()}
	if l.mark, err = order.Watermark(ctx, o.DB.Read); err != nil {
		return nil, err
	}
	// Includes breakers of merchants; no supplier has one of their ids.
	if err := o.DB.Read.NewRaw("SELECT owner_id FROM breakers WHERE state <> ?", breaker.Closed).Scan(ctx, &l.tripped); err != nil {
		return nil, fmt.Errorf("read which suppliers are away: %w", err)
	}
	for _, s := range o.Settings.Current().Suppliers.All() {
		if s.Can().Querier == nil {
			continue
		}
		if l.queried = append(l.queried, s.ID); s.QueryPending {
			l.pending = append(l.pending, s.ID)
		}
	}
	return l, nil
}
