package console

import (
	"encoding/json"
	"strings"
	"testing"

	"backstop/internal/access"
	"backstop/internal/breaker"
	"backstop/internal/recipient"
	"backstop/internal/report"
	"backstop/internal/sweep"
	"backstop/web/webtest"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// onward clicks what leads to a page and waits for it.
func onward(selector, path string) chromedp.Action {
	return chromedp.Tasks{chromedp.WaitVisible(selector, chromedp.ByQuery), chromedp.Click(selector, chromedp.ByQuery), at(path), becomes(whole)}
}

// A lead approves all proposals that wait from the first page, in five steps: a page, all boxes, the
// dry run, the amount with the reason, and the results.
func TestWaitingProposalsAreApprovedTogetherInABrowser(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	change(t, h.DB, "DELETE FROM approvals")
	h.adjusts(t, h.SignIn(t, access.Finance), 25, 100)
	do, looks, fine, end := h.onBrowserAs(t, access.Lead, 1440)
	looks("en", "light", "/")
	k := &byKeyboard{do: do}
	k.step(t, onward(`#attention a[href="/approvals#yours"]`, "/approvals"))
	k.step(t, chromedp.Click("input[data-all]", chromedp.ByQuery))
	k.step(t, onward("#approve-picked", "/approvals/many"))
	fine("approve-many-dry-run")
	var typed string
	const amount = `form[action="/approvals/many"] input[data-typed]`
	k.step(t, chromedp.AttributeValue(amount, "data-typed", &typed, nil, chromedp.ByQuery))
	do(chromedp.SendKeys(amount, typed, chromedp.ByQuery), chromedp.SendKeys("#approve-reason", "compared with the statement", chromedp.ByQuery))
	k.step(t, chromedp.Click(`form[action="/approvals/many"] button.primary`, chromedp.ByQuery),
		becomes(`location.search.includes("form=") && `+whole))
	fine("approve-many-results")
	if n := number(t, h.DB, "SELECT count(*) FROM approvals WHERE state = 'done'"); n != 25 || k.steps != 5 {
		t.Errorf("%d are done in %d steps", n, k.steps)
	}
	h.balanced(t)
	end()
}

// taskSteps are the steps of a task from the first page, and what its last page says.
type taskSteps struct {
	steps []chromedp.Action
	says  []string
}

// tasks has somebody of a role do tasks of a day: each is a few clicks from the first page, and the page says
// what it is about.
func (h *harness) tasks(t *testing.T, role string, all map[string]taskSteps) {
	t.Helper()
	do, looks, fine, end := h.onBrowserAs(t, role, 1440)
	for name, task := range all {
		looks("en", "light", "/")
		for _, step := range task.steps {
			do(step)
		}
		var page string
		do(chromedp.Text("main", &page, chromedp.ByQuery))
		for _, text := range task.says {
			if !strings.Contains(page, text) {
				t.Errorf("%s: the page reads %q, without %q", name, page, text)
			}
		}
		fine(strings.ReplaceAll(name, " ", "-"))
	}
	end()
}

// What finance looks for at the end of a month and after a bad one.
func TestTheTasksOfFinanceTakeFewSteps(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	h.tasks(t, access.Finance, map[string]taskSteps{
		"statement of a month": {
			[]chromedp.Action{
				onward(`nav a[href="/accounts"]`, "/accounts"), onward(`a[href="/statements"]`, "/statements"),
				onward(`main a[href*="/merchants/m1/statement?"]`, "/merchants/m1/statement"),
			},
			[]string{"Opening balance", "Closing balance", "Payments", "Fees", "Refunds", "Payouts", "Disputes"},
		},
		"a payout that came back": {
			[]chromedp.Action{
				onward(`nav a[href="/orders"]`, "/orders"), onward(`a[href="/payouts"]`, "/payouts"), onward(`main a[href="/payouts/P7802"]`, "/payouts/P7802"),
			},
			[]string{"P7802", "Reversed"},
		},
		"a refund in part": {
			[]chromedp.Action{
				onward(`nav a[href="/orders"]`, "/orders"), onward(`a[href="/refunds"]`, "/refunds"), onward(`main a[href="/refunds/R7101"]`, "/refunds/R7101"),
			},
			[]string{"R7101"},
		},
		"a dispute and its deadline": {
			[]chromedp.Action{
				onward(`nav a[href="/orders"]`, "/orders"), onward(`a[href="/disputes"]`, "/disputes"), onward(`main a[href="/disputes/D7401"]`, "/disputes/D7401"),
			},
			[]string{"D7401", "Evidence"},
		},
	})
}

// What operations look for in the morning: what the night's sweep found, and since when a supplier fails.
func TestTheTasksOfOperationsTakeFewSteps(t *testing.T) {
	t.Parallel()
	h := open(t)
	seedSupplier(t, h.DB)
	now := h.DB.Now()
	if _, err := h.DB.NewInsert().Model(&breaker.Row{
		OwnerID: 2, OwnerKind: recipient.OfSupplier(2).Kind, State: breaker.Open, Cause: breaker.InARow, ChangedAt: now, UpdatedAt: now,
	}).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	differences, err := json.Marshal([]sweep.Difference{sweep.DifferingMoney(
		[]report.Difference{{Currency: "CNY", Orders: 3, Amount: 12840, Counted: 4, CountedM: 17840}}, true, func(int64) string { return "m1" })})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.DB.NewInsert().Model(&sweep.Sweep{
		ID: h.DB.NewID(), Night: sweep.Number(h.DB.NowTime().In(h.Config.Timezone)), BeganAt: now - 60_000_000, EndedAt: &now, By: sweep.Clock,
		State: sweep.Done, LookedAt: 4711, PushedText: []byte(`[{"what":"deliveries","count":7}]`), DifferText: differences,
	}).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.ReadSettings(t)
	h.tasks(t, access.Ops, map[string]taskSteps{
		"which supplier and since when": {
			[]chromedp.Action{onward(`nav a[href="/suppliers"]`, "/suppliers"), onward(`main a[href="/suppliers/quick"]`, "/suppliers/quick")},
			[]string{"Breaker open since " + h.DB.NowTime().In(h.Config.Timezone).Format("15:04")},
		},
		"the night's sweep": {
			[]chromedp.Action{onward(`nav.side a[title="System"]`, "/queues"), onward(`a[href="/sweeps"]`, "/sweeps")},
			[]string{
				"4,711", "Notifications: 7",
				"Money not notified: 1 figures differed and were corrected; merchant m1: 3 orders, 128.40 CNY by the rows, 4 orders, 178.40 CNY",
			},
		},
	})
}

// The first hour: whoever installed the program signs in with the one-time password, chooses their own, is led to
// the first colleague, and has the first notification delivered, in seven steps.
func TestTheFirstHourInABrowser(t *testing.T) {
	t.Parallel()
	h := open(t)
	oneTime, err := h.Operators.Add(t.Context(), "ada", access.Admin, "")
	if err != nil {
		t.Fatal(err)
	}
	change(t, h.DB, "DELETE FROM merchants")
	ctx, said := newBrowser(t, h.Addr)
	base := "http://" + h.Addr
	k := &byKeyboard{do: func(all ...chromedp.Action) { t.Helper(); run(t, ctx, all...) }}
	sends := func(action string, then ...chromedp.Action) chromedp.Tasks {
		button := `form[action="` + action + `"] button`
		return append(chromedp.Tasks{chromedp.WaitVisible(button, chromedp.ByQuery), chromedp.Click(button, chromedp.ByQuery)}, then...)
	}
	k.step(t, emulation.SetDeviceMetricsOverride(1440, 900, 1, false), chromedp.Navigate(base+"/login?lang=en"), chromedp.WaitReady("#password"),
		chromedp.SendKeys("#name", "ada"), chromedp.SendKeys("#password", oneTime+"\r"), at("/me"))
	k.step(t, chromedp.SendKeys("#old", oneTime, chromedp.ByQuery), chromedp.SendKeys("#new", webtest.GoodPassword, chromedp.ByQuery),
		chromedp.SendKeys("#again", webtest.GoodPassword+"\r", chromedp.ByQuery), at("/operators"))
	k.step(t, onward(`nav.side a[href="/"]`, "/"))
	k.step(t, sends("/guide/sandbox", chromedp.WaitVisible("#key-title")))
	k.step(t, sends("/guide/order", at("/guide"), chromedp.WaitReady(`form[action="/guide/callback"]`)))
	k.step(t, sends("/guide/callback", becomes("location.pathname.startsWith('/orders/')"), inState("live")))
	change(t, h.DB, "UPDATE orders SET status = 'paid', version = version + 1, paid_amount = amount, paid_at = ?, next_at = NULL", h.DB.Now())
	change(t, h.DB, "INSERT INTO deliveries (id, event_id, recipient_id, subject_id, event_type, channel, url, status, attempts, created_at,"+
		" finished_at) SELECT id + 50, id + 51, merchant_id, id, 'order.paid', 'webhook', '', 'delivered', 1, ?0, ?0 FROM orders", h.DB.Now())
	k.step(t, says("h1", "Delivered"))
	if k.steps > 7 {
		t.Errorf("it takes %d steps", k.steps)
	}
	if found := violations(t, ctx); len(found) > 0 {
		t.Errorf("the story: %s", strings.Join(found, "; "))
	}
	if all := said.take(); len(all) > 0 {
		t.Errorf("the browser said: %s", strings.Join(all, "; "))
	}
}
