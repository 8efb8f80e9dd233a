package views

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"backstop/internal/audit"
	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/internal/notify"

	"github.com/a-h/templ"
)

// AuditData is one page of the audit.
type AuditData struct {
	Rows []audit.Row
	// Checked says that the chain was checked as far as Extent: the first wrong row is
	// Broken, and KeyNeeded the first whose key is not here; 0 = none.
	Checked           bool
	Extent            audit.Extent
	Broken, KeyNeeded int64
}

// reasonOf is what somebody gave as the reason of an act.
func reasonOf(r audit.Row) string {
	var params map[string]any
	if json.Unmarshal([]byte(r.Params), &params) != nil {
		return ""
	}
	text, _ := params["reason"].(string)
	return text
}

// paramsOf is what else is known of an act, in one line. Acts of earlier versions
// name an address whole.
func paramsOf(p *Page, r audit.Row) string {
	var params map[string]any
	if json.Unmarshal([]byte(r.Params), &params) != nil {
		return ""
	}
	delete(params, "reason")
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(params)) {
		label := name // such as a field of a rule, or sha256
		if w, ok := details[name]; ok {
			label = p.T(w)
		}
		parts = append(parts, label+p.T(tColon)+paramOf(p, name, fmt.Sprint(params[name])))
	}
	return strings.Join(parts, " · ")
}

// paramOf is one of them: codes of ours in words.
func paramOf(p *Page, name, value string) string {
	switch name {
	case "outcome":
		return p.T(outcomeWord(compensation.Outcome(value)))
	case "kind":
		return p.T(kindWord(value))
	}
	return notify.Shown(value)
}

// maxDetail is how much of it, in bytes, a row shows unfolded.
const maxDetail = 160

// whoOf is an actor without its kind.
func whoOf(actor string) string {
	_, name, found := strings.Cut(actor, ":")
	if !found {
		return actor
	}
	return name
}

func objectLink(r audit.Row) templ.SafeURL {
	if r.Object == "order" {
		return orderLink(r.ObjectID)
	}
	return ""
}

// acts are the words of what people do, by the code that the audit keeps.
var acts = map[string]word{
	console.ResendAct:          tActResend,
	"order.note":               tActNote,
	"order.unmask":             tActUnmask,
	"order.evidence":           tActExport,
	"session.start":            tActSignIn,
	"password.change":          tActPassword,
	"alert.test":               tActAlertTest,
	"alert.rule":               tActAlertRule,
	"merchant.ping":            tActPing,
	"merchant.enable_address":  tActEnable,
	"breaker.open":             tActBreakerOpen,
	"breaker.close":            tActBreakerShut,
	"breaker.probe":            tActBreakerTry,
	"exception.note":           tActNote,
	"exception.assign":         tActAssign,
	"exception.settle":         tActSettle,
	"exception.ignore":         tActIgnore,
	"exception.reopen":         tActReopen,
	"notification.resend_many": tActMany,
	"session.end_others":       tActEndOthers,
	"settings.apply":           tActApply,
	"orders.import":            tActImport,
	"secrets.reseal":           tActReseal,
	"token.add":                tActTokenAdd,
	"token.revoke":             tActTokenEnd,
	"operator.add":             tActOpAdd,
	"audit.sealed":             tActSealed,
	"operator.disable":         tActOpDisable,
	"operator.reset_password":  tActOpReset,
}

// details are the words of what is known of an act, by the names that the audit keeps.
var details = map[string]word{
	"role": tKeyRole, "scope": tKeyScope, "created": tKeyCreated, "changed": tKeyChanged, "opened": tKeyOpened,
	"disabled": tKeyDisabled, "orders": tKeyOrders, "targets": tKeyTargets, "ended": tKeyEnded, "format": tKeyFormat,
	"key_id": tKeyKey, "endpoint": tKeyEndpoint, "class": tKeyClass, "notification": tKeyNotified, "filter": tKeyFilter,
	"notifications": tKeyCount, "number": tNumber, "hash": tKeyHash, "amounts": tKeyAmounts, "to": tKeyTo, "delivery": tKeyDelivery, "how": tKeyHow, "outcome": tKeyOutcome, "reference": tKeyProof, "amount": tKeyAmount, "kind": tKeyKind,
}

// objects are the kinds of things that something is done to, in the order in which
// the audit's filter offers them.
var objects = []struct {
	name string
	word word
}{
	{"order", tOrder},
	{console.ExceptionObject, tObjException},
	{"merchant", tMerchant},
	{"plan", tObjPlan},
	{"operator", tObjOperator},
	{"token", tObjToken},
	{"file", tObjFile},
	{"master_key", tObjKey},
	{"audit", tAudit},
	{"alert_rule", tObjRule},
	{"alert", tObjAlert},
}

func objectWord(name string) word {
	for _, o := range objects {
		if o.name == name {
			return o.word
		}
	}
	return word{name, name}
}

func actWord(action string) word {
	if w, ok := acts[action]; ok {
		return w
	}
	return word{action, action}
}
