package main

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
	Seed      uint64        `help:"Numbers and choices depend on it and the requests only."`
	Callbacks string        `default:"http://127.0.0.1:8080/callback" help:"Where callbacks go, followed by the supplier's code, whose payment named no notify_url." placeholder:"URL"`
	Paid      int           `help:"Of 100 started payments, so many are paid without being told (default: none)." placeholder:"N"`
	PaidAfter time.Duration `default:"3s" help:"When they are paid, from their start."`
	Silent    int           `help:"About one in N of them never calls back (default: all call back)." placeholder:"N"`
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
	fmt.Fprintf(std.err, "suppliers at %s, driven by %s/_sim; apply what is on standard output, to a server with BACKSTOP_SUPPLIER_ALLOW_CIDRS=127.0.0.0/8,::1/128\n", base, base)
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// check keeps what is simulated on this machine: a control API without a password must not
// be reachable from others.
func (s *simulateCmd) check() error {
	host, _, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return errors.New("--listen is HOST:PORT, such as 127.0.0.1:9090")
	}
	if !onThisMachine(host) {
		return fmt.Errorf("--listen %s: the simulator listens on a loopback address only, such as 127.0.0.1", s.Listen)
	}
	if u, err := url.Parse(s.Callbacks); s.Callbacks != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || !onThisMachine(u.Hostname())) {
		return fmt.Errorf("--callbacks %q: callbacks go to this machine only: write http://127.0.0.1:8080/callback", s.Callbacks)
	}
	if s.Paid < 0 || s.Paid > 100 || s.PaidAfter < 0 || s.Silent < 0 {
		return errors.New("--paid is 0 to 100; --paid-after and --silent are not negative")
	}
	return nil
}

// onThisMachine reports whether a host is a loopback address or localhost.
func onThisMachine(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
