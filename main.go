// Backstop takes payment suppliers' callbacks, tells merchants, and pushes
// everything that is stuck to an end.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"backstop/internal/access"
	"backstop/internal/app"
	"backstop/internal/base/config"
	"backstop/internal/base/logbuffer"
	"backstop/internal/command/apply"
	"backstop/internal/command/importer"

	"github.com/alecthomas/kong"
)

// Set by the release build; commit only where the compiler does not see the
// repository, as in the image.
var (
	version = "dev"
	commit  string
)

// Exit codes (contract): done; it failed or found violations; wrong usage; a dry run
// found a difference.
const (
	exitDone = iota
	exitFailed
	exitUsage
	exitDifferent
)

// errViolations is the end of a verify that found something; the report has said
// what.
var errViolations = errors.New("the books do not hold")

// errDifferent is the end of a dry run that found a difference, which it has printed.
var errDifferent = errors.New("there is a difference")

// usageError is an error that stands for wrong usage.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

type globals struct {
	Config  string           `help:"Configuration file (default: backstop.yaml where there is one)." type:"path" placeholder:"FILE"`
	Version kong.VersionFlag `help:"Version, commit and Go version."`
}

type cli struct {
	globals

	Serve    serveCmd          `cmd:"" default:"withargs" help:"Serve callbacks, API and workers (the default)."`
	Migrate  migrateCmd        `cmd:"" help:"Change the schema only."`
	Apply    applyCmd          `cmd:"" help:"Create or update what a file declares."`
	Export   exportCmd         `cmd:"" help:"Write what is stored as a file for apply, with references in place of secrets."`
	Import   importCmd         `cmd:"" help:"Take over orders from another system, all or nothing."`
	Token    tokenCmd          `cmd:"" help:"API tokens of services."`
	Operator operatorCmd       `cmd:"" help:"Console users."`
	Verify   verifyCmd         `cmd:"" help:"Check the books; exit 1 on any violation."`
	Evidence verifyEvidenceCmd `cmd:"" name:"verify-evidence" help:"Check a signed evidence file, offline."`
	Reseal   resealCmd         `cmd:"" help:"Seal all secrets under the current master key again."`
	Settings configCmd         `cmd:"" name:"config" help:"The effective configuration and where each value comes from."`
	Demo     demoCmd           `cmd:"" help:"Play buyers, suppliers and merchants against a running server."`
	Bench    benchCmd          `cmd:"" help:"Measure this machine and the product on it."`
	Health   healthCmd         `cmd:"" help:"Ask the server whether it is ready; exit 1 where it is not."`
	About    versionCmd        `cmd:"" name:"version" help:"Version, commit and Go version."`
}

func main() {
	// What a command makes is for its user alone: databases, keys, and what Redis writes.
	syscall.Umask(0o077)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// streams are the process's own; commands write results to out.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	var c cli
	exited := -1
	parser, err := kong.New(&c, kong.Name("backstop"), kong.Description("A backstop for payments: every callback taken, every merchant told."),
		kong.Writers(out, errOut), kong.Exit(func(code int) { exited = code }), kong.Vars{"version": about()}, kong.BindTo(ctx, (*context.Context)(nil)))
	if err != nil {
		panic(err) // the command table itself is wrong
	}
	k, err := parser.Parse(args)
	if exited >= 0 {
		return exited // --help, --version
	}
	if err == nil {
		err = wantsMore(k.Selected())
	}
	if err != nil {
		fmt.Fprintf(errOut, "backstop: %v: see backstop --help\n", err)
		return exitUsage
	}
	err = k.Run(&c.globals, streams{in, out, errOut})
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errViolations):
		return exitFailed
	case errors.Is(err, errDifferent):
		return exitDifferent
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = errors.New("interrupted: run it again")
	}
	lastWord(errOut, fmt.Sprintf("backstop: %s\n", message(err)))
	if wrongUsage(err) {
		return exitUsage
	}
	return exitFailed
}

// lastWordTime is how long the end of the program waits for who reads its errors.
const lastWordTime = time.Second

// lastWord says why the program ends. A reader that has stopped reading does not keep it
// from ending.
func lastWord(w io.Writer, text string) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = io.WriteString(w, text)
	}()
	select {
	case <-written:
	case <-time.After(lastWordTime):
	}
}

// wantsMore refuses a command that was typed without what it is to do. The parser lets
// it pass where one Run serves several of them.
func wantsMore(command *kong.Node) error {
	if len(command.Children) == 0 {
		return nil
	}
	var names []string
	for _, c := range command.Children {
		names = append(names, c.Name)
	}
	return fmt.Errorf("%s: missing subcommand: one of %s", command.Name, strings.Join(names, ", "))
}

