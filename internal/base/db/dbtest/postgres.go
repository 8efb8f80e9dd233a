package dbtest

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"backstop/internal/base/servertest"
	"backstop/internal/base/waittest"
)

// envURL is the environment variable with the URL of a PostgreSQL server for tests. Without
// it, a private server is started from Debian's packages. All test processes share it, and it
// ends soon after the last of them (see watch).
const envURL = "TEST_DATABASE_URL"

var server = sync.OnceValues(func() (string, error) {
	if u := os.Getenv(envURL); u != "" {
		return u, nil
	}
	return private()
})

// held are the locks that this process holds as long as it runs: a file without a reference
// would be closed.
var held []*os.File

// privateHome is the folder of the private server.
func privateHome() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("backstop-test-postgres-%d", os.Getuid()))
}

// private finds or starts the server on a loopback port, with its data below the temporary
// folder.
func private() (string, error) {
	bin, err := binaries()
	if err != nil {
		return "", err
	}
	home := privateHome()
	lock, err := lockHome(home)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	user, err := locked(filepath.Join(home, usersFile), syscall.LOCK_SH)
	if err != nil {
		return "", err
	}
	held = append(held, user)
	if err := startWatch(home); err != nil {
		return "", err
	}
	portFile := filepath.Join(home, "port")
	if port, err := os.ReadFile(portFile); err == nil && answers(serverURL(string(port))) {
		return serverURL(string(port)), nil
	}
	port, err := freePort()
	if err != nil {
		return "", err
	}
	if err := start(bin, filepath.Join(home, dataFolder), port); err != nil {
		return "", err
	}
	if !waittest.Within(time.Minute, func() bool { return answers(serverURL(port)) }) {
		return "", errors.New("the server did not answer within a minute")
	}
	return serverURL(port), os.WriteFile(portFile, []byte(port), 0o600)
}

func serverURL(port string) string {
	return "postgres://postgres@127.0.0.1:" + port + "/postgres?sslmode=disable"
}

func answers(url string) bool {
	d, err := sql.Open("pgx", url)
	if err != nil {
		return false
	}
	defer d.Close()
	return d.Ping() == nil
}

// binaries finds initdb and pg_ctl, which Debian keeps outside PATH.
func binaries() (string, error) {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if p, err := exec.LookPath("pg_ctl"); err == nil {
		dirs = append(dirs, filepath.Dir(p))
	}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("install the server (Debian: apt-get install postgresql), or set " + envURL)
}

// OwnPostgres starts a server for this test only, with settings such as "autovacuum=off", and
// returns its URL. The server ends with the test.
func OwnPostgres(t testing.TB, settings ...string) string {
	t.Helper()
	servertest.Need(t)
	bin, err := binaries()
	if err != nil {
		t.Fatalf("PostgreSQL for tests: %v", err)
	}
	home, err := os.MkdirTemp("", "backstop-own-postgres-") // the server's account may enter it
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(home, dataFolder)
	t.Cleanup(func() {
		_ = run(filepath.Join(bin, "pg_ctl"), "-D", data, "-m", "immediate", "-w", "stop")
		_ = os.RemoveAll(home)
	})
	port, err := freePort()
	if err == nil {
		err = os.Chmod(home, 0o755)
	}
	if err == nil {
		err = start(bin, data, port, settings...)
	}
	if err != nil {
		t.Fatalf("PostgreSQL for this test: %v", err)
	}
	return serverURL(port)
}

// maxConnections is enough for the tests of several packages that run at the same time, each with
// up to poolSize and the four of commits that do not wait for the disk. It costs nothing unused.
const maxConnections = 1000

func start(bin, data, port string, settings ...string) error {
	if _, err := os.Stat(filepath.Join(data, "PG_VERSION")); err != nil {
		// An interrupted watch may have left a part of the folder.
		if err := os.RemoveAll(data); err != nil {
			return err
		}
		if err := ownedDir(data); err != nil {
			return err
		}
		if err := run(filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C",
			"--no-instructions"); err != nil {
			return err
		}
	}
	// Nothing has to survive a crash of the machine, and a schema is migrated a third faster
	// without waiting for the disk.
	opts := "-p " + port + " -c max_connections=" + strconv.Itoa(maxConnections) +
		" -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c full_page_writes=off"
	for _, s := range settings {
		opts += " -c " + s
	}
	return run(filepath.Join(bin, "pg_ctl"), "-D", data, "-l", filepath.Join(data, "log"), "-o", opts, "-w", "-t", "60", "start")
}

// ownedDir creates the data folder. For root it makes the account of Debian's package the
// owner: the server refuses to run as root.
func ownedDir(data string) error {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	c, err := credential()
	if err != nil || c == nil {
		return err
	}
	return os.Chown(data, int(c.Uid), int(c.Gid))
}

func credential() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("tests run as root and need the account postgres: %w", err)
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32)
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

func run(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = "/"
	var out bytes.Buffer
	cmd.Stderr = &out
	c, err := credential()
	if err != nil {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c, Setsid: true}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(name), err, out.String())
	}
	return nil
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
