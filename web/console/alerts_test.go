package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/alert"
	"backstop/internal/audit"
	"backstop/internal/base/money"
	"backstop/web/webtest"
)

// ring makes alerts of every state and messages of every status, and two targets.
func (h *harness) ring(t *testing.T) {
	t.Helper()
	now := h.DB.Now()
	resolved, next, later := now-60_000_000, now+30_000_000, now+3_600_000_000
	rows := []alert.Alert{
		{
			ID: 1, Rule: alert.QueueLength, Subject: "notify_retry", State: alert.Firing, Value: 4210, Count: 1, OpenedAt: now - 300_000_000,
			UpdatedAt: now,
		},
		{
			ID: 2, Rule: alert.SuccessRate, Subject: "all", State: alert.Resolved, Value: 8123, Count: 1, OpenedAt: now - 900_000_000,
			UpdatedAt: now, ResolvedAt: &resolved,
		},
		{
			ID: 3, Rule: alert.ExceptionOpened, Subject: "late_payment" + webtest.Hostile, State: alert.Happened, Count: 12,
			OpenedAt: now - 30_000_000, UpdatedAt: now,
		},
		{
			ID: 4, Rule: alert.OurFault, Subject: "locked", State: alert.Firing, Value: 1200, Count: 1, OpenedAt: now - 20_000_000,
			UpdatedAt: now,
			Sums:      money.Totals{{Currency: "CNY", Minor: 23988}},
		},
		{
			ID: 5, Rule: alert.NodesDiffer, Subject: "ranges", State: alert.Firing, Value: 100, Count: 1, OpenedAt: now - 20_000_000,
			UpdatedAt: now,
		},
		{
			ID: 6, Rule: alert.WrongKey, Subject: "pay-2", State: alert.Firing, Value: 100, Count: 1, OpenedAt: now - 20_000_000,
			UpdatedAt: now,
		},
	}
	if _, err := h.DB.NewInsert().Model(&rows).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	incidents := []alert.Incident{
		{
			ID: 1, Rule: alert.QueueLength, Subject: "notify_retry", State: alert.Open, Firings: 3, Value: 4210, OpenedAt: now - 900_000_000,
			FiredAt: now - 300_000_000, Version: 1,
		},
		{
			ID: 2, Rule: alert.SuccessRate, Subject: "all", State: alert.Over, Firings: 1, Value: 8123, OpenedAt: now - 900_000_000,
			FiredAt: now - 900_000_000, OverAt: &resolved, ClearedAt: &resolved, Version: 2,
		},
		{
			ID: 4, Rule: alert.OurFault, Subject: "locked", State: alert.Open, Firings: 1, Value: 1200,
			Sums: money.Totals{{Currency: "CNY", Minor: 23988}}, OpenedAt: now - 20_000_000, FiredAt: now - 20_000_000, Version: 1,
		},
		{
			ID: 5, Rule: alert.NodesDiffer, Subject: "ranges", State: alert.Acknowledged, Assignee: "wang.min", Firings: 1, Value: 100,
			OpenedAt: now - 20_000_000, FiredAt: now - 20_000_000, Version: 2,
		},
		{
			ID: 6, Rule: alert.WrongKey, Subject: "pay-2", State: alert.Snoozed, SnoozedUntil: &later, Firings: 1, Value: 100,
			OpenedAt: now - 20_000_000, FiredAt: now - 20_000_000, Version: 2,
		},
		{
			ID: 7, Rule: alert.BatchStopped, Subject: "B12: " + webtest.Hostile, State: alert.Open, Firings: 1,
			Sums: money.Totals{{Currency: "CNY", Minor: 99}, {Currency: "JPY", Minor: 1_000_000}}, OpenedAt: now - 20_000_000,
			FiredAt: now - 20_000_000, Version: 1,
		},
	}
	if _, err := h.DB.NewInsert().Model(&incidents).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	events := []alert.IncidentEvent{
		{ID: 1, IncidentID: 1, Kind: alert.EventNotified, Detail: "telegram-a1b2c3", At: now - 290_000_000},
		{
			ID: 2, IncidentID: 1, Kind: alert.EventAssigned, Actor: "li.hang", Detail: "wang.min", Reason: "night shift " + webtest.Hostile,
			At: now - 200_000_000,
		},
	}
	if _, err := h.DB.NewInsert().Model(&events).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := h.DB.NewRaw("UPDATE alerts SET incident_id = id WHERE rule <> ?", alert.ExceptionOpened).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	messages := []alert.Message{
		{
			ID: 1, Target: "telegram-a1b2c3", Title: "Backstop: 队列过长", Body: "notify_retry", Status: alert.Waiting, Attempts: 3, NextAt: &next,
			LastError: "no answer in time", CreatedAt: now - 290_000_000,
		},
		{
			ID: 2, Target: "slack-0f0f0f", Title: "Backstop: 队列过长", Body: "notify_retry", Status: alert.Sent, Attempts: 1,
			CreatedAt: now - 290_000_000, FinishedAt: &now,
		},
		{
			ID: 3, Target: "smtp-777777", Title: "Backstop: 新的异常", Body: "x", Status: alert.Failed, Attempts: 11,
			LastError: "550 mailbox unavailable", CreatedAt: now - 30_000_000, FinishedAt: &now,
		},
	}
	if _, err := h.DB.NewInsert().Model(&messages).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.Alerts = func() ([]string, alert.Style) {
		return []string{"telegram-a1b2c3", "slack-0f0f0f"}, alert.Style{Language: "en", Zone: time.UTC, Console: "https://pay.example"}
	}
}

