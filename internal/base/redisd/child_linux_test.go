package redisd

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"backstop/internal/base/waittest"
)

// TestHelperOwner is not a test: run as a separate process, it owns an embedded Redis until it
// is killed.
func TestHelperOwner(t *testing.T) {
	t.Parallel()
	data := os.Getenv("REDISD_TEST_OWNER_DATA")
	if data == "" {
		t.Skip("run by TestChildEndsWithACrashOfItsOwner")
	}
	log, _ := logger(slog.LevelError)
	r := openEmbedded(t, data, log)
	fmt.Printf("\nchild %d\n", pidOf(t, r))
	select {}
}

func TestChildEndsWithACrashOfItsOwner(t *testing.T) {
	t.Parallel()
	needRedisServer(t)
	data := t.TempDir()
	owner := exec.Command(os.Args[0], "-test.run", "^TestHelperOwner$")
	owner.Env = append(os.Environ(), "REDISD_TEST_OWNER_DATA="+data)
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		if number, ok := strings.CutPrefix(lines.Text(), "child "); ok {
			pid, _ = strconv.Atoi(number)
		}
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait()
	if pid == 0 {
		t.Fatal("the owner did not start its child")
	}
	// It becomes the child of the process that adopts orphans, so it may stay a zombie.
	waittest.Until(t, "the child has ended", func() bool {
		line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		return err != nil || len(line) == 0
	})

	log, _ := logger(slog.LevelError)
	r := openEmbedded(t, data, log)
	if err := r.Check(t.Context()); err != nil {
		t.Errorf("start after the crash: %v", err)
	}
}

// The kernel sends its signal when the thread that started the child ends. In this test the
// thread of Open's caller ends, as that of a goroutine that has locked its thread does.
func TestChildOutlivesTheThreadOfItsCaller(t *testing.T) {
	t.Parallel()
	needRedisServer(t)
	log, book := logger(slog.LevelWarn)
	var r *Redis
	thread, data, opened := 0, t.TempDir(), make(chan error)
	runtime.LockOSThread() // so that the goroutine below gets another thread than this one
	defer runtime.UnlockOSThread()
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		thread = syscall.Gettid()
		var err error
		r, err = Open(t.Context(), Config{DataDir: data, Logger: log})
		opened <- err
	}()
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	defer r.Close(context.Background())
	if thread == os.Getpid() {
		t.Skip("the goroutine got the process's first thread, which never ends")
	}
	waittest.Until(t, "the caller's thread has ended", func() bool {
		return !exists(fmt.Sprintf("/proc/self/task/%d", thread))
	})
	pid := pidOf(t, r)
	for range 20 { // the signal is delivered at once; twenty pings are ample
		if err := r.Check(t.Context()); err != nil || gone(pid) {
			t.Fatalf("the child ended with its caller's thread: %v", err)
		}
	}
	if pidOf(t, r) != pid || book.count("ended") != 0 {
		t.Error("the child was restarted")
	}
}
