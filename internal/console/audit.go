package console

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"backstop/internal/access"
	"backstop/internal/alert"
	"backstop/internal/audit"
	"backstop/internal/compensation"
	"backstop/internal/list"

	"github.com/uptrace/bun"
)

// RoleWord is the field of the acts of operators by the roles, one of which they have now.
const RoleWord = "role"

// ActList declares the list of acts. Its keys are numbers without gaps.
var ActList = list.New(list.Spec{
	Name: "audit", SumRows: 5000,
	Sources: []list.Source{{Table: "audit", Alias: "au", Key: "number", Time: "at", MerchantColumn: list.NoMerchant}},
	Fields: []list.Field{
		{Name: "actor", Suggest: actors, Match: func(_ context.Context, _ list.Lookup, name string) (list.Match, error) {
			return list.Match{Where: "au.actor IN (?)", Args: []any{bun.List(audit.Actors(name))}, Indexed: true}, nil
		}},
		{Name: "object", Column: "object", Indexed: true, Check: checkObject, Values: []string{ // the usual ones
			"order", "callback", "notification", ExceptionObject, "approval", "dispute", "merchant", "batch", "plan", "operator", "token",
			"file", "master_key",
			"audit", "alert_rule", "alert", alert.IncidentObject, "list", compensation.ActObject,
		}},
		{Name: "action", Column: "action", Indexed: true, Suggest: actions},
		{Name: "id", Column: "object_id", Indexed: true},
		{Name: RoleWord, Hidden: true, Check: checkRoles, Match: matchRoles},
	},
})

// checkObject accepts the name of any kind of object: acts about one that is gone remain.
func checkObject(name string) string {
	if !regexp.MustCompile(`^[a-z][a-z_]{0,39}$`).MatchString(name) {
		return "use the name of a kind of object, such as order"
	}
	return ""
}

func checkRoles(text string) string {
	if _, err := access.ParseRoles(text); err != nil {
		return err.Error()
	}
	return ""
}

func matchRoles(_ context.Context, _ list.Lookup, text string) (m list.Match, err error) {
	var either []string
	roles, err := access.ParseRoles(text)
	for _, role := range roles.Names() {
		either, m.Args = append(either, "',' || op.role || ',' LIKE ?"), append(m.Args, "%,"+role+",%")
	}
	m.Where = "au.actor IN (SELECT 'operator:' || op.name FROM operators AS op WHERE " + strings.Join(either, " OR ") + ")"
	return m, err
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
