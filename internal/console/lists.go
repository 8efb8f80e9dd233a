package console

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"

	"backstop/internal/alert"
	"backstop/internal/audit"
	"backstop/internal/compensation"
	"backstop/internal/list"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// idOf returns the id of the row with this code in a table; 0 = none.
func idOf(ctx context.Context, q bun.IDB, table, code string) (int64, error) {
	var id []int64
	if err := q.NewRaw("SELECT id FROM ? WHERE code = ?", bun.Ident(table), code).Scan(ctx, &id); err != nil {
		return 0, fmt.Errorf("find a code in %s: %w", table, err)
	}
	if len(id) == 0 {
		return 0, nil
	}
	return id[0], nil
}

// MerchantID returns the id of the merchant with this code; 0 = none.
func (b *Reader) MerchantID(ctx context.Context, code string) (int64, error) {
	return idOf(ctx, b.db.Read, "merchants", code)
}

// SupplierID returns the id of the supplier with this code; 0 = none.
func (b *Reader) SupplierID(ctx context.Context, code string) (int64, error) {
	return idOf(ctx, b.db.Read, "suppliers", code)
}

// RecipientID returns the id of the merchant or subscriber with this code; 0 = none. If both
// exist, the merchant's.
func (b *Reader) RecipientID(ctx context.Context, code string) (int64, error) {
	return recipientID(ctx, b.db.Read, code)
}

func recipientID(ctx context.Context, q bun.IDB, code string) (int64, error) {
	if id, err := idOf(ctx, q, "merchants", code); err != nil || id != 0 {
		return id, err
	}
	return idOf(ctx, q, "subscriptions", code)
}

// coded matches rows by the code of the row that their column refers to.
func coded(table, column string) func(context.Context, list.Lookup, string) (list.Match, error) {
	return func(ctx context.Context, in list.Lookup, code string) (list.Match, error) {
		id, err := idOf(ctx, in.Read, table, code)
		return list.Match{Where: column + " = ?", Args: []any{id}, None: id == 0}, err
	}
}

// choices bounds a select box; other codes can be entered in the URL.
const choices = 500

// codes suggests the codes in a table, of disabled rows too: their data remains.
func codes(table, name string) func(context.Context, bun.IDB) ([]list.Choice, error) {
	return func(ctx context.Context, q bun.IDB) (rows []list.Choice, err error) {
		err = q.NewRaw("SELECT code AS value, ? AS name FROM ? ORDER BY code LIMIT ?", bun.Ident(name), bun.Ident(table), choices).Scan(ctx,
			&rows)
		if err != nil {
			return nil, fmt.Errorf("read the codes of %s: %w", table, err)
		}
		return rows, nil
	}
}

// atRisk matches the rows of one part of the money at risk in a table's list.
func atRisk(table string, match func(report.Rows) list.Match) list.Field {
	return list.Field{Word: "risk", Hidden: true, Values: names(report.Parts...), Match: func(_ context.Context, in list.Lookup,
		part string,
	) (list.Match, error) {
		rows, ok := report.RowsOf(report.Part(part), in.DB.Now())
		if !ok || rows.Table != table {
			return list.Match{None: true}, nil
		}
		return match(rows), nil
	}}
}

// names converts string-typed values to strings.
func names[T ~string](values ...T) []string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = string(v)
	}
	return all
}

// byTime sorts a history; events in the same microsecond keep their order.
func byTime(items []Item) {
	slices.SortStableFunc(items, func(a, b Item) int { return cmp.Compare(a.At, b.At) })
}

// AlertList declares the list of alerts. An alert's subject may be a queue, a node or a code
// from several tables, so there is no merchant column.
var AlertList = list.New(list.Spec{
	Name:    "alerts",
	Sources: []list.Source{{Table: "alerts", Alias: "al", Key: "id", MerchantColumn: list.NoMerchant}},
	Fields:  []list.Field{{Word: "state", Column: "state", Indexed: true, Values: alertStates}}, // they are few
})

var alertStates = []string{alert.Firing, alert.Resolved, alert.Happened}

// Alerts reads one page of alerts.
func (b *Reader) Alerts(ctx context.Context, q list.Query, s list.Slice) (list.Page[alert.Alert], error) {
	s.Uncounted = true
	return list.Read(ctx, b.db, q, s, func(a *alert.Alert) int64 { return a.ID })
}

// ActList declares the list of acts. Its keys are numbers without gaps.
var ActList = list.New(list.Spec{
	Name: "audit", SumRows: 5000,
	Sources: []list.Source{{Table: "audit", Alias: "au", Key: "number", Time: "at", MerchantColumn: list.NoMerchant}},
	Fields: []list.Field{
		{Word: "actor", Suggest: actors, Match: func(_ context.Context, _ list.Lookup, name string) (list.Match, error) {
			return list.Match{Where: "au.actor IN (?)", Args: []any{bun.List(audit.Actors(name))}, Indexed: true}, nil
		}},
		{Word: "object", Column: "object", Indexed: true, Check: checkObject, Values: []string{ // the usual ones
			"order", "callback", "notification", ExceptionObject, "approval", "dispute", "merchant", "batch", "plan", "operator", "token",
			"file", "master_key",
			"audit", "alert_rule", "alert", alert.IncidentObject, "list", compensation.ActObject,
		}},
		{Word: "action", Column: "action", Indexed: true, Suggest: actions},
		{Word: "id", Column: "object_id", Indexed: true},
	},
})

// checkObject accepts the name of any kind of object: acts about one that is gone remain.
func checkObject(name string) string {
	if !regexp.MustCompile(`^[a-z][a-z_]{0,39}$`).MatchString(name) {
		return "use the name of a kind of object, such as order"
	}
	return ""
}

// distinct returns a query for the values of an indexed column of the audit, each read from the
// index once, however many acts there are.
func distinct(column string) string {
	return "WITH RECURSIVE w (value) AS (SELECT min(" + column + ") FROM audit UNION ALL" +
		" SELECT (SELECT min(au." + column + ") FROM audit AS au WHERE au." + column + " > w.value) FROM w WHERE w.value IS NOT NULL)"
}

// actions suggests the acts that were recorded.
func actions(ctx context.Context, q bun.IDB) (rows []list.Choice, err error) {
	if err := q.NewRaw(distinct("action")+" SELECT value FROM w WHERE value IS NOT NULL LIMIT ?", choices).Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("read the kinds of acts: %w", err)
	}
	return rows, nil
}

// actors suggests those who acted: operators by name, others with their kind.
func actors(ctx context.Context, q bun.IDB) (rows []list.Choice, err error) {
	err = q.NewRaw(distinct("actor")+
		" SELECT CASE WHEN value LIKE 'operator:%' THEN substr(value, 10) ELSE value END AS value FROM w WHERE value IS NOT NULL LIMIT ?",
		choices).Scan(ctx, &rows)
	if err != nil {
		return nil, fmt.Errorf("read who acted: %w", err)
	}
	return rows, nil
}

// Acts reads one page of acts.
func (b *Reader) Acts(ctx context.Context, q list.Query, s list.Slice) (list.Page[audit.Row], error) {
	s.Uncounted = true
	return list.Read(ctx, b.db, q, s, func(r *audit.Row) int64 { return r.Number })
}
