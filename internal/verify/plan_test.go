package verify

import (
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db/dbtest"

	"github.com/uptrace/bun"
)

// A page of a claim reads the related rows by indexes: a table scan per page would make the whole
// run quadratic. (s is the accounts at suppliers, only a few rows.)
func TestNoClaimGoesThroughATable(t *testing.T) {
	t.Parallel()
	d := dbtest.SQLite(t)
	for name, claims := range map[string][]claim{
		"I1": callbackClaims(), "I2": notifyClaims(time.Now().UnixMicro(), nil), "I3": paidClaims(), "I4": ledgerClaims(),
		"I6": historyClaims(), "I7": markClaims(), "I8": eventClaims(),
		"I12": approvalClaims(), "I15": decisionClaims(), "I16": append(refundStepClaims(), payoutStepClaims()...),
		"I17": append(refundSumClaims(), payoutSumClaims()...),
	} {
		for _, c := range claims {
			args := append([]any{bun.Ident(c.table)}, c.args...)
			query := d.DB.QueryGen().FormatQuery("SELECT x.id FROM ? AS x WHERE x.id > 5 AND x.id <= 9 AND ("+c.condition()+") AND ("+
				c.wrong+")", args...)
			for _, line := range dbtest.Plan(t, d, query) {
				if strings.Contains(line, "AUTOMATIC") || strings.HasPrefix(line, "SCAN") && !strings.Contains(line, "SCAN CONSTANT") &&
					line != "SCAN s" {
					t.Errorf("%s, %s: %s", name, c.table, line)
				}
			}
		}
	}
}
