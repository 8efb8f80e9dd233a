package redisd

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	readyTimeout = 30 * time.Second      // to load its file; an empty one takes 20 ms
	readyPoll    = 2 * time.Millisecond  // between two pings until it is ready
	stopTimeout  = 5 * time.Second       // to write its file and exit before it is killed
	restartFirst = 50 * time.Millisecond // wait before the first restart, doubled each time
	restartMax   = 5 * time.Second       // maximum wait between two restarts
	restartCalm  = 30 * time.Second      // running time after which the wait is restartFirst again
)

// errEnded is the cause of an exit with status 0 that was not requested.
var errEnded = errors.New("ended by itself")

// child is a redis-server that runs as a child process.
type child struct {
	program string
	dir     string // its working directory: the append-only file
	socket  string // unchanged by restarts, so that clients reconnect
	pidFile string
	log     *slog.Logger
	output  *output

	stopOnce sync.Once
	stopping chan struct{} // closed to stop it
	stopped  chan struct{} // closed when supervise has returned
	ready    chan struct{} // closed when it has answered for the first time

	mu      sync.Mutex
	process *os.Process // nil between two runs
	failure error       // why the first run ended before it was ready
}

// startChild runs redis-server on data/redis and returns when it answers. If it cannot read
// the file of an earlier run, the file is moved aside: it holds only nudges, which are no
// reason to refuse to start.
func startChild(ctx context.Context, program, data string, log *slog.Logger) (*child, error) {
	pidFile := filepath.Join(data, "redis.pid")
	if err := stopLeftover(ctx, pidFile, log); err != nil {
		return nil, err
	}
	dir := filepath.Join(data, "redis")
	c, err := launch(ctx, program, dir, pidFile, log)
	if err == nil || ctx.Err() != nil {
		return c, err
	}
	aside := filepath.Join(data, "redis.unreadable")
	if !moveAside(dir, aside) {
		return nil, err
	}
	c, again := launch(ctx, program, dir, pidFile, log)
	if again != nil {
		// The file was not the cause: move it back and return the first error.
		return nil, errors.Join(err, os.RemoveAll(dir), os.Rename(aside, dir))
	}
	log.Warn("redis could not read its file and started without it; waiting work is nudged again from the database", "moved_to", aside,
		"error", err)
	return c, nil
}

// moveAside renames a folder if it is not empty, and replaces an earlier one at that place.
func moveAside(dir, aside string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return false
	}
	return os.RemoveAll(aside) == nil && os.Rename(dir, aside) == nil
}

func launch(ctx context.Context, program, dir, pidFile string, log *slog.Logger) (*child, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	socket, err := socketFor(filepath.Dir(pidFile))
	if err != nil {
		return nil, err
	}
	c := &child{
		program: program, dir: dir, pidFile: pidFile, log: log,
		socket: socket, output: &output{log: log},
		stopping: make(chan struct{}), stopped: make(chan struct{}), ready: make(chan struct{}),
	}
	go c.supervise()
	if err := c.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, c.close(ctx))
	}
	return c, nil
}

// command is the child's complete configuration: it reads no configuration file.
func (c *child) command() *exec.Cmd {
	cmd := exec.Command(c.program,
		"--port", "0", "--unixsocket", c.socket, "--unixsocketperm", "700",
		"--dir", ".", "--save", "", "--appendonly", "yes", "--appendfsync", "everysec",
		"--maxmemory", "0", "--maxmemory-policy", "noeviction",
		"--databases", "1", "--daemonize", "no", "--loglevel", "notice", "--logfile", "")
	cmd.Dir = c.dir
	// Our environment is not passed on: it may contain the master key.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	cmd.Stdout, cmd.Stderr = c.output, c.output
	// A fork that rewrites the file may keep the output open after its parent has ended.
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = childAttributes()
	return cmd
}

// supervise runs the child and restarts it until it is stopped. It locks its thread: the
// kernel ends the child when the thread that started it ends, not when the process does, and
// Go may end any thread that no goroutine has locked.
func (c *child) supervise() {
	defer close(c.stopped)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	delay := restartFirst
	for {
		begun := time.Now()
		err := c.run()
		select {
		case <-c.stopping:
			return
		default:
		}
		select {
		case <-c.ready:
		default:
			c.mu.Lock()
			c.failure = err
			c.mu.Unlock()
			return
		}
		if time.Since(begun) >= restartCalm {
			delay = restartFirst
		}
		c.log.Warn("embedded redis ended, restarting it", "error", err, "in", delay)
		select {
		case <-time.After(delay):
		case <-c.stopping:
			return
		}
		delay = min(2*delay, restartMax)
	}
}

// run starts the child and returns when it has ended.
func (c *child) run() error {
	cmd := c.command()
	c.mu.Lock()
	select {
	case <-c.stopping:
		c.mu.Unlock()
		return nil
	default:
	}
	if err := cmd.Start(); err != nil {
		c.mu.Unlock()
		return err
	}
	c.process = cmd.Process
	c.mu.Unlock()
	if err := writePID(c.pidFile, cmd.Process.Pid, c.socket); err != nil {
		c.log.Warn("embedded redis: cannot record its process id", "error", err)
	}

	err := cmd.Wait()
	c.mu.Lock()
	c.process = nil
	c.mu.Unlock()
	// Its last line has the cause, such as a file that it cannot read.
	return fmt.Errorf("redis-server: %w, last line: %q", cmp.Or(err, errEnded), c.output.lastLine())
}

// awaitReady returns when the child answers.
func (c *child) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		last := ping(ctx, c.socket)
		if last == nil {
			close(c.ready)
			return nil
		}
		select {
		case <-c.stopped:
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.failure
		case <-ctx.Done():
			return fmt.Errorf("redis-server does not answer: %w", last)
		case <-time.After(readyPoll):
		}
	}
}

// ping opens its own connection: the client library waits a second after a few refused
// connections, fifty times as long as a start takes. A server that is still loading its file
// answers with LOADING.
func ping(ctx context.Context, socket string) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(checkTimeout)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	answer := make([]byte, 64)
	n, err := conn.Read(answer)
	if err == nil && !bytes.HasPrefix(answer[:n], []byte("+PONG")) {
		err = fmt.Errorf("the answer to PING is %q", answer[:n])
	}
	return err
}

// close stops the child: on SIGTERM it writes its file and exits, as for SHUTDOWN. After
// stopTimeout, or when ctx ends, it is killed.
func (c *child) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	c.mu.Lock()
	c.stopOnce.Do(func() { close(c.stopping) })
	c.signal(syscall.SIGTERM)
	c.mu.Unlock()
	select {
	case <-c.stopped:
	case <-ctx.Done():
		c.log.Warn("embedded redis does not stop, killing it")
		c.mu.Lock()
		c.signal(syscall.SIGKILL)
		c.mu.Unlock()
		<-c.stopped
	}
	return errors.Join(removeSocket(c.socket), ignoreMissing(os.Remove(c.pidFile)))
}

// signal is called with mu held. Between two runs it does nothing.
func (c *child) signal(s os.Signal) {
	if c.process != nil {
		_ = c.process.Signal(s)
	}
}

// output writes the child's output to our log and keeps the last line, which has the cause of
// an exit.
type output struct {
	log  *slog.Logger
	mu   sync.Mutex
	last string
}

// Write takes whole lines, as redis-server writes them.
func (o *output) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		text := strings.TrimSpace(string(line))
		if text == "" {
			continue
		}
		o.log.Debug("redis-server: " + text)
		o.mu.Lock()
		o.last = text
		o.mu.Unlock()
	}
	return len(p), nil
}

func (o *output) lastLine() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}
