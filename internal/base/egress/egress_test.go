package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// canary is a listener on loopback that counts its connections.
type canary struct {
	*httptest.Server
	hits atomic.Int64
	port string
}

func newCanary(t *testing.T, start func(http.Handler) *httptest.Server) *canary {
	t.Helper()
	c := &canary{}
	c.Server = start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, "http://169.254.169.254/latest/", http.StatusFound)
		}
	}))
	c.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			c.hits.Add(1)
		}
	}
	_, c.port, _ = net.SplitHostPort(c.Listener.Addr().String())
	t.Cleanup(c.Close)
	return c
}

func discardLog() *log.Logger { return log.New(io.Discard, "", 0) }

func plainServer(h http.Handler) *httptest.Server { return httptest.NewUnstartedServer(h) }

func newPlainCanary(t *testing.T) *canary {
	c := newCanary(t, plainServer)
	c.Start()
	return c
}

// get makes one request and closes the answer's body.
func get(t *testing.T, c *Client, url string) (*http.Response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.RoundTrip(req)
	if err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	return resp, err
}

func newClient(t *testing.T, config Config) *Client {
	c := New(config)
	t.Cleanup(c.Close)
	return c
}

// within returns a random address of a block.
func within(random *rand.Rand, p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(b)*8; bit++ {
		b[bit/8] |= byte(random.IntN(2)) << (7 - bit%8)
	}
	addr, _ := netip.AddrFromSlice(b)
	return addr
}

// The names below point at every hostile address; the canary would see anything that reached
// its port on 127.0.0.1, ::1 or 0.0.0.0.
func TestNoHostileURLReachesTheCanary(t *testing.T) {
	t.Parallel()
	c := newPlainCanary(t)
	dns := newFakeDNS(t)
	client := newClient(t, Config{Resolver: dns.resolver()})
	// A fixed seed: a failure prints the address and can be reproduced.
	random := rand.New(rand.NewPCG(1, 2))
	hosts := slices.Clone(hostileAddrs)
	for _, s := range specials {
		for range 10 {
			hosts = append(hosts, within(random, s.prefix).String())
		}
	}
	tried := 0
	try := func(url string) {
		tried++
		if _, err := get(t, client, url); err == nil {
			t.Errorf("%s was answered", url)
		}
	}
	for i, text := range hosts {
		addr := netip.MustParseAddr(text)
		name := fmt.Sprintf("h%d.test", i)
		dns.point(name+".", addr.WithZone("").String())
		host := text
		if addr.Is6() {
			host = "[" + strings.ReplaceAll(text, "%", "%25") + "]"
		}
		for _, scheme := range []string{"http", "https"} {
			for _, port := range []string{c.port, "443", "80"} {
				try(scheme + "://" + host + ":" + port + "/")
				try(scheme + "://" + name + ":" + port + "/")
			}
		}
	}
	for _, host := range []string{"localhost", "0x7f.1", "2130706433", "0177.0.0.1", "127.1", "0", "a.localhost"} {
		try("http://" + host + ":" + c.port + "/")
		try("https://" + host + ":" + c.port + "/")
	}
	if tried < 5000 {
		t.Errorf("only %d URLs tried", tried)
	}
	if n := c.hits.Load(); n != 0 {
		t.Errorf("%d of %d requests reached the canary", n, tried)
	}
	// Negative control: the canary can be reached at all.
	if _, err := get(t, newClient(t, Config{Allow: prefixes("127.0.0.0/8")}), c.URL); err != nil || c.hits.Load() != 1 {
		t.Errorf("with loopback allowed: %v, %d hits", err, c.hits.Load())
	}
}

