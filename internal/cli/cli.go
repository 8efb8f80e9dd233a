// Package cli is the command table, and what each command does.
package cli

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
	"backstop/internal/act"
	"backstop/internal/app"
	"backstop/internal/base/config"
	"backstop/internal/base/logbuffer"
	"backstop/internal/command/demo"
	"backstop/internal/settings/apply"

	"github.com/alecthomas/kong"
)

// build is what Main was given.
var build = Build{Version: "dev"}.known()

// Build is what the release build says of a program; Commit and Date, which is the commit's (RFC 3339),
// may be empty where the compiler saw the repository.
type Build struct{ Version, Commit, Date string }

// Exit codes: done; failed or violations found; wrong usage; a dry run found a
// difference.
const (
	exitDone = iota
	exitFailed
	exitUsage
	exitDifferent
)

// errViolations ends a command that found violations or differences, which it has printed.
var errViolations = errors.New("violations found")

// errDifferent ends a dry run with a difference, which it has printed.
var errDifferent = errors.New("there is a difference")

// usageError marks wrong usage.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

type globals struct {
	Config  string           `help:"Configuration file (default: backstop.yaml if it exists)." type:"path" placeholder:"FILE"`
	Version kong.VersionFlag `help:"Version, commit, its date, and Go version."`
}

type commands struct {
	globals

	Serve      serveCmd          `cmd:"" default:"withargs" help:"Serve callbacks, API and workers (the default)."`
	Migrate    migrateCmd        `cmd:"" help:"Change the schema only."`
	Apply      applyCmd          `cmd:"" help:"Create or update what a file declares."`
	Export     exportCmd         `cmd:"" help:"Write the stored settings as a file for apply, with references in place of secrets."`
	Import     importCmd         `cmd:"" help:"Import orders from another system, or compare them."`
	Token      tokenCmd          `cmd:"" help:"Manage API tokens of services."`
	Operator   operatorCmd       `cmd:"" help:"Manage console users."`
	Compensate compensateCmd     `cmd:"" help:"Compensations: stuck calls, writes and messages that must be repeated."`
	Sweep      sweepCmd          `cmd:"" help:"Check everything unfinished now and push what was lost; exit 1 if figures or books differ."`
	Statement  statementCmd      `cmd:"" help:"Print one day of a merchant's account."`
	Verify     verifyCmd         `cmd:"" help:"Check the books; exit 1 on any violation."`
	Backup     backupCmd         `cmd:"" help:"Write a copy of the SQLite database, also while the server runs, and verify it."`
	Restore    restoreCmd        `cmd:"" help:"Put a backup in the place of the SQLite database, with the server stopped."`
	Evidence   verifyEvidenceCmd `cmd:"" name:"verify-evidence" help:"Check a signed evidence file, offline."`
	Reseal     resealCmd         `cmd:"" help:"Reseal all secrets under the first master key."`
	Settings   configCmd         `cmd:"" name:"config" help:"Print the effective configuration with the origin of each value."`
	Demo       demoCmd           `cmd:"" help:"Simulate buyers, suppliers and merchants against a running server, or, where none answers, beside one of its own, as serve --demo."`
	Supplier   supplierCmd       `cmd:"" help:"Try the settings of a supplier, offline."`
	Callback   callbackCmd       `cmd:"" help:"Send a callback that this program signs as a configured supplier, to a server on this machine; exit 1 if it is refused."`
	Simulate   simulateCmd       `cmd:"" help:"Simulate suppliers of all kinds with their real APIs; prints their declaration for apply."`
	Testmode   testmodeCmd       `cmd:"" help:"Manage test mode."`
	Listen     listenCmd         `cmd:"" help:"Pass the notifications of test mode to a program on this machine, until interrupted."`
	Trigger    triggerCmd        `cmd:"" help:"Bring an event about in test mode, so that its notification is sent."`
	Bench      benchCmd          `cmd:"" help:"Measure this machine and the product on it."`
	Health     healthCmd         `cmd:"" help:"Check whether the server is ready; exit 1 if it is not."`
	Doctor     doctorCmd         `cmd:"" help:"Check settings, keys, database, Redis, clocks, disk and reachability; exit 1 if something is wrong."`
	Completion completionCmd     `cmd:"" help:"Print the completion of commands and flags for a shell."`
	Man        manCmd            `cmd:"" help:"Print the man page."`
	About      versionCmd        `cmd:"" name:"version" help:"Print version, commit, its date, and Go version."`
}

