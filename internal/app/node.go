package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/internal/base/queue"
	"backstop/internal/base/redisd"
	"backstop/internal/base/seal"
	"backstop/internal/base/trace"
	"backstop/internal/settings"
)

// Folder is the locked data folder.
type Folder struct {
	Path string
	lock *os.File
}

// LockFolder creates the data folder and locks it for this process: two servers on one folder
// would release each other's leases.
func LockFolder(path string) (*Folder, error) {
	if err := MakeFolder(path); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, unwritable(path, err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("the data folder %s is in use by another backstop server: stop it, or set BACKSTOP_DATA", path)
	}
	return &Folder{Path: path, lock: lock}, nil
}

// MakeFolder creates the data folder if it does not exist.
func MakeFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return unwritable(path, err)
	}
	return nil
}

func unwritable(path string, err error) error {
	return fmt.Errorf("the data folder %s cannot be written (%w): give it to user %d, or set BACKSTOP_DATA", path, err, os.Getuid())
}

// Close unlocks the folder. Closing the file alone would leave the lock to a process that is being
// forked at this moment, until it executes its program (flock(2)).
func (f *Folder) Close() error {
	return errors.Join(syscall.Flock(int(f.lock.Fd()), syscall.LOCK_UN), f.lock.Close())
}

// goodName matches generated names and names allowed by BACKSTOP_NODE_NAME.
var goodName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// nodeName returns the node's permanent name: configured, or generated once and stored. A file
// left empty or full of zeros by a machine crash is replaced.
func (f *Folder) nodeName(configured string) (string, error) {
	if configured != "" {
		return configured, nil
	}
	file := filepath.Join(f.Path, "node")
	raw, err := os.ReadFile(file)
	if name := strings.TrimSpace(string(raw)); err == nil && goodName.MatchString(name) {
		return name, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", unwritable(f.Path, err)
	}
	name := "node-" + strings.ToLower(rand.Text()[:8])
	if err := os.WriteFile(file, []byte(name+"\n"), 0o600); err != nil {
		return "", unwritable(f.Path, err)
	}
	return name, nil
}

// errNoKey means that an installation on SQLite has no master key yet; the first process that
// needs one makes it.
var errNoKey = errors.New("there is no master key")

// readKeys reads the master keys as configured, or from the file in the data folder. If they
// are missing, the error is ErrUsage or errNoKey. A key is never made for a shared database,
// because each node would make its own; nor for a configured file, because a forgotten mount
// must not lead to a temporary key.
func readKeys(c config.Config) (*seal.Keyring, error) {
	if c.MasterKey.IsSet() {
		return seal.ParseKeys(c.MasterKey.Reveal())
	}
	keys, err := seal.Load(c.MasterKeyPath())
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return keys, err
	case c.MasterKeyFile != "":
		return nil, fmt.Errorf("%w: the file of BACKSTOP_MASTER_KEY_FILE is missing (%s): put it there; backstop does not create it",
			ErrUsage, c.MasterKeyFile)
	case c.DatabaseURL.Reveal() != "":
		return nil, fmt.Errorf(
			"%w: BACKSTOP_DATABASE_URL needs a master key shared by all nodes and commands: make one (openssl rand -base64 32) and give it to each"+
				" in BACKSTOP_MASTER_KEY or BACKSTOP_MASTER_KEY_FILE", ErrUsage)
	}
	return nil, errNoKey
}

// NeedKeys returns an ErrUsage if the master key is missing and cannot be made. It is called
// before anything is changed.
func NeedKeys(c config.Config) error {
	if _, err := readKeys(c); errors.Is(err, ErrUsage) {
		return err
	}
	return nil
}

// KeysToRead is Keys for read-only commands: it makes no key. Without one the keyring is empty,
// and using it fails.
func KeysToRead(c config.Config) (*seal.Keyring, error) {
	keys, err := readKeys(c)
	named := c.MasterKey.IsSet() || c.MasterKeyFile != ""
	if !named && (errors.Is(err, errNoKey) || errors.Is(err, ErrUsage)) {
		return new(seal.Keyring), nil
	}
	return keys, err
}

// Keys opens the master keys. An installation on SQLite gets its key here once, in the data
// folder; this is reported on out.
func Keys(ctx context.Context, c config.Config, d *db.DB, out io.Writer) (*seal.Keyring, error) {
	keys, err := readKeys(c)
	if errors.Is(err, errNoKey) {
		return makeKey(ctx, c, d, out)
	}
	return keys, err
}