// wrongUsage says that the command line or the configuration is to blame.
func wrongUsage(err error) bool {
	var u usageError
	return errors.As(err, &u) || slices.ContainsFunc([]error{app.ErrUsage, access.ErrName, access.ErrRole, access.ErrScope}, func(e error) bool { return errors.Is(err, e) })
}

// message is an error in one line, whatever a library says in several. Only what
// is wrong with a file has a line for each problem.
func message(err error) string {
	var file *apply.Invalid
	var orders *importer.Invalid
	if errors.As(err, &file) || errors.As(err, &orders) {
		return err.Error()
	}
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' })
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.ReplaceAll(strings.Join(lines, "; "), ":; ", ": ")
}

// load reads the configuration; a mistake in it is wrong usage.
func (g *globals) load() (config.Config, error) {
	c, err := config.Load(config.Source{Environ: os.Environ(), File: g.Config})
	if err != nil {
		return c, fmt.Errorf("%w: %w", app.ErrUsage, err)
	}
	return c, nil
}

// openLog logs to standard error, since standard output belongs to results, and never
// waits for whoever reads it. What has been logged is written when buffer is closed.
func openLog(c config.Config, errOut io.Writer) (log *slog.Logger, buffer *logbuffer.Writer) {
	form := func(w io.Writer, level slog.Level) *slog.Logger {
		o := &slog.HandlerOptions{Level: level}
		if c.LogFormat == "text" || c.LogFormat == "auto" && terminal(errOut) {
			return slog.New(slog.NewTextHandler(w, o))
		}
		return slog.New(slog.NewJSONHandler(w, o))
	}
	buffer = logbuffer.New(errOut, logbuffer.Size, func(lines int64) []byte {
		var note bytes.Buffer
		form(&note, slog.LevelWarn).Warn("log lines dropped", "lines", lines)
		return note.Bytes()
	})
	return form(buffer, c.LogLevel), buffer
}

// terminal says whether a stream of the process is one.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// progress shows how far long work is: one line that renews itself on a
// terminal, plain lines elsewhere.
func progress(w io.Writer, format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if terminal(w) {
		fmt.Fprintf(w, "\r\x1b[K%s", line)
		return
	}
	fmt.Fprintln(w, line)
}

type serveCmd struct {
	Roles string `help:"Any of web,worker,scheduler; all by default." placeholder:"LIST"`
	Demo  bool   `help:"Let simulated suppliers, merchants and buyers keep it busy, in a folder of its own beside the data folder; notifications may reach this machine."`
}

// A server beside PostgreSQL holds little for long and throws much away: collecting
// half as often costs some 10 MB and saves a sixth of its CPU. Near memorySoft it
// collects as often as it must, so that a backlog does not grow three times over.
// With SQLite inside of the process it would cost more and save less.
const (
	memoryGrowth = 200 // per cent, as GOGC
	memorySoft   = 384 << 20
)

// spendMemory leaves alone what the environment says.
func spendMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(memoryGrowth)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memorySoft)
	}
}

func (s *serveCmd) Run(ctx context.Context, g *globals, std streams) error {
	roles, err := app.ParseRoles(s.Roles)
	if err != nil {
		return err
	}
	c, err := g.load()
	if err != nil {
		return err
	}
	if c.DatabaseURL.IsSet() && !s.Demo {
		spendMemory()
	}
	if s.Demo {
		if err := stage(&c); err != nil {
			return err
		}
	}
	// Whoever read the log or the greeting may go away: that must not end the server.
	signal.Ignore(syscall.SIGPIPE)
	log, buffer := openLog(c, std.err)
	defer buffer.Close()
	// The first signal stops the server; the next ones are about its drain.
	again := make(chan os.Signal, 1)
	stopped := context.AfterFunc(ctx, func() { signal.Notify(again, os.Interrupt, syscall.SIGTERM) })
	defer signal.Stop(again)
	defer stopped()
	a, err := app.New(ctx, app.Options{Config: c, Roles: roles, Log: log, LogState: buffer.Err, Out: std.out, EndDrain: again, Version: version, Commit: builtFrom(), Demo: s.Demo})
	if err != nil && ctx.Err() != nil {
		return nil // told to stop before it had begun
	}
	if err != nil {
		return err
	}
	defer a.Close()
	if s.Demo {
		go playAlong(ctx, a, c, std)
	}
	return a.Run(ctx)
}