func TestAlertsAreShownToThoseWhoseWorkTheyAre(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.ring(t)
	admin := h.SignIn(t, access.Admin)
	for lang, phrases := range map[string][]string{
		"zh": {
			"队列过长", "告警中", "81.23 %", "4210", "已放弃", "550 mailbox unavailable", "低于 95.00 %", "发送测试告警", "修改", "密钥无法解开",
			"12 · ¥239.88 CNY", "节点之间配置不一致",
		},
		"en": {
			"a queue is too long", "Firing", "81.23 %", "4210", "Given up", "550 mailbox unavailable", "below 95.00 %",
			"Send a test alert", "Change", "secrets do not open", "BACKSTOP_NOTIFY_ALLOW_CIDRS", "does not have the master key in use",
		},
	} {
		got := h.Page(t, admin, "/alerts?lang="+lang)
		for _, phrase := range phrases {
			if got.Status != http.StatusOK || !strings.Contains(got.Body, phrase) {
				t.Errorf("%s: %d without %q", lang, got.Status, phrase)
			}
		}
		if strings.Contains(got.Body, "<img src=x") || strings.Contains(got.Body, "<script>alert") {
			t.Errorf("%s: something of outside is not text", lang)
		}
	}
	auditor := h.Page(t, h.SignIn(t, access.Auditor), "/alerts?lang=en&rule=queue_length").Body
	if !strings.Contains(auditor, "4210") || strings.Contains(auditor, "Send a test alert") ||
		strings.Contains(auditor, `action="/alerts/rules`) {
		t.Error("an auditor reads and does nothing else")
	}
	if got := h.Page(t, admin, "/alerts?state=resolved&lang=en").Body; !strings.Contains(got, "81.23 %") || strings.Contains(got, "4210") {
		t.Error("the filter by state has no effect")
	}
}

// send posts a form of the page with its key and a reason.
func (h *harness) sendAlertForm(t *testing.T, cookie, page, path string, fields ...string) webtest.Answer {
	t.Helper()
	form := append(formOf(t, h.Page(t, cookie, page).Body, path), "reason", "as agreed on the phone")
	return h.Post(t, cookie, path, append(form, fields...)...)
}

func TestARuleIsChangedOnceAndOnTheRecord(t *testing.T) {
	t.Parallel()
	h := open(t)
	admin := h.SignIn(t, access.Admin)
	const page, path = "/alerts?rule=success_rate", "/alerts/rules/success_rate"
	if !strings.Contains(h.Page(t, admin, page).Body, `value="95"`) {
		t.Error("the form does not show the current limit")
	}
	got := h.sendAlertForm(t, admin, page, path, "enabled", "yes", "fire", "90.5", "clear", "93", "window", "600", "hold", "30", "quiet",
		"300")
	if got.Status != http.StatusSeeOther || !strings.HasPrefix(got.Header.Get("Location"), "/alerts?form=") {
		t.Fatalf("change: %d %s", got.Status, got.Body)
	}
	rules, err := alert.Rules(t.Context(), h.DB.Read)
	if err != nil {
		t.Fatal(err)
	}
	if r := rules[1]; r.Fire != 9050 || r.Clear != 9300 || r.WindowS != 600 || r.HoldS != 30 || !r.Enabled {
		t.Errorf("stored as %+v", r)
	}
	acts, err := audit.List(t.Context(), h.DB.Read, audit.Query{Object: "alert_rule", Limit: 5})
	if err != nil || len(acts) != 1 {
		t.Fatalf("%d acts on the record, %v", len(acts), err)
	}
	if a := acts[0]; a.ObjectID != "success_rate" || a.Actor != "operator:the.admin" || !strings.Contains(a.Params, `"fire":[9500,9050]`) ||
		strings.Contains(a.Params, "hold_s") {
		t.Errorf("on the record: %+v", a)
	}
	for _, wrong := range [][]string{
		{"fire", "90", "clear", "80"},
		{"fire", "-1", "clear", "93"},
		{"fire", "90", "clear", "93", "window", "61"},
		{"fire", "90", "clear", "93", "hold", "x"},
		{"fire", "NaN", "clear", "93"},
		{"fire", "90", "clear", "93", "window", "7200"},
	} {
		got := h.sendAlertForm(t, admin, page, path, append([]string{"enabled", "yes"}, wrong...)...)
		if got.Status != http.StatusUnprocessableEntity || !strings.Contains(got.Body, `action="/alerts/rules/success_rate"`) {
			t.Errorf("%v: %d", wrong, got.Status)
		}
		for _, attribute := range []string{` type="number"`, ` min="0"`, ` step="any"`, ` required`} {
			if !strings.Contains(inputTag(got.Body, "fire"), attribute) {
				t.Errorf("%v: the field has no%s", wrong, attribute)
			}
		}
		if typed(got.Body, "fire") != wrong[1] ||
			!strings.Contains(got.Body, ">as agreed on the phone</textarea>") {
			t.Errorf("%v: the typed values are lost", wrong)
		}
	}
	if got := h.Post(t, h.SignIn(t, access.Ops), path, "fire", "1"); got.Status != http.StatusForbidden {
		t.Errorf("ops change a rule: %d", got.Status)
	}
}

