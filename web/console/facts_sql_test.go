package console

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
)

// factSQL says what rows a path lists, by the values of its filter, in SQL of its own.
type factSQL struct {
	from, minor, currency string
	where                 map[string]string // by word, or by word=value; ? = the value
}

// Conditions of rows that wait.
const (
	openDeliverySQL = "d.status IN ('queued', 'retry_wait', 'sending') AND d.currency <> ''"
	unsettledSQL    = "x.state NOT IN ('resolved', 'ignored')"
	merchantSQL     = "(SELECT m.id FROM merchants AS m WHERE m.code = ?)"
	supplierSQL     = "(SELECT s.id FROM suppliers AS s WHERE s.code = ?)"
)

var factsSQL = map[string]factSQL{
	"/orders": {"orders AS o", "o.amount", "o.currency", map[string]string{
		"supplier": "o.supplier_id = " + supplierSQL, "status": "o.status = ?",
		"awaits": "o.status IN ('paying', 'closing') AND o.supplier_id = " + supplierSQL,
		"risk=stuck": "o.status IN ('paying', 'closing') AND NOT EXISTS" +
			" (SELECT 1 FROM exceptions AS x WHERE x.order_no = o.order_no AND " + unsettledSQL + ")",
		"from": "o.created_at >= ?",
	}},
	"/notifications": {
		"deliveries AS d LEFT JOIN (SELECT id, amount, currency FROM orders UNION ALL SELECT id, amount, currency FROM refunds" +
			" UNION ALL SELECT id, amount, currency FROM payouts UNION ALL SELECT id, amount, currency FROM disputes) AS o ON o.id = d.subject_id",
		"CASE WHEN d.currency = '' THEN o.amount ELSE d.amount END", "CASE WHEN d.currency = '' THEN o.currency ELSE d.currency END",
		map[string]string{
			"merchant": "d.recipient_id = " + merchantSQL, "cause": "d.last_class = ?", "window": "? <> ''",
			"status=parked": "d.status IN ('queued', 'retry_wait') AND d.recipient_id IN" +
				" (SELECT b.owner_id FROM breakers AS b WHERE b.owner_kind = 'merchant' AND b.state = 'open')",
			// A payment counts once, at however many endpoints the merchant is notified of it.
			"risk=untold": "d.id IN (SELECT min(d.id) FROM deliveries AS d WHERE " + openDeliverySQL +
				" GROUP BY d.event_id, d.recipient_id)",
		},
	},
	"/exceptions": {"exceptions AS x", "x.amount", "x.currency", map[string]string{
		"kind": "x.kind = ?", "state=needs": "x.state IN ('open', 'assigned', 'proposed', 'failed')", "state=waiting": unsettledSQL,
		"risk=mismatch": unsettledSQL + " AND x.kind IN ('amount_mismatch', 'currency_mismatch', 'account_mismatch', 'duplicate_payment'," +
			" 'late_payment', 'unknown_order')",
		"risk=compensated": unsettledSQL + " AND x.kind IN ('notify_exhausted', 'stuck_paying') AND x.order_id IN" +
			" (SELECT o.id FROM orders AS o WHERE o.status IN ('paid', 'paying', 'closing')) AND NOT EXISTS" +
			" (SELECT 1 FROM deliveries AS d WHERE d.subject_id = x.order_id AND " + openDeliverySQL + ")",
	}},
	"/compensations": {"compensations AS cp", "cp.amount", "cp.currency", map[string]string{
		"state": "cp.state = ?", "cause": "cp.cause = ?", "kind": "cp.kind = ?", "supplier": "cp.supplier_id = " + supplierSQL,
	}},
	"/callbacks": {
		"(SELECT s.code, c.outcome FROM callbacks AS c JOIN suppliers AS s ON s.id = c.supplier_id" +
			" UNION ALL SELECT r.supplier, r.outcome FROM refused_callbacks AS r) AS c", "0", "''",
		map[string]string{"supplier": "c.code = ?", "outcome": "c.outcome = ?", "window": "? <> ''"},
	},
	"/approvals": {"approvals AS ap", "ap.amount", "ap.currency", map[string]string{
		"decided": "ap.decided_at >= ? AND ap.decided_at < ?", "state": "ap.state = ?",
	}},
	"/approvals#yours": {"approvals AS ap", "ap.amount", "ap.currency", map[string]string{
		"": "ap.state = 'waiting' AND NOT (ap.maker_kind = 'operator' AND ap.maker IN (SELECT id FROM operators WHERE name = 'the.lead'))",
	}},
	"/audit": {"audit AS a", "0", "''", map[string]string{
		"actor": "a.actor = ? OR a.actor = 'operator:' || ?", "action": "a.action = ?",
	}},
	"/alerts":    {"alerts AS al", "0", "''", map[string]string{"state": "al.state = ?"}},
	"/suppliers": {from: "suppliers AS s", minor: "0", currency: "''"},
	"/accounts": {"accounts AS a", "a.balance", "a.currency", map[string]string{
		"part=in_transit": "a.code LIKE 'refund:%' OR a.code LIKE 'payout:%'", "part=disputed": "a.code LIKE 'merchant:%:reserved'",
		"kind": "a.code = ? OR a.code LIKE ? || ':%'", "kind=reserved": "a.code LIKE 'merchant:%:reserved'",
		"kind=merchant": "a.code LIKE 'merchant:%' AND a.code NOT LIKE 'merchant:%:%'", "currency": "a.currency = ?",
	}},
}