func makeKey(ctx context.Context, c config.Config, d *db.DB, out io.Writer) (*seal.Keyring, error) {
	path := c.MasterKeyPath()
	inUse, err := settings.KeyInUse(ctx, d.Read)
	if err != nil {
		return nil, err
	}
	sealed, err := settings.SealedUnder(ctx, d)
	if err != nil {
		return nil, err
	}
	if inUse == "" {
		inUse = strings.Join(sealed, ", ")
	}
	if inUse != "" {
		return nil, fmt.Errorf("%w (%s), and %s is missing: restore that file from its backup, or set BACKSTOP_MASTER_KEY",
			settings.ErrForeignKey, inUse, path)
	}
	keys, err := seal.LoadOrCreate(path)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(out,
		"master key made: %s (id %s): back it up apart from the database; without it no supplier key or signing secret can be read again\n",
		path, keys.ID())
	return keys, err
}

// checkKeys checks that this node can open currently sealed values.
func (a *App) checkKeys(ctx context.Context) error { return settings.CheckKeys(ctx, a.db, a.keys) }

// errKeys is the public text for readiness.
const errKeys = "the master key in use is not one of this node's: give it the key and restart it"

func keysKind(err error) string {
	if errors.Is(err, settings.ErrForeignKey) {
		return errKeys
	}
	return db.Kind(err)
}

// firstCheck bounds how long a hanging Redis delays callbacks at start: the client waits
// seconds for each of its hosts, twice.
const firstCheck = 2 * time.Second

// redisAt parses the URL of Redis; nil = embedded. Test mode has the database after that of the live application,
// unless it has a Redis of its own.
func redisAt(o Options) (*redisd.Options, error) {
	url := o.Config.RedisURL.Reveal()
	if url == "" {
		return nil, nil
	}
	at, err := redisd.Parse(url)
	if err != nil {
		return nil, fmt.Errorf("%w: BACKSTOP_REDIS_URL: %w", ErrUsage, err)
	}
	if o.Test && !o.Config.TestRedisURL.IsSet() {
		at.DB++
	}
	return &at, nil
}

// openRedis connects to Redis or starts it. An unavailable Redis does not prevent the start,
// because callbacks are taken without it; one that may evict tasks does.
func (a *App) openRedis(ctx context.Context, at *redisd.Options) (err error) {
	a.redis, err = redisd.Open(ctx, redisd.Config{At: at, DataDir: a.o.Config.Data, Logger: a.o.Log})
	if err != nil {
		return err
	}
	a.closing(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		if err := a.redis.Close(ctx); err != nil {
			a.o.Log.Warn("stop redis", "error", err)
		}
	})
	a.queue = queue.New(a.redis.Client(), queue.Config{Window: a.o.Config.NotifyWindow, Memory: a.redis.Memory})
	first, cancel := context.WithTimeout(ctx, firstCheck)
	defer cancel()
	err = a.redis.Verify(first)
	if errors.Is(err, redisd.ErrEvicts) {
		return err
	}
	if err != nil {
		a.o.Log.Warn("redis is unavailable; callbacks are taken and notifications sent without it", "error", err)
		go a.verifyRedis(ctx)
	}
	return nil
}

// verifyRedis checks the eviction policy of a Redis that was unavailable at start, as soon as
// it answers.
func (a *App) verifyRedis(ctx context.Context) {
	for ctx.Err() == nil {
		err := a.redis.Verify(ctx)
		if err == nil {
			return
		}
		if errors.Is(err, redisd.ErrEvicts) {
			a.fatal <- err
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
	}
}

// openTraces starts sending spans if a collector is configured, by our setting or by the
// environment variables of OpenTelemetry.
func (a *App) openTraces(ctx context.Context) (err error) {
	c := a.o.Config
	if a.o.Test { // what it does is no payment
		return nil
	}
	if cmp.Or(c.OTLPEndpoint, os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")) == "" {
		return nil
	}
	a.tracer, err = trace.Open(ctx, trace.Config{
		Endpoint: c.OTLPEndpoint, OneIn: c.TraceOneIn, Version: a.o.Version, Node: a.db.NodeName(), Log: a.o.Log,
	})
	if err != nil {
		return err
	}
	a.closing(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if err := a.tracer.Close(ctx); err != nil {
			a.o.Log.Warn("stop the traces", "error", err)
		}
	})
	return nil
}