// Main runs the program and returns its exit code.
func Main(b Build) int {
	build = b.known()
	// The files of this process (database, keys, files of Redis) are private to its user.
	syscall.Umask(0o077)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// streams are the process's own; commands write results to out.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	var c commands
	exited := -1
	parser, err := kong.New(&c, kong.Name("backstop"),
		kong.Description("A backstop for payments: every callback accepted, every merchant notified."),
		kong.Writers(out, errOut), kong.Exit(func(code int) { exited = code }), kong.Vars{"version": about()},
		kong.BindTo(ctx, (*context.Context)(nil)))
	if err != nil {
		panic(err) // the command table itself is wrong
	}
	k, err := parser.Parse(args)
	if exited >= 0 {
		return exited // --help, --version
	}
	if err == nil {
		err = missingSubcommand(k.Selected())
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
	writeLastError(errOut, fmt.Sprintf("backstop: %s\n", message(err)))
	if wrongUsage(err) {
		return exitUsage
	}
	return exitFailed
}

// lastErrorTime bounds the wait for the reader of standard error at exit.
const lastErrorTime = time.Second

// writeLastError writes the error that ends the program. A reader that has stopped reading does
// not block the exit.
func writeLastError(w io.Writer, text string) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = io.WriteString(w, text)
	}()
	select {
	case <-written:
	case <-time.After(lastErrorTime):
	}
}

// missingSubcommand returns an error for a command without its subcommand, which the parser
// accepts if one Run serves several subcommands.
func missingSubcommand(command *kong.Node) error {
	if len(command.Children) == 0 {
		return nil
	}
	var names []string
	for _, c := range command.Children {
		names = append(names, c.Name)
	}
	return fmt.Errorf("%s: missing subcommand: one of %s", command.Name, strings.Join(names, ", "))
}

// wrongUsage reports whether the command line or the configuration is wrong.
func wrongUsage(err error) bool {
	var u usageError
	return errors.As(err, &u) || slices.ContainsFunc([]error{
		app.ErrUsage, access.ErrName, access.ErrRole, access.ErrRoleLimit, access.ErrLimit, access.ErrScope,
	}, func(e error) bool { return errors.Is(err, e) }) || isField(err)
}

// isField reports whether the error is about a word of the command line.
func isField(err error) bool {
	var f *act.FieldError
	return errors.As(err, &f)
}

// message returns an error in one line, even if a library's error has several. Only the problems
// of a file have one line each.
func message(err error) string {
	var file *apply.Invalid
	if errors.As(err, &file) {
		return err.Error()
	}
	// The errors of the Go client, which trigger uses, begin with its name, which is the program's.
	lines := strings.FieldsFunc(strings.TrimPrefix(err.Error(), "backstop: "), func(r rune) bool { return r == '\n' })
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

// openLog returns a log to standard error, since standard output is for results. Logging never
// waits for the reader. Closing buffer writes the buffered lines.
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

// terminal reports whether a stream of the process is a terminal.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// progress shows the progress of long work: one line that is overwritten on a terminal,
// plain lines elsewhere.
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
	Demo  bool   `help:"Add traffic from simulated suppliers, merchants and buyers, in a separate folder next to the data folder; notifications may reach this machine."`

	traffic demo.Options // rate and seed of Demo
}

// A server on PostgreSQL has little live memory and much garbage: collecting half as often costs
// about 10 MB and saves a sixth of its CPU time. Near memorySoft it collects as often as
// necessary, so that a backlog does not triple the memory. With SQLite in the process, that
// would cost more and save less.
const (
	memoryGrowth = 200 // per cent, as GOGC
	memorySoft   = 384 << 20
)

// relaxGC sets the garbage collector to collect less often, unless the environment sets it.
func relaxGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(memoryGrowth)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memorySoft)
	}
}

// ignoreHangup makes SIGHUP, which a closed terminal or a log rotation sends, a line of the log.
// There is nothing to reopen or read again, and the default action would end the server without
// its shutdown.
func ignoreHangup(log *slog.Logger) (stop func()) {
	hangups, ended := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		for {
			select {
			case <-hangups:
				log.Info("SIGHUP is ignored: to stop the server, send SIGTERM")
			case <-ended:
				return
			}
		}
	}()
	return func() {
		signal.Ignore(syscall.SIGHUP) // until the process ends
		close(ended)
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
		relaxGC()
	}
	if s.Demo {
		if err := demoConfig(&c); err != nil {
			return err
		}
	}
	// A closed pipe on standard output or standard error must not end the server.
	signal.Ignore(syscall.SIGPIPE)
	log, buffer := openLog(c, std.err)
	defer buffer.Close()
	defer ignoreHangup(log)()
	// The first signal stops the server; the next one ends its drain.
	again := make(chan os.Signal, 1)
	stopped := context.AfterFunc(ctx, func() { signal.Notify(again, os.Interrupt, syscall.SIGTERM) })
	defer signal.Stop(again)
	defer stopped()
	a, err := app.New(ctx, app.Options{
		Config: c, Roles: roles, Log: log, LogState: buffer.Err, Out: std.out, EndDrain: again,
		Version: build.Version, Commit: build.Commit, Demo: s.Demo,
	})
	if err != nil && ctx.Err() != nil {
		return nil // stopped during startup
	}
	if err != nil {
		return err
	}
	defer a.Close()
	if s.Demo {
		go runDemo(ctx, a, c, std, s.traffic)
	}
	return a.Run(ctx)
}
