package console

import (
	"net/http"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/sweep"
)

func TestASweepIsBegunFromItsPage(t *testing.T) {
	t.Parallel()
	h := open(t)
	ops := h.SignIn(t, access.Ops)
	page := h.Page(t, ops, "/sweeps?lang=en").Body
	if !strings.Contains(page, "No sweep yet") || strings.Contains(page, `hx-trigger`) {
		t.Error("the page without any sweep")
	}
	form := formOf(t, page, "/sweeps/run")
	if got := h.Post(t, ops, "/sweeps/run", append(form, "reason", "why")...); got.Status != http.StatusUnprocessableEntity {
		t.Errorf("a short reason: %d", got.Status)
	}
	for range 2 { // a form acts once
		if got := h.Post(t, ops, "/sweeps/run", append(form, "reason", "the night was lost")...); got.Status != http.StatusSeeOther ||
			!strings.HasPrefix(got.Header.Get("Location"), "/sweeps?form=") {
			t.Fatalf("%d to %s", got.Status, got.Header.Get("Location"))
		}
	}
	var n int
	if err := h.DB.NewRaw("SELECT count(*) FROM sweeps").Scan(t.Context(), &n); err != nil || n != 1 {
		t.Errorf("%d sweeps, %v", n, err)
	}
	running := h.Page(t, ops, "/sweeps?lang=en").Body
	if !strings.Contains(running, "Running now") || !strings.Contains(running, `hx-trigger="every 2s"`) ||
		strings.Contains(running, `action="/sweeps/run"`) {
		t.Error("the page while one runs")
	}
	if got := h.Post(t, ops, "/sweeps/run", "form_key", "another", "reason", "the night was lost"); got.Status != http.StatusConflict {
		t.Errorf("a second one: %d", got.Status)
	}
	today := sweep.Number(h.DB.NowTime().In(h.Config.Timezone))
	_, err := h.DB.NewRaw(
		"UPDATE sweeps SET state = 'done', ended_at = began_at + 90000000, looked_at = 12345, night = ?, pushed = ?, differences = ?",
		today,
		`[{"what":"orders","count":31}]`, `[{"what":"I5","detail":"stock <b>adds</b> up: 1 violations"},`+
			`{"what":"I4","detail":"x","said":[{"code":"sweep.violations","args":["2"]},{"code":"sweep.account","args":["merchant:m1 CNY"]}]},`+
			`{"what":"untold","detail":"x","said":[{"code":"sweep.corrected","args":["1"]},`+
			`{"code":"sweep.money","args":["m1","3","128.40 CNY","4","178.40 CNY"]}]}]`).Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for language, want := range map[string][]string{
		"en": {
			"12,345", "Orders paying or closing: 31", "stock &lt;b&gt;adds&lt;/b&gt; up", "1 m 30 s", "Done",
			"the ledger adds up</b>: 2 violations; account merchant:m1 CNY",
			"1 figures differed and were corrected; merchant m1: 3 orders, 128.40 CNY by the rows, 4 orders, 178.40 CNY by the counter",
		},
		"zh": {
			"12,345", "支付中或关单中的订单：31", "已完成", "立即扫描", "账目平衡</b>：2 处不符；账户 merchant:m1 CNY",
			"1 项统计与记录不符，已更正；商户 m1：按记录 3 笔、128.40 CNY，按统计 4 笔、178.40 CNY",
		},
	} {
		page := h.Page(t, ops, "/sweeps?lang="+language).Body
		for _, w := range want {
			if !strings.Contains(page, w) {
				t.Errorf("%s: the page lacks %q", language, w)
			}
		}
	}
	viewer := h.SignIn(t, access.Viewer)
	if page := h.Page(t, viewer, "/sweeps").Body; strings.Contains(page, "/sweeps/run") {
		t.Error("a viewer is offered to begin one")
	}
	if got := h.Post(t, viewer, "/sweeps/run", "form_key", "v", "reason", "the night was lost"); got.Status != http.StatusForbidden {
		t.Errorf("a viewer begins one: %d", got.Status)
	}
}
