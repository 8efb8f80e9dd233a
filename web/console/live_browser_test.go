package console

import (
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"backstop/internal/access"
	"backstop/internal/report"
	"backstop/web/console/live"
	"backstop/web/webtest"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// relay is a cable between a browser and the server that can be cut.
type relay struct {
	to   string
	addr string
	mu   sync.Mutex
	l    net.Listener
	open map[net.Conn]bool
}

func newRelay(t *testing.T, to string) *relay {
	r := &relay{to: to, addr: "127.0.0.1:0", open: map[net.Conn]bool{}}
	r.mend(t)
	t.Cleanup(r.cut)
	return r
}

// mend makes the cable whole, under the address that it had.
func (r *relay) mend(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	r.l, r.addr = l, l.Addr().String()
	r.mu.Unlock()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go r.carry(conn)
		}
	}()
}

func (r *relay) carry(in net.Conn) {
	out, err := net.Dial("tcp", r.to)
	if err != nil {
		in.Close()
		return
	}
	r.mu.Lock()
	r.open[in], r.open[out] = true, true
	r.mu.Unlock()
	go func() {
		_, _ = io.Copy(out, in)
		out.Close()
	}()
	_, _ = io.Copy(in, out)
	in.Close()
	r.mu.Lock()
	delete(r.open, in)
	delete(r.open, out)
	r.mu.Unlock()
}

// cut breaks all connections and takes no new ones.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.l.Close()
	for conn := range r.open {
		conn.Close()
	}
}

func inState(state string) chromedp.Action {
	return becomes(`document.querySelector("[data-live]").dataset.state === ` + strconv.Quote(state))
}

func shows(text string) chromedp.Action {
	return becomes(`document.getElementById("risk").textContent.includes(` + strconv.Quote(text) + `)`)
}

