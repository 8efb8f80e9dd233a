package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"backstop/internal/app"
	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/internal/base/egress"
	"backstop/internal/base/redisd"
	"backstop/internal/base/seal"
	"backstop/internal/settings"
	"backstop/migrations"
)

const (
	// reachTime bounds one connection to a supplier or merchant, and maxReached how many are made.
	reachTime  = 5 * time.Second
	maxReached = 500
	// minFree is the room on the disk in bytes below which the program soon stops taking callbacks.
	minFree = 1 << 30
	// maxSkew is how far the clocks of machines may differ.
	maxSkew = 2 * time.Second
)

type doctorCmd struct{}

// Run checks the installation from this machine, and says what to do about what is wrong. Nothing is
// changed, no supplier is asked anything, and no merchant is sent anything.
func (*doctorCmd) Run(ctx context.Context, g *globals, std streams) error {
	x := &checkup{ctx: ctx}
	x.all(g)
	w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	wrong := 0
	for _, f := range x.found {
		if f.state == wrongState {
			wrong++
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", f.state, f.check, f.says)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d checks found something wrong", wrong, len(x.found))
	}
	return nil
}

// States of a finding.
const (
	okState    = "ok"
	warnState  = "warn"
	wrongState = "wrong"
)

type finding struct{ state, check, says string }

// checkup collects findings. A check whose ground is missing is left out: its reason stands above.
type checkup struct {
	ctx   context.Context
	found []finding
}

func (x *checkup) ok(check, says string, args ...any) {
	x.found = append(x.found, finding{okState, check, fmt.Sprintf(says, args...)})
}

func (x *checkup) warn(check, says string, args ...any) {
	x.found = append(x.found, finding{warnState, check, fmt.Sprintf(says, args...)})
}

func (x *checkup) wrong(check, says string, args ...any) {
	x.found = append(x.found, finding{wrongState, check, fmt.Sprintf(says, args...)})
}

func (x *checkup) all(g *globals) {
	c, err := g.load()
	if err != nil {
		x.wrong("settings", "%v", err)
		return
	}
	x.ok("settings", "every setting is valid: backstop config lists them")
	if c.Shadow {
		x.warn("shadow mode", "nobody is notified, and no supplier is called for what moves money: unset BACKSTOP_SHADOW after the comparison")
	}
	x.server(c)
	x.folder(c)
	keys := x.keys(c)
	x.redis(c)
	d, err := openAny(x.ctx, c)
	if err != nil {
		x.wrong("database", "%v", err)
		return
	}
	defer d.Close()
	if x.database(d) {
		x.nodes(d)
		x.secrets(c, d, keys)
	}
}

// server says whether a server runs on the configured address, and is ready.
func (x *checkup) server(c config.Config) {
	listener, err := net.Listen("tcp", c.Listen)
	switch {
	case err == nil:
		listener.Close()
		x.warn("server", "no server runs on %s: backstop serve", c.Listen)
		return
	case !errors.Is(err, syscall.EADDRINUSE):
		x.wrong("server", "%v", app.CannotListen(c.Listen, "BACKSTOP_LISTEN", err))
		return
	}
	base, err := overLoopback(c.Listen)
	if err != nil {
		return
	}
	resp, err := readiness(x.ctx, base)
	if err != nil {
		x.wrong("server", "%s is taken by another program, which does not answer: stop it, or set BACKSTOP_LISTEN", c.Listen)
		return
	}
	defer resp.Body.Close()
	if says := summary(resp); resp.StatusCode == http.StatusOK {
		x.ok("server", "%s on %s", says, c.Listen)
	} else {
		x.wrong("server", "the server on %s is %s", c.Listen, says)
	}
}

