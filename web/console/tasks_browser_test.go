package console

import (
	"strings"
	"testing"

	"backstop/internal/access"

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

// What finance looks for at the end of a month and after a bad one: each is a few clicks from the
// first page, and the page says what it is about.
func TestTheTasksOfFinanceTakeFewSteps(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	do, looks, fine, end := h.onBrowserAs(t, access.Finance, 1440)
	for name, task := range map[string]struct {
		steps []chromedp.Action
		says  []string
	}{
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
	} {
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