// TestTheOverviewLives cuts the cable, mends it, pauses and goes on: the page
// says how old it is, catches up by itself, and keeps what the person has open.
func TestTheOverviewLives(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	h.Happen(t, func(x *report.Delta) { x.Attempt(1, report.OK, time.Millisecond) })
	if _, err := h.Operators.Add(t.Context(), "wang.min", access.Lead, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	ctx, said := newBrowser(t, "127.0.0.1")
	cable := newRelay(t, h.Addr)
	atRisk := func(cents int64) {
		h.Happen(t, func(x *report.Delta) { x.Unnotified(2, "USD", 1, cents) })
	}
	run(t, ctx, signsIn("http://"+cable.addr, "wang.min", webtest.GoodPassword, "/"), inState("live"),
		chromedp.Evaluate(`document.getElementById("outcomes-table").open = true; document.querySelector("#attention .btn").focus()`, nil))
	atRisk(4242)
	h.Happen(t, func(x *report.Delta) { x.Attempt(1, report.Failed, time.Millisecond) })
	run(t, ctx, shows("42.42"), becomes(`document.getElementById("outcomes").textContent.includes("50.00%")`),
		becomes(`document.getElementById("outcomes-table").open && document.activeElement.matches("#attention .btn")`))
	if all := said.take(); len(all) > 0 {
		t.Errorf("browser console: %s", strings.Join(all, "; "))
	}

	cable.cut()
	run(t, ctx, inState("delayed"))
	run(t, ctx, inState("offline"))
	atRisk(5858)
	cable.mend(t)
	run(t, ctx, shows("101.00"), inState("delayed")) // polling has caught up
	said.take()                                      // of the cut itself

	run(t, ctx, press("p"), inState("paused"))
	var asked atomic.Int64
	chromedp.ListenTarget(ctx, func(ev any) {
		if _, ok := ev.(*network.EventRequestWillBeSent); ok {
			asked.Add(1)
		}
	})
	atRisk(100)
	quiet(t, 3*live.Every)
	if n := asked.Load(); n != 0 {
		t.Errorf("a paused page made %d requests", n)
	}
	run(t, ctx, shows("101.00"))
	run(t, ctx, press("p"), inState("live"), shows("102.00"))
	if all := said.take(); len(all) > 0 {
		t.Errorf("browser console: %s", strings.Join(all, "; "))
	}
}

// quiet lets a time pass in which nothing may happen.
func quiet(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// TestNothingSaysLiveWithoutScripts reads the overview and a list with scripts off:
// they say of when they are, and offer nothing that only a script can do.
func TestNothingSaysLiveWithoutScripts(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	if _, err := h.Operators.Add(t.Context(), "wang.min", access.Lead, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	ctx, _ := newBrowser(t, h.Addr)
	base := "http://" + h.Addr
	heads := func(path string) (text string) {
		t.Helper()
		run(t, ctx, chromedp.Navigate(base+path), chromedp.WaitReady("main"), chromedp.Text(".page-head", &text, chromedp.ByQuery))
		return text
	}
	alive := regexp.MustCompile(`(?i)\blive\b|updated`)
	asOf := regexp.MustCompile(`as of\s+\d\d:\d\d:\d\d`)
	run(t, ctx, emulation.SetScriptExecutionDisabled(true), signsIn(base, "wang.min", webtest.GoodPassword, "/"))
	for _, path := range []string{"/?lang=en", "/orders?lang=en", "/exceptions?lang=en"} {
		if text := heads(path); !asOf.MatchString(text) || alive.MatchString(text) || strings.Contains(text, "Pause") {
			t.Errorf("%s without scripts shows %q", path, text)
		}
	}
	run(t, ctx, emulation.SetScriptExecutionDisabled(false), chromedp.Navigate(base+"/?lang=en"), inState("live"))
	var text string
	run(t, ctx, chromedp.Text(".page-head", &text, chromedp.ByQuery))
	if strings.Contains(text, "as of") || !strings.Contains(text, "Live · updated") || !strings.Contains(text, "Pause") {
		t.Errorf("with scripts it shows %q", text)
	}
}

// The columns of the overview's chart say their values under the pointer and by the arrow keys,
// and Enter leads to their rows.
func TestTheChartOfOutcomesIsReadByKeyboard(t *testing.T) {
	t.Parallel()
	h := open(t)
	seed(t, h.DB)
	h.Happen(t, func(x *report.Delta) {
		x.Attempt(1, report.OK, time.Millisecond)
		x.Attempt(1, report.Failed, time.Millisecond)
	})
	if _, err := h.Operators.Add(t.Context(), "wang.min", access.Lead, webtest.GoodPassword); err != nil {
		t.Fatal(err)
	}
	ctx, said := newBrowser(t, h.Addr)
	base := "http://" + h.Addr
	run(t, ctx, signsIn(base, "wang.min", webtest.GoodPassword, "/"), chromedp.Navigate(base+"/?lang=en&range=24h"), inState("live"),
		chromedp.Evaluate(`document.querySelector("#outcomes svg.chart").scrollIntoView({ block: "center", behavior: "instant" })`, nil),
		chromedp.Focus("#outcomes svg.chart[tabindex]", chromedp.ByQuery),
		// Values go away when the page moves, which it says with the next picture.
		chromedp.Evaluate(`requestAnimationFrame(() => requestAnimationFrame(() => document.body.dataset.still = "1"))`, nil),
		becomes(`document.body.dataset.still === "1"`))
	said.take()
	var text string
	for range 2 { // from the last column, which may have begun just now
		run(t, ctx, chromedp.KeyEvent(kb.ArrowLeft), becomes(`!!document.querySelector("output.tip:not([hidden])")`),
			chromedp.Text("output.tip", &text, chromedp.ByQuery))
		if strings.Contains(text, "attempts: 1 delivered · 0 retried · 1 failed") {
			break
		}
	}
	if !strings.Contains(text, "attempts: 1 delivered · 0 retried · 1 failed") {
		t.Errorf("the column reads %q", text)
	}
	run(t, ctx, chromedp.KeyEvent(kb.Enter),
		becomes(`location.pathname === "/notifications" && ["from", "to"].every(name => new URLSearchParams(location.search).get(name))`))
	if all := said.take(); len(all) > 0 {
		t.Errorf("browser console: %s", strings.Join(all, "; "))
	}
}