// folder checks the data folder and its disk.
func (x *checkup) folder(c config.Config) {
	info, err := os.Stat(c.Data)
	switch {
	case err != nil:
		x.wrong("data folder", "%v: the first backstop serve makes it, or set BACKSTOP_DATA", err)
		return
	case !info.IsDir():
		x.wrong("data folder", "%s is no folder: set BACKSTOP_DATA to one", c.Data)
		return
	case info.Mode().Perm()&0o077 != 0:
		x.wrong("data folder", "others may read %s (%s): chmod 700 %s", c.Data, info.Mode().Perm(), c.Data)
	default:
		x.ok("data folder", "only its owner may read %s", c.Data)
	}
	probe, err := os.CreateTemp(c.Data, ".doctor-")
	if err != nil {
		x.wrong("data folder", "%s cannot be written by user %d: chown it, or run as its owner", c.Data, os.Getuid())
		return
	}
	probe.Close()
	os.Remove(probe.Name())
	var disk syscall.Statfs_t
	if err := syscall.Statfs(c.Data, &disk); err != nil {
		x.warn("disk", "its room cannot be read: %v", err)
		return
	}
	if free := disk.Bavail * uint64(disk.Bsize); free < minFree {
		x.wrong("disk", "%d MB are free in %s: make room, since a full disk stops callbacks", free>>20, c.Data)
	} else {
		x.ok("disk", "%d MB are free", free>>20)
	}
}

// keys checks the master key; nil = there is none.
func (x *checkup) keys(c config.Config) *seal.Keyring {
	if err := app.NeedKeys(c); err != nil {
		x.wrong("master key", "%v", err)
		return nil
	}
	keys, err := app.KeysToRead(c)
	if err != nil {
		x.wrong("master key", "%v", err)
		return nil
	}
	if c.MasterKey.IsSet() {
		x.ok("master key", "given in BACKSTOP_MASTER_KEY")
		return keys
	}
	switch info, err := os.Stat(c.MasterKeyPath()); {
	case err != nil:
		x.warn("master key", "there is none yet: the first start makes %s", c.MasterKeyPath())
	case info.Mode().Perm()&0o077 != 0:
		x.wrong("master key", "others may read %s (%s): chmod 600 %s", c.MasterKeyPath(), info.Mode().Perm(), c.MasterKeyPath())
	default:
		x.ok("master key", "%s: keep a copy of it elsewhere", c.MasterKeyPath())
	}
	return keys
}

// redis checks the configured Redis, or that there is a program for the embedded one.
func (x *checkup) redis(c config.Config) {
	if !c.RedisURL.IsSet() {
		if program, err := exec.LookPath("redis-server"); err != nil {
			x.warn("redis", "there is no redis-server on PATH: queues are kept in this process only, slow and lost when it ends; install redis-server or set BACKSTOP_REDIS_URL")
		} else {
			x.ok("redis", "embedded, %s", program)
		}
		return
	}
	at, err := redisd.Parse(c.RedisURL.Reveal())
	if err != nil {
		x.wrong("redis", "BACKSTOP_REDIS_URL: %v", err)
		return
	}
	r, err := redisd.Open(x.ctx, redisd.Config{At: &at, DataDir: c.Data, Logger: slog.New(&warnings{x: x, check: "redis"})})
	if err != nil {
		x.wrong("redis", "%v", err)
		return
	}
	defer r.Close(x.ctx)
	ctx, cancel := context.WithTimeout(x.ctx, reachTime)
	defer cancel()
	err = r.Verify(ctx)
	if err == nil {
		err = r.Check(ctx)
	}
	if err != nil {
		x.wrong("redis", "%v: start it, or correct BACKSTOP_REDIS_URL; callbacks are taken without it", err)
		return
	}
	if at, err := r.Client().Time(ctx).Result(); err == nil && time.Since(at).Abs() > maxSkew {
		x.wrong("redis", "its clock differs from this machine's by %s: run NTP on both", time.Since(at).Abs().Round(time.Millisecond))
		return
	}
	x.ok("redis", "it answers and takes writes")
}

