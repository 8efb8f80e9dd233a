package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"backstop/internal/app"
	"backstop/internal/simulator"
)

type simulateCmd struct {
	Listen    string        `required:"" help:"Address on this machine; port 0 = a free one." placeholder:"HOST:PORT"`
	Seed      uint64        `help:"Seed of numbers and choices, which depend only on it and on the requests."`
	Callbacks string        `default:"http://127.0.0.1:8080/callback" help:"Base URL of callbacks for payments without a notify_url; the supplier's code is appended." placeholder:"URL"`
	Paid      int           `help:"How many of 100 started payments are paid by themselves (default: none)." placeholder:"N"`
	PaidAfter time.Duration `default:"3s" help:"How long after their start they are paid."`
	Silent    int           `help:"About one in N of them sends no callback (default: all send one)." placeholder:"N"`
}

func (s *simulateCmd) Run(ctx context.Context, std streams) error {
	if err := s.check(); err != nil {
		return fmt.Errorf("%w: %w", app.ErrUsage, err)
	}
	sim, err := simulator.New(simulator.Options{
		Seed: s.Seed, Callbacks: s.Callbacks, Paid: s.Paid, PaidAfter: s.PaidAfter, SilentEvery: s.Silent,
	})
	if err != nil {
		return fmt.Errorf("start the simulator: %w", err)
	}
	defer sim.Close()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.Listen, err)
	}
	base := "http://" + listener.Addr().String()
	text, err := sim.Declaration(base)
	if err != nil {
		listener.Close()
		return err
	}
	server := &http.Server{Handler: sim, ReadHeaderTimeout: 10 * time.Second}
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	fmt.Fprintf(std.out, "%s", text)
	fmt.Fprintf(std.err,
		"suppliers at %s, controlled at %s/_sim; apply the declaration on standard output to a server with BACKSTOP_SUPPLIER_ALLOW_CIDRS=127.0.0.0/8,::1/128\n", base, base)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// check keeps the simulation on this machine: a control API without a password must not be
// reachable from other machines.
func (s *simulateCmd) check() error {
	host, _, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return errors.New("--listen must be HOST:PORT, such as 127.0.0.1:9090")
	}
	if !onThisMachine(host) {
		return fmt.Errorf("--listen %s: the simulator listens on a loopback address only, such as 127.0.0.1", s.Listen)
	}
	if u, err := url.Parse(s.Callbacks); s.Callbacks != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" ||
		!onThisMachine(u.Hostname())) {
		return fmt.Errorf("--callbacks %q: callbacks go to this machine only: write http://127.0.0.1:8080/callback", s.Callbacks)
	}
	if s.Paid < 0 || s.Paid > 100 || s.PaidAfter < 0 || s.Silent < 0 {
		return errors.New("--paid must be 0 to 100; --paid-after and --silent must not be negative")
	}
	return nil
}

// onThisMachine reports whether a host is a loopback address or localhost.
func onThisMachine(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
