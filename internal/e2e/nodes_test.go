package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"backstop/internal/base/queue/queuetest"
	"backstop/internal/notify/fakemerchant"
)

// TestOneOfTwoNodesDiesAndTheOtherGoesOn runs two servers on one PostgreSQL and one Redis
// behind a balancer, kills one under load for good, and expects the other to finish everything.
func TestOneOfTwoNodesDiesAndTheOtherGoesOn(t *testing.T) {
	t.Parallel()
	one, two := twoNodes(t)
	one.start("")
	two.start("")
	front := balanced(one, two)
	tr := newTraffic(front)
	stop := load(tr, 8)
	front.flows(50)
	two.kill()
	died := time.Now()
	front.flows(20)
	stop()
	front.address = one.address
	// The dead node's claims are free when their leases run out.
	repeated := tr.settle(30 * time.Second)
	t.Logf("%d orders, all notified %s after the kill, %d more than once", len(tr.made), time.Since(died).Round(time.Millisecond), repeated)
	if len(tr.made) < 50 {
		t.Errorf("only %d orders: that was no load", len(tr.made))
	}
}

// TestEachNodeKnowsWhoIsSlowForAnother reads from two servers how much waits for a
// merchant that answers slowly; one of them notifies no merchant.
func TestEachNodeKnowsWhoIsSlowForAnother(t *testing.T) {
	t.Parallel()
	one, two := twoNodes(t)
	one.apply(strings.Replace(one.config(""), "timeout: 2s", "timeout: 10s", 1))
	one.merchant.Behave(fakemerchant.Sleep(4*time.Second, fakemerchant.Answer(http.StatusOK, "success")))
	two.args = []string{"--roles", "web"}
	one.start("")
	two.start("")
	for i := range 30 {
		no := one.create(fmt.Sprintf("s%d", i), nil)
		one.wantAccepted(callbackForm("sp-main", no, "t-"+no, 1999))
	}
	for _, w := range []*world{one, two} {
		w.within(15*time.Second, "it counts as slow, and its notifications are in its queue", func() bool {
			a := w.request(http.MethodGet, "/api/v1/admin/merchant-callback-monitor/realtime", w.token, "")
			return a.json("slow_merchants") == "1" && a.json("queues", "3", "queue") == "notify_slow" &&
				a.json("queues", "3", "rows") != "0"
		})
	}
}

// twoNodes are two installations of one database, one Redis and one master key.
func twoNodes(t *testing.T) (one, two *world) {
	t.Helper()
	one = newWorld(t, options{postgres: true, ownRedis: true})
	return one, one.beside()
}

// beside is another node of the same installation, with its own data folder.
func (w *world) beside() *world {
	other := *w
	other.folder, other.address = w.t.TempDir(), net.JoinHostPort("127.0.0.1", strconv.Itoa(queuetest.FreePort(w.t)))
	return &other
}

// balanced is what the outside sees of two nodes: each request goes to the other
// one of them.
func balanced(one, two *world) *world {
	var turn atomic.Int64
	balancer := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", []string{one.address, two.address}[turn.Add(1)%2]
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	one.t.Cleanup(balancer.Close)
	front := *one
	front.address = balancer.Listener.Addr().String()
	return &front
}

// TestRedisBehindTLS serves with a Redis that speaks TLS only, and is not ready with one that
// has an untrusted certificate.
func TestRedisBehindTLS(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	certificate := selfSigned(t, folder)
	port := strconv.Itoa(queuetest.FreePort(t))
	ctx, cancel := context.WithCancel(context.Background())
	redis := exec.CommandContext(ctx, "redis-server", "--port", "0", "--tls-port", port, "--tls-cert-file", certificate,
		"--tls-key-file", filepath.Join(folder, "key.pem"), "--tls-auth-clients", "no", "--dir", folder, "--appendonly", "yes", "--bind",
		"127.0.0.1")
	if err := redis.Start(); err != nil {
		t.Skipf("no redis-server on this machine: %v", err)
	}
	t.Cleanup(func() { cancel(); _ = redis.Wait() })

	w := newWorld(t, options{environ: []string{"BACKSTOP_REDIS_URL=rediss://127.0.0.1:" + port, "SSL_CERT_FILE=" + certificate}})
	w.start("")
	paidAndNotified(w)
	w.terminate()

	w.more = w.more[:1] // the certificate is not trusted any more
	w.startUnready()
	w.within(10*time.Second, "readyz names Redis as the reason", func() bool {
		a, err := w.do(http.MethodGet, "/readyz", "", nil, "")
		return err == nil && a.status == http.StatusOK && a.json("status") == "degraded" && strings.Contains(a.body, "certificate")
	})
}

// selfSigned writes a certificate for 127.0.0.1 that vouches for itself.
func selfSigned(t *testing.T, folder string) (file string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redis"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(folder, "cert.pem")
	for name, block := range map[string]*pem.Block{
		file:                             {Type: "CERTIFICATE", Bytes: der},
		filepath.Join(folder, "key.pem"): {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// TestApplySaysWhichNodesHaveTakenTheChange applies beside two servers, and beside one
// of them that does not move.
func TestApplySaysWhichNodesHaveTakenTheChange(t *testing.T) {
	t.Parallel()
	one, two := twoNodes(t)
	one.start("")
	two.start("")
	if said := one.apply("merchants: [{ code: m1, name: Renamed }]"); !strings.HasSuffix(said,
		"merchant m1 changed: name\nin use on 2 of 2 nodes\n") {
		t.Errorf("apply printed %q", said)
	}
	name, err := os.ReadFile(filepath.Join(two.folder, "node"))
	if err != nil {
		t.Fatal(err)
	}
	if err := two.server.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	apply := exec.CommandContext(t.Context(), program, "apply", "--wait", "2s", "-")
	apply.Env, apply.Stdin = one.environ(), strings.NewReader("merchants: [{ code: m1, name: Again }]")
	var out, said bytes.Buffer
	apply.Stdout, apply.Stderr = &out, &said
	err = apply.Run()
	if resumed := two.server.cmd.Process.Signal(syscall.SIGCONT); resumed != nil {
		t.Fatal(resumed)
	}
	if want := "not on " + strings.TrimSpace(string(name)) + " within 2s"; err != nil || !strings.Contains(said.String(), want) ||
		out.String() != "merchant m1 changed: name\n" {
		t.Errorf("%v: %q, %q; want %q", err, out.String(), said.String(), want)
	}
	if again := one.run("apply", filepath.Join(one.folder, "apply.yaml")); !strings.HasSuffix(again, "in use on 2 of 2 nodes\n") {
		t.Errorf("later apply printed %q", again)
	}
}
