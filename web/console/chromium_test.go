package console

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"backstop/internal/base/servertest"
	"backstop/internal/base/waittest"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// chromium is the browser of all tests of this package. The first that needs one starts it, and
// each test has a context of its own in it: cookies, storage and windows of no other.
var chromium struct {
	once    sync.Once
	err     error
	ctx     context.Context // of its first tab, which no test uses
	cancel  context.CancelFunc
	process *exec.Cmd
	profile string // a folder
}

// errNoChromium skips the tests that need a browser.
var errNoChromium = errors.New(
	"no chromium on PATH: the pages are not looked at in a browser (Debian: apt-get install chromium)")

func TestMain(m *testing.M) {
	code := m.Run()
	if err := endChromium(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// startChromium starts a headless Chromium with a profile of its own.
func startChromium() (err error) {
	program := ""
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		return errNoChromium
	}
	c := &chromium
	if c.profile, err = os.MkdirTemp("", "backstop-browser-"); err != nil {
		return err
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(program), chromedp.UserDataDir(c.profile), chromedp.Env("XDG_CONFIG_HOME="+c.profile,
			"XDG_CACHE_HOME="+c.profile, "TMPDIR="+c.profile),
		chromedp.ModifyCmdFunc(func(cmd *exec.Cmd) {
			c.process, cmd.SysProcAttr = cmd, servertest.EndWithUs()
			cmd.SysProcAttr.Setpgid = true
		}),
	}
	for _, f := range []string{
		"headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
		"disable-component-update", "disable-sync", "hide-scrollbars", "disable-dev-shm-usage",
		// Eight windows that are animated would keep both cores busy.
		"force-prefers-reduced-motion",
		// Tests look at several windows at once; none is in the background.
		"disable-background-timer-throttling", "disable-backgrounding-occluded-windows", "disable-renderer-backgrounding",
	} {
		options = append(options, chromedp.Flag(f, true))
	}
	// axe runs for seconds: compile scripts at once, and collect garbage less often.
	options = append(options, chromedp.Flag("font-render-hinting", "none"),
		chromedp.Flag("js-flags", "--always-sparkplug --min-semi-space-size=64"))
	ctx, cancelAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(ctx, chromedp.WithErrorf(func(string, ...any) {})) // events newer than the library
	c.ctx, c.cancel = ctx, func() { cancel(); cancelAllocator() }
	// The first Run starts the browser, which must outlive a context of this step.
	first := make(chan error, 1)
	go func() { first <- chromedp.Run(ctx) }()
	select {
	case err := <-first:
		if err != nil {
			return fmt.Errorf("start %s: %w", program, err)
		}
	case <-time.After(2 * time.Minute):
		return fmt.Errorf("%s did not start within two minutes", program)
	}
	return nil
}

// endChromium ends what the browser left running and takes its profile away. Its helpers write for
// a moment after it is gone, and one of them makes a session of its own.
func endChromium() (err error) {
	c := &chromium
	if c.ctx != nil {
		closing, stop := context.WithTimeout(c.ctx, 5*time.Second)
		_ = chromedp.Run(closing, browser.Close())
		stop()
		c.cancel()
	}
	if c.profile == "" {
		return nil
	}
	gone := waittest.Within(time.Minute, func() bool {
		started := c.process != nil && c.process.Process != nil
		if started {
			_ = syscall.Kill(-c.process.Process.Pid, syscall.SIGKILL)
		}
		err = os.RemoveAll(c.profile)
		if err == nil && started && !errors.Is(syscall.Kill(-c.process.Process.Pid, 0), syscall.ESRCH) {
			err = errors.New("its processes still run")
		}
		return err == nil
	})
	if gone {
		return nil
	}
	return fmt.Errorf("the browser left %s behind: %w", c.profile, err)
}

// newBrowser opens a window as a browser of its own has it.
func newBrowser(t *testing.T, host string) (context.Context, *complaints) {
	t.Helper()
	if testing.Short() {
		t.Skip("short: no browser")
	}
	ctx, said, err := openWindow(t, host)
	if errors.Is(err, errNoChromium) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return ctx, said
}

// openWindow opens a window that ends with the test.
func openWindow(t *testing.T, host string) (context.Context, *complaints, error) {
	if chromium.once.Do(func() { chromium.err = startChromium() }); chromium.err != nil {
		return nil, nil, chromium.err
	}
	own := cdp.WithExecutor(chromium.ctx, chromedp.FromContext(chromium.ctx).Browser)
	id, err := target.CreateBrowserContext().Do(own)
	if err != nil {
		return nil, nil, err
	}
	t.Cleanup(func() { // with all of its pages, before their server is gone
		closing, stop := context.WithTimeout(own, 30*time.Second)
		defer stop()
		_ = target.DisposeBrowserContext(id).Do(closing)
	})
	// Without a window of its own, a new context has none to open a tab in.
	page, err := target.CreateTarget("about:blank").WithBrowserContextID(id).WithNewWindow(true).Do(own)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := chromedp.NewContext(chromium.ctx, chromedp.WithTargetID(page)) // each run in it has a limit
	t.Cleanup(cancel)
	said := &complaints{host: host}
	chromedp.ListenTarget(ctx, said.listen)
	return ctx, said, chromedp.Run(ctx, network.Enable(), log.Enable(), audits.Enable(), emulation.SetFocusEmulationEnabled(true))
}

// complaints collects what a browser says about pages.
type complaints struct {
	mu   sync.Mutex
	all  []string
	host string
}

func (c *complaints) add(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, fmt.Sprintf(format, args...))
}

// take returns what was said since the last time.
func (c *complaints) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	said := c.all
	c.all = nil
	return said
}

func (c *complaints) listen(ev any) {
	switch ev := ev.(type) {
	case *runtime.EventExceptionThrown:
		c.add("exception: %s", ev.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		c.add("console.%s", ev.Type)
	case *log.EventEntryAdded:
		c.add("log: %s", ev.Entry.Text)
	case *audits.EventIssueAdded:
		if ev.Issue.Code == audits.InspectorIssueCodeContentSecurityPolicyIssue {
			c.add("content security policy: %+v", ev.Issue.Details.ContentSecurityPolicyIssueDetails)
		}
	case *network.EventRequestWillBeSent:
		if !strings.Contains(ev.Request.URL, c.host) && !strings.HasPrefix(ev.Request.URL, "about:") &&
			!strings.HasPrefix(ev.Request.URL, "data:") {
			c.add("a request leaves: %s", ev.Request.URL)
		}
	}
}
