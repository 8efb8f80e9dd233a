package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/exception"
	"backstop/web"
	"backstop/web/webtest"
)

// bodies are what an operator may send to any route of the API: verdicts, acts, and every
// proposal.
func bodies() (all []string) {
	const reason, proof = "because the desk says so", `"evidence":"a letter"`
	all = append(all, `{}`, `{"reason":"`+reason+`"}`, `{"to":"the.ops"}`, `{"text":"`+reason+`"}`, `{"hash":"x","reason":"`+reason+`"}`)
	for action, params := range map[string]string{
		"accept_late": `"unverified":true`, "accept_amount": `"amount":1998,"unverified":true`,
		"attach":       `"order_no":"2026112000000001","unverified":true`,
		"keep_surplus": proof, "owe_back": proof, "ignore": "", "resolved_elsewhere": `"outcome":"refunded","reference":"R1",` + proof,
		"refund.resolve": `"outcome":"failed","unverified":true,` + proof,
		"mark_paid":      `"trade_no":"M-1","amount":1999,"unverified":true,` + proof, "force_closed": `"unverified":true,` + proof,
		"force_failed": `"unverified":true,` + proof,
	} {
		for _, amount := range []string{"19.98", "19.99"} {
			all = append(all, `{"action":"`+action+`","params":{`+params+`},"reason":"`+reason+`","amount":"`+amount+`"}`)
		}
	}
	return all
}

// Whatever ops sends to whatever route: no exception about money ends, and no order is
// decided. The same is tried by admin, who runs the installation.
func TestOpsEndsNoExceptionAboutMoneyByAnyRoute(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	change(t, h.DB, "DELETE FROM exceptions")
	var ids []string
	for i, kind := range []string{
		exception.AmountMismatch, exception.LatePayment, exception.UnknownOrder, exception.DuplicatePayment,
		exception.DisputeOpened,
	} {
		x := exception.Item{
			ID: h.DB.NewID(), Kind: kind, State: exception.Opened, SupplierID: 1, MerchantID: 1, OrderNo: "2026112000000001",
			Subject: fmt.Sprint("T", i), Amount: 1998,
			Currency: "CNY", Detail: exception.Detail(nil), Seen: 1, Version: 1, OpenedAt: h.DB.Now(), HeldRef: fmt.Sprint("held:1:T", i),
			Payload: `{"account":"1","reference":"x","trade_no":"T","amount":1998,"currency":"CNY","status":"paid"}`,
		}
		if kind == exception.DisputeOpened {
			x.HeldRef = ""
		}
		if _, err := h.DB.NewInsert().Model(&x).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, fmt.Sprint(x.ID))
	}
	ended := func() int64 {
		return number(t, h.DB,
			"SELECT (SELECT count(*) FROM exceptions WHERE state NOT IN ('open', 'assigned')) + (SELECT count(*) FROM approvals) + (SELECT count(*) FROM orders WHERE version > 2)")
	}
	before, tried, keys := ended(), 0, 0
	for _, role := range []string{access.Ops, access.Admin} {
		cookie := h.SignIn(t, role)
		bearer := webtest.BearerOf(cookie)
		for _, r := range h.Routes() {
			if r.Method != http.MethodPost || r.Audience != web.ForOperator && r.Audience != web.ForMonitor ||
				strings.HasPrefix(r.Path, "/me") {
				continue
			}
			targets := ids
			if !strings.Contains(r.Path, "xception") {
				targets = ids[:1]
			}
			for _, id := range targets {
				path := strings.NewReplacer(":order_no", "2026112000000001", ":exception", id, ":id", id, ":merchant", "m1").Replace(r.Path)
				path = regexp.MustCompile(`:[a-z_]+`).ReplaceAllString(path, id)
				for _, body := range bodies() {
					tried++
					if r.Audience == web.ForMonitor {
						h.Api(t, bearer, r.Method, path, body)
						continue
					}
					var fields map[string]any
					_ = json.Unmarshal([]byte(body), &fields)
					keys++
					form := []string{
						"form_key", fmt.Sprint(role, keys), "outcome", "refunded_elsewhere", "reference", "R1", "ignore", "",
						"to", "the.ops", "kind", fmt.Sprint(fields["action"]),
					}
					if keys%2 == 0 {
						form[7] = "1"
					}
					for name, value := range fields {
						if text, ok := value.(string); ok {
							form = append(form, name, text)
						}
					}
					params, _ := fields["params"].(map[string]any)
					for name, value := range params {
						form = append(form, name, fmt.Sprint(value), "params."+name, fmt.Sprint(value))
					}
					h.Post(t, cookie, path, form...)
				}
				if ended() != before {
					t.Fatalf("%s has decided something by %s %s", role, r.Method, path)
				}
			}
		}
	}
	if tried < 1000 {
		t.Errorf("only %d requests were tried", tried)
	}
}
