// Command testrun runs passes of go test and says where their time went: the slowest packages
// and tests, and the share of the processors' time spent compiling. It prints the output of
// what fails, ends a run that takes longer than its limit, and closes with the counts.
//
//	testrun [-limit 45m] go test ARGUMENTS [-- NAME=VALUE go test ARGUMENTS]...
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	limit := flag.Duration("limit", 45*time.Minute, "a run that takes longer fails")
	flag.Parse()
	passes, err := parsePasses(flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeoutCause(ctx, *limit, fmt.Errorf("the tests took longer than %s", *limit))
	r := &report{out: os.Stdout, begun: time.Now()}
	for _, p := range passes {
		if err = p.run(ctx, r); err != nil {
			break
		}
	}
	cancel()
	stop()
	r.print()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
	}
	if err != nil || r.failed() {
		os.Exit(1)
	}
}

// pass is one call of go test.
type pass struct {
	environ []string
	args    []string // after "go test"
}

// parsePasses splits the command line at "--".
func parsePasses(args []string) (passes []pass, err error) {
	for len(args) > 0 {
		end := slices.Index(args, "--")
		if end < 0 {
			end = len(args)
		}
		words := args[:end]
		args = args[min(end+1, len(args)):]
		var p pass
		for len(words) > 0 && strings.Contains(words[0], "=") {
			p.environ, words = append(p.environ, words[0]), words[1:]
		}
		if len(words) < 3 || words[0] != "go" || words[1] != "test" {
			return nil, fmt.Errorf("%q is no pass: use [NAME=VALUE] go test ARGUMENTS", strings.Join(words, " "))
		}
		p.args = words[2:]
		passes = append(passes, p)
	}
	if passes == nil {
		return nil, errors.New("nothing to run: use [NAME=VALUE] go test ARGUMENTS")
	}
	return passes, nil
}

// run adds one pass to the report. A failed test is no error of run.
func (p pass) run(ctx context.Context, r *report) error {
	folder, err := os.MkdirTemp("", "testrun-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	graph := filepath.Join(folder, "actions.json")
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json", "-debug-actiongraph=" + graph}, p.args...)...)
	cmd.Env = append(os.Environ(), p.environ...)
	cmd.Stderr = os.Stderr
	// The whole group ends, with the tests and the servers that they started.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	readErr := r.read(events)
	err = cmd.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && r.failed() {
		err = nil // the report has what failed
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.cpu += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return errors.Join(err, readErr, r.readGraph(graph))
}

// event is a line of go test -json; see "go doc test2json".
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64 // seconds
}

// outcome is what became of a package or of a test.
type outcome struct {
	name    string
	elapsed time.Duration
}

// report collects the outcomes of all passes.
type report struct {
	out      io.Writer
	begun    time.Time
	packages []outcome
	tests    []outcome
	failures []string
	passed   int
	skipped  int
	cpu      time.Duration // of the processors
	compiled time.Duration // the part of cpu that compiled and linked
	// output of the tests that run or failed, by package and test.
	output  map[string][]string
	running map[string]time.Time
}

func (r *report) failed() bool { return len(r.failures) > 0 }

// read takes the events of a pass. A line that is no event is printed.
func (r *report) read(events io.Reader) error {
	r.output, r.running = map[string][]string{}, map[string]time.Time{}
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) == nil {
				r.add(e)
			} else {
				fmt.Fprint(r.out, line)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) add(e event) {
	name := e.Package
	if e.Test != "" {
		name += " " + e.Test
	}
	elapsed := time.Duration(e.Elapsed * float64(time.Second))
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "build-fail":
		r.failures = append(r.failures, e.ImportPath+" (build)")
	case "run", "start":
		r.running[name] = time.Now()
	case "output":
		r.output[name] = append(r.output[name], e.Output)
	case "skip":
		if e.Test != "" && !strings.Contains(e.Test, "/") {
			r.skipped++
		}
		r.end(name)
	case "pass":
		switch {
		case e.Test == "":
			r.packages = append(r.packages, outcome{e.Package, elapsed})
			fmt.Fprintf(r.out, "ok  \t%s\t%.1fs\n", e.Package, e.Elapsed)
		case !strings.Contains(e.Test, "/"):
			r.passed++
			r.tests = append(r.tests, outcome{name, elapsed})
		}
		r.end(name)
	case "fail":
		if e.Test == "" {
			r.packages = append(r.packages, outcome{e.Package, elapsed})
			fmt.Fprintf(r.out, "FAIL\t%s\t%.1fs\n", e.Package, e.Elapsed)
		}
		r.failures = append(r.failures, name)
		fmt.Fprint(r.out, strings.Join(r.output[name], ""))
		r.end(name)
	}
}

func (r *report) end(name string) {
	delete(r.output, name)
	delete(r.running, name)
}

// action is a step of the go command; see "go help build", -debug-actiongraph.
type action struct {
	Mode            string
	CmdUser, CmdSys time.Duration
}

// readGraph adds up what compilers and linkers used.
func (r *report) readGraph(path string) error {
	raw, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // go test ended before it began to build
	}
	if err != nil {
		return err
	}
	var actions []action
	if err := json.Unmarshal(raw, &actions); err != nil {
		return fmt.Errorf("read the go command's actions: %w", err)
	}
	for _, a := range actions {
		if strings.HasPrefix(a.Mode, "build") || strings.HasPrefix(a.Mode, "link") {
			r.compiled += a.CmdUser + a.CmdSys
		}
	}
	return nil
}

// shown is how many of the slowest are printed.
const shown = 10

func (r *report) print() {
	for _, part := range []struct {
		title string
		all   []outcome
	}{{"slowest packages", r.packages}, {"slowest tests", r.tests}} {
		slices.SortFunc(part.all, func(a, b outcome) int { return int(b.elapsed - a.elapsed) })
		fmt.Fprintf(r.out, "\n%s\n", part.title)
		for _, o := range part.all[:min(shown, len(part.all))] {
			fmt.Fprintf(r.out, "%8.1fs  %s\n", o.elapsed.Seconds(), o.name)
		}
	}
	for _, name := range r.failures {
		fmt.Fprintf(r.out, "failed: %s\n", name)
	}
	for name, since := range r.running {
		fmt.Fprintf(r.out, "still ran: %s (%.0fs)\n", name, time.Since(since).Seconds())
	}
	share := 0.0
	if r.cpu > 0 {
		share = 100 * r.compiled.Seconds() / r.cpu.Seconds()
	}
	fmt.Fprintf(r.out, "\n%.1f minutes, %.1f of the processors' time, of it %.0f %% compiling\n",
		time.Since(r.begun).Minutes(), r.cpu.Minutes(), share)
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, len(r.failures), r.skipped)
}