func TestATestAlertGoesToEveryTarget(t *testing.T) {
	t.Parallel()
	h := open(t)
	ops := h.SignIn(t, access.Ops)
	if got := h.Post(t, ops, "/alerts/test", "form_key", "k", "reason", "is anybody there"); got.Status != http.StatusConflict {
		t.Errorf("without targets: %d", got.Status)
	}
	h.ring(t)
	form := append(formOf(t, h.Page(t, ops, "/alerts").Body, "/alerts/test"), "reason", "is anybody there")
	for range 2 {
		if got := h.Post(t, ops, "/alerts/test", form...); got.Status != http.StatusSeeOther {
			t.Fatalf("test: %d %s", got.Status, got.Body)
		}
	}
	messages, err := alert.Messages(t.Context(), h.DB.Read, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, m := range messages {
		if m.Title == "Backstop: a test alert" && m.Status == alert.Waiting && strings.Contains(m.Body, "the.ops") &&
			strings.HasSuffix(m.Body, "https://pay.example/alerts") {
			told = append(told, m.Target)
		}
	}
	if fmt.Sprint(told) != "[slack-0f0f0f telegram-a1b2c3]" {
		t.Errorf("sent %v: one form must send one test to every target", told)
	}
}

// A message that was given up is sent again by those who may test alerts, once per form.
func TestAnAlertMessageIsSentAgainFromItsPage(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.ring(t)
	const path = "/alerts/messages/3/resend"
	ops := h.SignIn(t, access.Ops)
	page := h.Page(t, ops, "/alerts?lang=zh").Body
	if !strings.Contains(page, "重新发送") || strings.Contains(page, "/alerts/messages/1/resend") ||
		strings.Contains(page, "/alerts/messages/2/resend") {
		t.Error("what was given up is offered, and nothing else")
	}
	auditor := h.SignIn(t, access.Auditor)
	if strings.Contains(h.Page(t, auditor, "/alerts").Body, path) {
		t.Error("an auditor is offered to send")
	}
	form := append(formOf(t, h.Page(t, ops, "/alerts").Body, path), "reason", "the mailbox is there again")
	if got := h.Post(t, auditor, path, form...); got.Status != http.StatusForbidden {
		t.Errorf("by an auditor: %d", got.Status)
	}
	for range 2 {
		got := h.Post(t, ops, path, form...)
		if got.Status != http.StatusSeeOther {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
		if page := h.Page(t, ops, got.Header.Get("Location")+"&lang=en").Body; !strings.Contains(page, "It is sent again within seconds") {
			t.Error("the page does not say what came of it")
		}
	}
	if n := number(t, h.DB,
		"SELECT count(*) FROM compensations WHERE kind = 'resend' AND subject_kind = 'alert_message' AND subject_id = 3 AND state = 'waiting'"); n != 1 {
		t.Errorf("%d compensations", n)
	}
	for id, want := range map[string]int{"2": http.StatusConflict, "99": http.StatusNotFound, "x": http.StatusNotFound} {
		if got := h.Post(t, ops, "/alerts/messages/"+id+"/resend", "form_key", "k"+id, "reason",
			"the mailbox is there again"); got.Status != want {
			t.Errorf("message %s: %d", id, got.Status)
		}
	}
}

// No address makes a page say what was not done.
func TestAnAddressAloneClaimsNothing(t *testing.T) {
	t.Parallel()
	h := open(t)
	admin := h.SignIn(t, access.Admin)
	got := h.sendAlertForm(t, admin, "/alerts?rule=success_rate", "/alerts/rules/success_rate", "enabled", "yes", "fire", "90.5", "clear",
		"93", "window", "600", "hold", "30", "quiet", "300")
	const said = "The rule was saved"
	if page := h.Page(t, admin, got.Header.Get("Location")+"&lang=en").Body; !strings.Contains(page, said) {
		t.Error("the page does not report that the rule was saved")
	}
	for _, path := range []string{"/alerts?done=rule&lang=en", "/alerts?form=k1&lang=en"} {
		if page := h.Page(t, admin, path).Body; strings.Contains(page, said) {
			t.Errorf("%s reports that a rule was saved", path)
		}
	}
}
