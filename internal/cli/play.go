// The commands demo and bench.

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"backstop/internal/app"
	"backstop/internal/base/config"
	"backstop/internal/base/egress"
	"backstop/internal/command/bench"
	"backstop/internal/command/demo"
	"backstop/internal/settings/apply"
)

// loopback are the addresses of the demo's merchants and suppliers.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

type demoCmd struct {
	URL  string        `help:"The server (default: the one of this configuration)." placeholder:"URL"`
	Rate float64       `default:"5" help:"Orders per second, at most 100."`
	For  time.Duration `default:"60s" help:"How long against a running server; 0 = until interrupted."`
	Seed uint64        `help:"Repeat the demo with this seed."`
}

func (d *demoCmd) Run(ctx context.Context, g *globals, std streams) error {
	// Checked first: the demo changes settings before it starts.
	if !(d.Rate > 0 && d.Rate <= demo.MaxRate) || d.For < 0 { // NaN is neither
		return fmt.Errorf("%w: --rate must be more than 0 and at most %d, --for must not be negative", app.ErrUsage, demo.MaxRate)
	}
	c, err := g.load()
	if err != nil {
		return err
	}
	url, console := d.URL, ""
	if url == "" {
		if !answers(ctx, c.Listen) {
			return (&serveCmd{Demo: true, traffic: demo.Options{Rate: d.Rate, Seed: d.Seed}}).Run(ctx, g, std)
		}
		url, console = "http://"+c.Listen, c.AdminURL
	}
	return demo.Run(ctx, demo.Options{
		URL: url, Console: console, Out: std.out, Apply: applyDemo(c, std), Rate: d.Rate, For: d.For, Seed: d.Seed,
		// This assumes that the server has the same configuration.
		Callable: slices.ContainsFunc(c.SupplierAllowCIDRs, func(p netip.Prefix) bool { return p.Contains(loopback[0].Addr()) }),
	})
}

// answers reports whether a server listens at an address.
func answers(ctx context.Context, address string) bool {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return false
	}
	if err == nil {
		_ = conn.Close()
	}
	return true // what is wrong with it is said when it is used
}

// demoFolder is the suffix of the demo's data folder.
const demoFolder = "-demo"

// demoConfig changes a configuration to that of a demo: its orders must never be mixed with real
// ones, and all its data is in one folder.
func demoConfig(c *config.Config) error {
	if c.DatabaseURL.IsSet() {
		return fmt.Errorf("%w: serve --demo uses its own database: unset BACKSTOP_DATABASE_URL", app.ErrUsage)
	}
	c.Data = filepath.Clean(c.Data) + demoFolder
	c.RedisURL, c.MasterKey, c.MasterKeyFile = config.Secret{}, config.Secret{}, ""
	c.AdminPasswordFile = ""
	c.NotifyAllowCIDRs = append(c.NotifyAllowCIDRs, loopback...)
	c.SupplierAllowCIDRs = append(c.SupplierAllowCIDRs, loopback...)
	return nil
}

// runDemo runs the demo against the server of this process, until it stops. o chooses rate and seed.
func runDemo(ctx context.Context, a *app.App, c config.Config, std streams, o demo.Options) {
	select {
	case <-ctx.Done():
		return
	case <-a.Ready():
	}
	o.URL, o.Console, o.Out, o.Apply, o.History, o.Callable = a.URL(), a.ConsoleURL(), std.out, applyDemo(c, std), demoHistory(c), true
	err := demo.Run(ctx, o)
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(std.err, "backstop: demo: %v\n", err)
	}
}

// demoHistory gives the demo's own database a past.
func demoHistory(c config.Config) func(context.Context, map[string]string) (int, error) {
	return func(ctx context.Context, urls map[string]string) (int, error) {
		env, done, err := applyEnv(ctx, c, streams{out: io.Discard, err: io.Discard}, keysToApply)
		if err != nil {
			return 0, err
		}
		defer done()
		return demo.History(ctx, env.DB, c.Timezone, urls)
	}
}

// applyDemo applies the demo's declaration without a line per entry.
func applyDemo(c config.Config, std streams) func(context.Context, []byte) error {
	return func(ctx context.Context, yaml []byte) error {
		env, done, err := applyEnv(ctx, c, streams{std.in, io.Discard, std.err}, keysToApply)
		if err != nil {
			return err
		}
		defer done()
		// The server itself refuses the demo's orders if loopback is not allowed.
		env.CheckURL = egress.NewRules(loopback).CheckURL
		return apply.Apply(ctx, env, apply.File{Name: "demo.yaml", Dir: ".", Text: yaml})
	}
}

type benchCmd struct {
	Part        string        `arg:"" optional:"" enum:"all,product,isolation,rates" default:"all" help:"all; product: without direct posts; isolation: the effect of two failing merchants on the others; rates: what an order costs at ordinary rates, and an idle server."`
	JSON        bool          `help:"Write JSON."`
	Postgres    string        `help:"A PostgreSQL on this machine to measure too; schemas are created in it and dropped again." placeholder:"URL"`
	Engine      string        `help:"Measure the product on sqlite, postgres or both (default: both if --postgres is given)." placeholder:"NAME"`
	Orders      int           `default:"20000" help:"Orders of a burst."`
	Connections []int         `default:"64,512" help:"Connections of the bursts, one burst for each; at most 1024." placeholder:"LIST"`
	For         time.Duration `help:"Length of each measurement at a fixed rate (default: 10s, 3s for each phase of isolation, and 1m for each of rates)."`
	Million     bool          `help:"Also hold 1,000,000 open orders; takes minutes."`
	Ill         []string      `help:"Isolation: only these failures: hang, slow, reset, drip, certificate, redirect, huge, gzip; nobody = only the control." placeholder:"LIST"`
	Rate        []int         `help:"Isolation and rates: orders per second (default: 200,500; rates: 5,50,200,500)." placeholder:"LIST"`
	Server      string        `help:"Measure the server of another program, such as an older version." placeholder:"FILE" type:"existingfile"`
	Rounds      int           `default:"5" help:"Isolation: rounds, each of a phase with the effect and one without."`
}

func (b *benchCmd) Run(ctx context.Context, std streams) error {
	err := bench.Run(ctx, bench.Options{
		Out: std.out, Progress: std.err, JSON: b.JSON, Start: bench.Program(b.Server), DatabaseURL: b.Postgres, Engine: bench.Engine(b.Engine),
		Part: bench.Part(b.Part), Orders: b.Orders, Connections: b.Connections, Length: b.For, Million: b.Million,
		Ills: b.Ill, Rates: b.Rate, Rounds: b.Rounds,
	})
	if errors.Is(err, bench.ErrOptions) {
		return fmt.Errorf("%w: %w", app.ErrUsage, err)
	}
	return err
}
