package console

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/calendar"
	"backstop/internal/base/db"
	"backstop/internal/fund"
	"backstop/internal/list"
	"backstop/internal/report"
	"backstop/internal/savedview"

	"github.com/uptrace/bun"
)

// ViewLists returns the lists of which operators save views.
func ViewLists() map[string]savedview.List {
	lists := map[string]savedview.List{}
	for _, l := range []savedview.List{
		{Spec: OrderList, Permission: access.ViewOrders},
		{Spec: CallbackList, Permission: access.ViewCallbacks},
		{Spec: DeliveryList, Permission: access.ViewNotifications},
		{Spec: ExceptionList, Permission: access.ViewExceptions, Always: true},
		{Spec: ApprovalList, Permission: access.ViewExceptions, Always: true},
		{Spec: CompensationList, Permission: access.ViewCompensations, Always: true},
		{Spec: RefundList, Permission: access.ViewOrders, Always: true},
		{Spec: PayoutList, Permission: access.ViewOrders, Always: true},
		{Spec: DisputeList, Permission: access.ViewOrders, Always: true},
		{Spec: ActList, Permission: access.ViewAudit, Always: true},
	} {
		lists[l.Spec.Name] = l
	}
	return lists
}

// RiskParts returns the parts of the money at risk whose rows a list has.
func RiskParts(spec *list.Spec) (parts []report.Part) {
	if !slices.ContainsFunc(spec.Fields, func(f list.Field) bool { return f.Name == "risk" }) {
		return nil
	}
	for _, part := range report.Parts {
		if rows, ok := report.RowsOf(part, 0); ok && rows.Table == spec.Sources[0].Table {
			parts = append(parts, part)
		}
	}
	return parts
}

// Days writes a month or a day of a zone as a value of a filter.
func Days(layout string, t time.Time) string { return t.Format(layout) + "@" + t.Location().String() }

// DayLayout is how Days writes a day; a month is written by fund.MonthLayout.
const DayLayout = time.DateOnly

// parseDays returns the bounds of a value of Days in Unix µs, the second one exclusive.
func parseDays(value string) (from, to int64, ok bool) {
	text, name, _ := strings.Cut(value, "@")
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return 0, 0, false
	}
	if t, err := calendar.Parse(fund.MonthLayout, text, zone); err == nil {
		return t.UnixMicro(), calendar.MonthEnd(t).UnixMicro(), true
	}
	t, err := calendar.ParseDay(text, zone)
	return t.UnixMicro(), calendar.DayStart(t, 1).UnixMicro(), err == nil
}

func checkDays(value string) string {
	if _, _, ok := parseDays(value); !ok {
		return "use a month or a day with its zone, such as 2026-11@Asia/Shanghai or 2026-11-22@UTC"
	}
	return ""
}

// payableDays is how long before a payment its order was created, at most.
const payableDays = 31

// matchPaid matches the orders that were paid in a month or on a day. Those of one merchant are
// searched among its orders, unless it has so many that the newest of all merchants have enough.
func matchPaid(ctx context.Context, in list.Lookup, value string) (list.Match, error) {
	from, to, ok := parseDays(value)
	first := db.IDAt(from - payableDays*24*time.Hour.Microseconds())
	m := list.Match{Where: "o.paid_at >= ? AND o.paid_at < ? AND o.id >= ?", Args: []any{from, to, first}, None: !ok, AnyAge: true}
	code := in.Query.Get("merchant")
	if code == "" {
		return m, nil
	}
	id, err := idOf(ctx, in.Read, "merchants", code)
	m.Candidates = func(context.Context, bun.IDB) (string, error) {
		return fmt.Sprintf("SELECT * FROM orders WHERE merchant_id = %d", id), nil
	}
	return m, err
}

// matchDecided matches the proposals that were decided in a month or on a day.
func matchDecided(_ context.Context, _ list.Lookup, value string) (list.Match, error) {
	from, to, ok := parseDays(value)
	return list.Match{Where: "ap.decided_at >= ? AND ap.decided_at < ?", Args: []any{from, to}, None: !ok}, nil
}