// warnings takes the warnings of a log as findings.
type warnings struct {
	slog.Handler
	x     *checkup
	check string
}

func (w *warnings) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	w.x.warn(w.check, "%s", r.Message)
	return nil
}

// database checks the schema, the clock and that it takes writes; false = it cannot be used further.
func (x *checkup) database(d *db.DB) bool {
	if err := d.CheckSchema(x.ctx, migrations.Files); err != nil {
		x.wrong("database", "%v", err)
		return false
	}
	if err := d.Writable(x.ctx); err != nil {
		x.wrong("database", "it takes no writes: %v", err)
	} else {
		x.ok("database", "its schema is current, and it takes writes")
	}
	if skew := d.Skew(); skew.Abs() > maxSkew {
		x.wrong("clock", "this machine's clock differs from the database's by %s: run NTP on both", skew.Abs().Round(time.Millisecond))
	} else {
		x.ok("clock", "it agrees with the database's within %s", maxSkew)
	}
	return true
}

// nodes checks that the running servers are of one version, and agree.
func (x *checkup) nodes(d *db.DB) {
	all, err := d.Nodes(x.ctx)
	if err != nil {
		x.wrong("nodes", "%v", err)
		return
	}
	if len(all) == 0 {
		return
	}
	names := map[string][]string{}
	for _, n := range all {
		names["version "+n.Build] = append(names["version "+n.Build], n.Name)
		if n.LeftOut != "" {
			x.wrong("nodes", "%s leaves out %s: give it the master key, or upgrade it", n.Name, n.LeftOut)
		}
		if n.KeyIDs != all[0].KeyIDs {
			x.wrong("nodes", "%s has other master keys than %s: give both the same", n.Name, all[0].Name)
		}
		if slices.Contains(db.Differ([]db.Node{all[0], n}), db.PartShadow) {
			x.wrong("nodes", "only one of %s and %s is in shadow mode: give both the same BACKSTOP_SHADOW", n.Name, all[0].Name)
		}
		if n.Ranges != all[0].Ranges {
			x.wrong("nodes", "%s may reach other private addresses than %s: give both the same BACKSTOP_NOTIFY_ALLOW_CIDRS", n.Name, all[0].Name)
		}
	}
	if len(names) > 1 {
		x.warn("nodes", "they have %d versions: upgrade the others", len(names))
	} else {
		x.ok("nodes", "%d running, of one version", len(all))
	}
}

// secrets checks that what is stored can be used here, and that suppliers and endpoints can be reached.
func (x *checkup) secrets(c config.Config, d *db.DB, keys *seal.Keyring) {
	if keys == nil {
		return
	}
	if err := settings.CheckKeys(x.ctx, d, keys); err != nil {
		x.wrong("secrets", "%v: give this machine that key", err)
		return
	}
	store := settings.NewStore(d, app.Kinds(), keys, slog.New(slog.NewTextHandler(io.Discard, nil)))
	asked := &asked{}
	store.CallThrough(asked)
	if err := store.Refresh(x.ctx); err != nil {
		x.wrong("secrets", "the settings cannot be read: %v", err)
		return
	}
	now := store.Current()
	if left := now.Unreadable(); len(left) > 0 {
		x.wrong("secrets", "cannot be used with these master keys, or by this version: %s", strings.Join(left, ", "))
	} else {
		x.ok("secrets", "all can be read")
	}
	x.reach("suppliers", asked.targets(x.ctx, now.Suppliers.All()), egress.New(egress.Config{Allow: c.SupplierAllowCIDRs}))
	endpoints := map[string]string{}
	for _, m := range now.Merchants.All() {
		for _, e := range m.Endpoints {
			if at, err := url.Parse(e.URL); err == nil && at.Host != "" {
				endpoints[at.Scheme+"://"+at.Host] = m.Code
			}
		}
	}
	x.reach("endpoints", endpoints, egress.New(egress.Config{Allow: c.NotifyAllowCIDRs}))
}
