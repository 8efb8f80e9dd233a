package alert

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/exception"
)

// People get a text and programs get JSON about the same alerts; both say where the runbook is.
func TestATargetGetsTheFormThatItReads(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 6, 3, 11, 0, time.UTC).UnixMicro()
	s := Style{
		Language: "zh", Zone: time.FixedZone("CST", 8*3600), Console: "https://console.example/",
		Runbook: func(rule string) string { return "/runbook#" + rule },
	}
	alerts := []Alert{
		{Rule: QueueLength, Subject: "notify", State: Firing, Value: 1500, Count: 1, OpenedAt: at},
		{Rule: QueueLength, Subject: "timeout", State: Resolved, Value: 3, Count: 1, OpenedAt: at},
	}
	_, body := s.message("slack-1", Rule{Name: QueueLength, Fire: 1000}, alerts)
	for _, want := range []string{"14:03:11 CST ", "https://console.example/\n", "处置手册：https://console.example/runbook#" + QueueLength} {
		if !strings.Contains(body, want) {
			t.Errorf("%q is missing in %q", want, body)
		}
	}
	_, body = s.message("json+https-1", Rule{Name: QueueLength, Fire: 1000}, alerts)
	const want = `{"alert":"queue_length","subject":"notify","state":"firing","since":"2026-11-22T06:03:11Z","count":1,` +
		`"text":{"en":"a queue is too long: notify: now 1500, limit 1000","zh":"队列过长：notify：当前 1500，阈值 1000"},` +
		`"url":"https://console.example/","runbook_url":"https://console.example/runbook#queue_length"}`
	if !strings.HasPrefix(body, `{"alerts":[`+want+`,{"alert":"queue_length","subject":"timeout","state":"resolved",`) {
		t.Errorf("it is\n%s\nwant\n%s", body, want)
	}
	_, body = s.message("json+https-1", Rule{Name: ExceptionOpened}, []Alert{
		{Rule: ExceptionOpened, Subject: exception.LatePayment, State: Happened, Count: 2, OpenedAt: at},
	})
	var p Payload
	if err := json.Unmarshal([]byte(body), &p); err != nil || p.Alerts[0].Count != 2 || !strings.Contains(p.Alerts[0].Text.EN, "2 late payments") ||
		!strings.Contains(p.Alerts[0].Text.ZH, "2 笔关单后到账") {
		t.Errorf("%s, %v", body, err)
	}
}

func TestAnnouncementsAreWrittenForEachTarget(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		a := opened(d, Alert{Rule: BreakerOpened, Subject: "m1", State: Happened, Count: 1})
		now := d.Now()
		a.AnnounceAt = &now
		if _, err := d.NewInsert().Model(a).Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if ids, err := Announce(t.Context(), d, []string{"slack-1", "json+http-1"}, Style{Zone: time.UTC, Language: "en"}); err != nil || len(ids) != 2 {
			t.Fatalf("%d messages, %v", len(ids), err)
		}
		rows, err := Messages(t.Context(), d, 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range rows {
			if isJSON := json.Valid([]byte(m.Body)); isJSON != strings.HasPrefix(m.Target, JSONPrefix) {
				t.Errorf("%s gets %q", m.Target, m.Body)
			}
		}
	})
}
