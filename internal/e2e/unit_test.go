package e2e

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"backstop/internal/base/queue/queuetest"
)

// unitLines are the values of a setting of the unit.
func unitLines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile("../../deploy/backstop.service")
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, m := range regexp.MustCompile(`(?m)^`+name+`=(.*)$`).FindAllStringSubmatch(string(text), -1) {
		values = append(values, m[1])
	}
	return values
}

// TestTheUnitRuns runs the shipped unit's command as systemd does: with its
// environment, its credentials in a folder of root's that the service may read by its
// group, and as a user who owns nothing but the state folder.
func TestTheUnitRuns(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.Chmod(filepath.Dir(root), 0o755); err != nil { // it is another user
		t.Fatal(err)
	}
	w := &world{t: t, folder: filepath.Join(root, "state")}
	w.address = net.JoinHostPort("127.0.0.1", strconv.Itoa(queuetest.FreePort(t)))
	credentials, binary := filepath.Join(root, "credentials"), filepath.Join(root, "backstop")
	if err := errors.Join(os.Mkdir(w.folder, 0o700), os.Mkdir(credentials, 0o700), os.Link(program, binary)); err != nil {
		t.Fatal(err)
	}
	key := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	for _, line := range unitLines(t, "LoadCredential") {
		name, source, ok := strings.Cut(line, ":")
		if !ok || !filepath.IsAbs(source) {
			t.Fatalf("LoadCredential=%s", line)
		}
		if err := os.WriteFile(filepath.Join(credentials, name), []byte(key+"\n"), 0o440); err != nil {
			t.Fatal(err)
		}
	}
	environ := []string{"PATH=" + os.Getenv("PATH"), "CREDENTIALS_DIRECTORY=" + credentials, "BACKSTOP_LISTEN=" + w.address}
	for _, line := range unitLines(t, "Environment") {
		line = strings.ReplaceAll(line, "%d", credentials)
		environ = append(environ, strings.ReplaceAll(line, "/var/lib/backstop", w.folder))
	}
	line := unitLines(t, "ExecStart")
	if len(line) != 1 || !strings.HasPrefix(line[0], "/usr/local/bin/backstop ") {
		t.Fatalf("ExecStart=%q", line)
	}
	nobody := otherUser(t, w.folder, credentials)
	service := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), binary, args...)
		cmd.Env, cmd.Dir, cmd.SysProcAttr = environ, "/", nobody
		return cmd
	}
	var said bytes.Buffer
	server := service(strings.Fields(line[0])[1:]...)
	server.Stdout, server.Stderr = &said, &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	w.within(readyTime, "the unit is ready", func() bool {
		select {
		case err := <-ended:
			t.Fatalf("it ended: %v\n%s", err, said.String())
		default:
		}
		return service("health").Run() == nil
	})
	if _, err := os.Stat(filepath.Join(w.folder, "master.key")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it made a key of its own: %v", err)
	}
	w.isPrivate(w.folder)
	if err := server.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v\n%s", err, said.String())
	}
}

// otherUser is a user without rights, to whom the folder is given and the
// credentials are lent. Only root can become one; who is not runs it as themselves.
func otherUser(t *testing.T, folder, credentials string) *syscall.SysProcAttr {
	t.Helper()
	const nobody = 65534
	if os.Getuid() != 0 {
		return nil
	}
	err := errors.Join(os.Chown(folder, nobody, nobody), os.Chmod(folder, 0o700), os.Chown(credentials, 0, nobody),
		os.Chmod(credentials, 0o550))
	files, _ := filepath.Glob(filepath.Join(credentials, "*"))
	for _, file := range files {
		err = errors.Join(err, os.Chown(file, 0, nobody), os.Chmod(file, 0o440))
	}
	if err != nil {
		t.Fatal(err)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}

// isPrivate says of all that is in a folder who else may reach it.
func (w *world) isPrivate(folder string, but ...string) {
	w.t.Helper()
	seen := map[string]bool{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // Redis replaces its files
		}
		if err != nil || path == folder {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return nil
		}
		for _, pattern := range but {
			if own, _ := filepath.Match(pattern, entry.Name()); own {
				return nil
			}
		}
		seen[entry.Name()] = true
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			w.t.Errorf("%s can be reached by others: %s", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, name := range []string{"backstop.db", "backstop.db-wal", "lock"} {
		if !seen[name] {
			w.t.Errorf("%s was not looked at: %v", name, seen)
		}
	}
}

// What a server keeps is for its user alone, whatever mask it was started under.
func TestWhatCommandsMakeIsTheirUsersAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.start("")
	no := w.create("private", nil)
	w.wantAccepted(callbackForm("sp-main", no, "T-private", 1999))
	w.within(readyTime, "the merchant is notified", func() bool { return len(w.notifications(no)) > 0 })
	w.isPrivate(w.folder, "server-*", "apply.yaml")
	made := t.TempDir()
	cmd := exec.Command(program, "migrate", "up")
	cmd.Env = append(w.environ(), "BACKSTOP_DATA="+filepath.Join(made, "data"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for _, name := range []string{"data", "data/backstop.db"} {
		if info, err := os.Stat(filepath.Join(made, name)); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}