func TestBlockedDialsNameTheReason(t *testing.T) {
	t.Parallel()
	dns := newFakeDNS(t)
	dns.point("inside.test.", "10.1.2.3")
	dns.point("public.test.", "93.184.216.34")
	client := newClient(t, Config{Resolver: dns.resolver()})
	for url, want := range map[string]string{
		"https://inside.test/":      "10.1.2.3 is not public (private, RFC 1918)",
		"http://public.test/":       "plain http",
		"http://public.test:443/":   "plain http",
		"https://public.test:6379/": "port 6379",
	} {
		if _, err := get(t, client, url); !errors.Is(err, ErrBlocked) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
	var unknown *net.DNSError
	if _, err := get(t, client, "https://nowhere.test/"); !errors.As(err, &unknown) || !unknown.IsNotFound {
		t.Errorf("unknown name: %v, want a DNS error", err)
	}
	if err := client.checkDial("https", "unix", "/run/docker.sock"); !errors.Is(err, ErrBlocked) {
		t.Errorf("unix socket: %v", err)
	}
	if err := client.checkDial("https", "tcp4", "not an address"); !errors.Is(err, ErrBlocked) {
		t.Errorf("unreadable address: %v", err)
	}
}

// A DNS server answers the check with a public address, and the dial after it with loopback.
// The negative control is the usual mistake: look up, check, then dial by name.
func TestRebindingWinsNothing(t *testing.T) {
	t.Parallel()
	c := newPlainCanary(t)
	const name = "rebind.test"
	url := "https://" + name + ":" + c.port + "/"
	check := func(dns *fakeDNS) {
		t.Helper()
		addrs, err := dns.resolver().LookupNetIP(t.Context(), "ip4", name)
		if err != nil || len(addrs) != 1 {
			t.Fatalf("look-up: %v, %v", addrs, err)
		}
		if err := (Rules{}).CheckAddr("https", netip.AddrPortFrom(addrs[0], 443)); err != nil {
			t.Fatalf("the check before the dial must pass for this test to mean anything: %v", err)
		}
	}

	dns := newFakeDNS(t)
	dns.point(name+".", "93.184.216.34", "127.0.0.1")
	check(dns)
	client := newClient(t, Config{Resolver: dns.resolver()})
	if _, err := get(t, client, url); !errors.Is(err, ErrBlocked) {
		t.Errorf("after rebinding: %v, want ErrBlocked", err)
	}
	if n := c.hits.Load(); n != 0 {
		t.Fatalf("%d connections reached loopback", n)
	}

	naive := newFakeDNS(t)
	naive.point(name+".", "93.184.216.34", "127.0.0.1")
	check(naive)
	dialer := net.Dialer{Resolver: naive.resolver(), Timeout: time.Second}
	conn, err := dialer.DialContext(t.Context(), "tcp4", name+":"+c.port)
	if err != nil {
		t.Fatalf("negative control: %v", err)
	}
	_ = conn.Close()
	if got, _, _ := net.SplitHostPort(conn.RemoteAddr().String()); got != "127.0.0.1" {
		t.Errorf("negative control reached %s, so this test proves nothing", got)
	}
}

func TestRedirectsAreAnswers(t *testing.T) {
	t.Parallel()
	c := newPlainCanary(t)
	client := newClient(t, Config{Allow: prefixes("127.0.0.0/8")})
	resp, err := get(t, client, c.URL+"/redirect")
	if err != nil || resp.StatusCode != http.StatusFound {
		t.Fatalf("got %v, %v; want the redirect itself", resp, err)
	}
}

func TestProxiesOfTheEnvironmentAreIgnored(t *testing.T) {
	proxy := newPlainCanary(t)
	c := newPlainCanary(t)
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("HTTPS_PROXY", proxy.URL)
	client := newClient(t, Config{Allow: prefixes("127.0.0.0/8")})
	if _, err := get(t, client, c.URL); err != nil {
		t.Error(err)
	}
	// Loopback is exempt from proxies anyway, so check the transport itself too.
	if client.transport.Proxy != nil || proxy.hits.Load() != 0 {
		t.Error("a proxy was used")
	}
}

func TestTLSIsVerifiedAndHTTP2Used(t *testing.T) {
	t.Parallel()
	c := newCanary(t, plainServer)
	c.EnableHTTP2 = true
	c.Config.ErrorLog = discardLog()
	c.StartTLS()
	allow := prefixes("127.0.0.0/8")
	trusting := newClient(t, Config{Allow: allow, Roots: c.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs})
	for range 3 {
		resp, err := get(t, trusting, c.URL)
		if err != nil || resp.ProtoMajor != 2 {
			t.Fatalf("%v, %v; want HTTP/2", resp, err)
		}
	}
	if n := c.hits.Load(); n != 1 {
		t.Errorf("%d connections for 3 requests, want 1", n)
	}
	if _, err := get(t, newClient(t, Config{Allow: allow}), c.URL); !errors.Is(err, ErrTLS) {
		t.Errorf("unknown authority: %v, want ErrTLS", err)
	}
	// The certificate is for 127.0.0.1 and example.com, not for this name.
	dns := newFakeDNS(t)
	dns.point("other.test.", "127.0.0.1")
	wrong := newClient(t, Config{Allow: allow, Roots: trusting.tls.RootCAs, Resolver: dns.resolver()})
	if _, err := get(t, wrong, "https://other.test:"+c.port); !errors.Is(err, ErrTLS) {
		t.Errorf("other name: %v, want ErrTLS", err)
	}
	if _, err := get(t, trusting, "https://"+newPlainCanary(t).Listener.Addr().String()); !errors.Is(err, ErrTLS) {
		t.Errorf("plain server: %v, want ErrTLS", err)
	}
}

func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	c := newPlainCanary(t)
	client := newClient(t, Config{Allow: prefixes("127.0.0.0/8")})
	for range 20 {
		if _, err := get(t, client, c.URL); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.hits.Load(); n != 1 {
		t.Errorf("%d connections for 20 requests in a row, want 1", n)
	}
}