// linesSQL count the lines that need an operator now: a kind of exceptions is one, and so are the
// proposals that wait for the viewer, an incident that nobody has acknowledged, and a breaker.
var linesSQL = map[string]string{
	"exceptions": "SELECT count(DISTINCT x.kind) FROM exceptions AS x WHERE x.state IN ('open', 'assigned', 'proposed', 'failed')",
	"incident":   "SELECT count(*) FROM incidents WHERE state = 'open' AND over_at IS NULL",
	"breaker":    "SELECT count(*) FROM breakers WHERE state = 'open'",
}

// wantedFacts are those about which some number must be.
var wantedFacts = []string{
	"rate", "/orders awaits", "/orders risk=stuck", "/orders from status supplier", "/notifications risk=untold",
	"/notifications merchant risk=untold", "/notifications merchant status=parked window", "/notifications cause",
	"/exceptions risk=mismatch", "/exceptions risk=compensated", "/exceptions kind risk=mismatch", "/exceptions state=needs",
	"/exceptions kind state=needs", "/exceptions kind state=waiting", "/compensations state", "/compensations cause kind state supplier",
	"/callbacks outcome", "/callbacks outcome supplier", "/approvals#yours", "/approvals decided", "/", "/ matter",
	"/alerts state", "/suppliers", "/accounts part=in_transit", "/accounts part=disputed",
	"/accounts kind", "/accounts kind=merchant", "/accounts kind=reserved", "/accounts currency", "/audit actor", "/audit action",
}

// inSQL returns how many rows an address names, their money, and what the fact is called.
func (h *harness) inSQL(t *testing.T, role, address string) (n int64, sums []string, fact string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if u.Path == "/" {
		return h.linesInSQL(t, role, u.Query().Get("matter")), nil, strings.TrimSpace("/ " + strings.Join(words(u.Query()), " "))
	}
	fact = u.Path
	if u.Fragment != "" {
		fact += "#" + u.Fragment
	}
	of, known := factsSQL[fact]
	if !known {
		t.Errorf("no SQL for %s", address)
		return 0, nil, ""
	}
	where, args := "1 = 1", []any{}
	if u.Fragment != "" {
		where = of.where[""]
	}
	for _, word := range words(u.Query()) {
		value := u.Query().Get(word)
		condition, exact := of.where[word+"="+value]
		if fact += " " + word; exact {
			fact += "=" + value
		} else if condition, known = of.where[word]; !known {
			t.Errorf("no SQL for %s=%s of %s", word, value, address)
			return 0, nil, ""
		}
		where += " AND (" + condition + ")"
		args = append(args, valuesSQL(t, word, value, strings.Count(condition, "?"))...)
	}
	var rows []struct {
		Currency string
		N, Minor int64
	}
	if err := h.DB.Read.NewRaw("SELECT "+of.currency+" AS currency, count(*) AS n, CAST(sum("+of.minor+") AS BIGINT) AS minor FROM "+
		of.from+
		" WHERE "+where+" GROUP BY 1", args...).Scan(t.Context(), &rows); err != nil {
		t.Fatalf("%s: %v", address, err)
	}
	for _, r := range rows {
		if n += r.N; r.Minor != 0 {
			sums = append(sums, plainMoney(r.Minor, r.Currency))
		}
	}
	slices.Sort(sums)
	return n, sums, fact
}

func words(v url.Values) (all []string) {
	for word := range v {
		all = append(all, word)
	}
	slices.Sort(all)
	return all
}

// valuesSQL are the arguments for the value of a filter.
func valuesSQL(t *testing.T, word, value string, n int) (args []any) {
	t.Helper()
	switch word {
	case "decided":
		day, zone, _ := strings.Cut(value, "@")
		in, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		from, err := time.ParseInLocation(time.DateOnly, day, in)
		if err != nil {
			t.Fatal(err)
		}
		return []any{from.UnixMicro(), from.AddDate(0, 0, 1).UnixMicro()}
	case "from":
		at, err := time.Parse("2006-01-02T15:04Z07:00", value)
		if err != nil {
			t.Fatal(err)
		}
		return []any{at.UnixMicro()}
	}
	for range n {
		args = append(args, value)
	}
	return args
}

// linesInSQL returns how many lines need an operator now; matter "" = of all.
func (h *harness) linesInSQL(t *testing.T, role, matter string) (n int64) {
	t.Helper()
	if matter != "" {
		return number(t, h.DB, linesSQL[matter])
	}
	for _, query := range linesSQL {
		n += number(t, h.DB, query)
	}
	if yours, _, _ := h.inSQL(t, role, "/approvals#yours"); role == access.Lead && yours > 0 {
		n++
	}
	return n
}
