// The commands that manage an installation: tokens, operators, verify, configuration.

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"text/tabwriter"
	"time"

	"backstop/internal/access"
	"backstop/internal/app"
	"backstop/internal/audit"
	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/internal/settings"
	"backstop/internal/verify"

	"github.com/alecthomas/kong"
)

type tokenCmd struct {
	Add struct {
		Name      string `arg:""`
		Scope     string `required:"" help:"What the token may do: one or more of monitor, control and compensate, separated by commas."`
		Merchants string `help:"The merchants to which the token is limited: codes, separated by commas. Without it, all."`
	} `cmd:"" help:"Create a token; it is printed once."`
	List   struct{} `cmd:"" help:"List tokens."`
	Revoke struct {
		Name string `arg:""`
	} `cmd:"" help:"Revoke a token."`
}

func (t *tokenCmd) Run(ctx context.Context, k *kong.Context, g *globals, std streams) error {
	c, err := g.load()
	if err != nil {
		return err
	}
	d, keys, err := openWithKeys(ctx, c, std, keysToApply)
	if err != nil {
		return err
	}
	defer d.Close()
	tokens := access.NewTokens(d, keys)
	switch k.Selected().Name {
	case "add":
		secret, err := tokens.Add(ctx, t.Add.Name, t.Add.Scope, t.Add.Merchants)
		return done(std, err, "%s", secret)
	case "revoke":
		return done(std, tokens.Revoke(ctx, t.Revoke.Name), "token %s is revoked", t.Revoke.Name)
	}
	list, err := tokens.List(ctx)
	w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	for _, l := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", l.Name, l.Scope, moment(&l.CreatedAt), ended(l.RevokedAt, "revoked")+limitedTo(l.Merchants),
			lastUse(l.UsedAt))
	}
	w.Flush()
	return err
}

// done prints what a command has changed, unless it failed. Without a change it is true as well: the
// line says how things are now.
func done(std streams, err error, format string, args ...any) error {
	if err == nil {
		fmt.Fprintf(std.out, format+"\n", args...)
	}
	return err
}

type operatorCmd struct {
	Add struct {
		Name          string `arg:""`
		Role          string `required:"" help:"One or more of viewer, support, ops, finance, lead, admin, auditor, merchant and roles of your own, separated by commas."`
		Merchants     string `help:"The merchants to which the user is limited: codes, separated by commas. Without it, all."`
		PasswordStdin bool   `help:"Read the password from standard input instead of creating a one-time one."`
	} `cmd:"" help:"Add a console user."`
	List    struct{} `cmd:"" help:"List console users."`
	Disable struct {
		Name string `arg:""`
	} `cmd:"" help:"Disable a console user."`
	Enable struct {
		Name string `arg:""`
	} `cmd:"" help:"Enable a disabled console user, with the password as it was."`
	ResetPassword struct {
		Name string `arg:""`
	} `cmd:"" help:"Give a console user a new one-time password."`
	ResetTotp struct {
		Name string `arg:""`
	} `cmd:"" help:"Take the second factor of a console user away, and end all sessions."`
	Link struct {
		Name    string `arg:""`
		Subject string `arg:"" help:"The person's subject (sub) at the provider of BACKSTOP_OIDC_ISSUER."`
	} `cmd:"" help:"Let a console user sign in at the provider instead of by password."`
	Role struct {
		Name string `arg:""`
		Role string `arg:"" help:"One or more of viewer, support, ops, finance, lead, admin, auditor, merchant and roles of your own, separated by commas."`
	} `cmd:"" help:"Replace the roles of a console user."`
	Merchants struct {
		Name  string `arg:""`
		Codes string `arg:"" optional:"" help:"Codes, separated by commas; none = all merchants."`
	} `cmd:"" help:"Limit a console user to merchants."`
	Token struct {
		Name    string        `arg:""`
		Expires time.Duration `default:"720h" help:"How long the token is valid."`
		Revoke  bool          `help:"Revoke all tokens of the operator instead."`
	} `cmd:"" help:"Create a personal API token of a console user; it is printed once."`
}

func (o *operatorCmd) Run(ctx context.Context, k *kong.Context, g *globals, std streams) error {
	var password string
	if k.Selected().Name == "add" && o.Add.PasswordStdin {
		raw, err := io.ReadAll(io.LimitReader(std.in, 4096))
		if err != nil {
			return fmt.Errorf("read the password: %w", err)
		}
		if password = strings.TrimRight(string(raw), "\r\n"); password == "" {
			return errors.New("--password-stdin was given, but standard input has no password")
		}
	}
	c, err := g.load()
	if err != nil {
		return err
	}
	d, keys, err := openWithKeys(ctx, c, std, keysToApply)
	if err != nil {
		return err
	}
	defer d.Close()
	operators := access.NewOperators(d, audit.New(d, keys))
	switch k.Selected().Name {
	case "add":
		oneTime, err := operators.Add(ctx, o.Add.Name, o.Add.Role, password, o.Add.Merchants)
		return withPassword(std, oneTime, done(std, err, "operator %s is added, with the roles %s", o.Add.Name, o.Add.Role))
	case "reset-password":
		oneTime, err := operators.ResetPassword(ctx, o.ResetPassword.Name)
		return withPassword(std, oneTime, done(std, err, "operator %s has a new password, and all sessions are ended", o.ResetPassword.Name))
	case "disable":
		return done(std, operators.Disable(ctx, o.Disable.Name), "operator %s is disabled", o.Disable.Name)
	case "reset-totp":
		return done(std, operators.ResetSecond(ctx, o.ResetTotp.Name), "operator %s has no second factor, and all sessions are ended",
			o.ResetTotp.Name)
	case "enable":
		return done(std, operators.Enable(ctx, o.Enable.Name), "operator %s is enabled", o.Enable.Name)
	case "link":
		return done(std, o.link(ctx, c, operators), "operator %s signs in at %s as %s", o.Link.Name, c.OIDCIssuer, o.Link.Subject)
	case "role":
		return done(std, operators.SetRoles(ctx, o.Role.Name, o.Role.Role), "operator %s has the roles %s", o.Role.Name, o.Role.Role)
	case "merchants":
		limit := cmp.Or(o.Merchants.Codes, "all merchants")
		return done(std, operators.SetMerchants(ctx, o.Merchants.Name, o.Merchants.Codes), "operator %s sees %s", o.Merchants.Name, limit)
	case "token":
		return o.token(ctx, access.NewPersonalTokens(d, keys), std)
	default:
		return listOperators(ctx, operators, std.out)
	}
}

// withPassword prints a one-time password, after what was done.
func withPassword(std streams, oneTime string, err error) error {
	if err == nil && oneTime != "" {
		fmt.Fprintf(std.out, "one-time password: %s\n", oneTime)
	}
	return err
}

func (o *operatorCmd) link(ctx context.Context, c config.Config, operators *access.Operators) error {
	switch {
	case c.OIDCIssuer == "":
		return errors.New("there is no provider: set BACKSTOP_OIDC_ISSUER")
	case o.Link.Name == c.BreakGlass:
		return errors.New("the operator of BACKSTOP_BREAK_GLASS must keep the password")
	}
	return operators.Link(ctx, o.Link.Name, c.OIDCIssuer, o.Link.Subject)
}

func (o *operatorCmd) token(ctx context.Context, tokens *access.PersonalTokens, std streams) error {
	if o.Token.Revoke {
		return done(std, tokens.Revoke(ctx, o.Token.Name), "operator %s has no personal token", o.Token.Name)
	}
	secret, err := tokens.Add(ctx, o.Token.Name, o.Token.Expires)
	return done(std, err, "%s", secret)
}

func listOperators(ctx context.Context, operators *access.Operators, out io.Writer) error {
	list, err := operators.List(ctx)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, l := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.Name, l.Roles, moment(&l.CreatedAt), ended(l.DisabledAt, "disabled")+limitedTo(l.Merchants))
	}
	w.Flush()
	return err
}

func limitedTo(m access.Merchants) string {
	if m == "" {
		return ""
	}
	return "  merchants " + string(m)
}

func moment(us *int64) string { return time.UnixMicro(*us).UTC().Format(time.RFC3339) }

func lastUse(at *int64) string {
	if at == nil {
		return "not used yet"
	}
	return "used " + moment(at)
}

func ended(at *int64, word string) string {
	if at == nil {
		return "active"
	}
	return word + " " + moment(at)
}

type verifyCmd struct {
	JSON bool `help:"Write the report as JSON."`
}

func (v *verifyCmd) Run(ctx context.Context, g *globals, std streams) error {
	c, err := g.load()
	if err != nil {
		return err
	}
	d, err := openReadOnly(ctx, c)
	if err != nil {
		return err
	}
	defer d.Close()
	report, err := verifyBooks(ctx, c, d, func(p verify.Progress) {
		if terminal(std.err) {
			progress(std.err, "%s: %d rows", p.Invariant, p.Examined)
		}
	})
	if terminal(std.err) {
		fmt.Fprint(std.err, "\r\x1b[K")
	}
	if err != nil {
		return err
	}
	nothing := report.OK() && report.Examined() == 0 // the report would say that the books are in order
	switch {
	case v.JSON:
		err = json.NewEncoder(std.out).Encode(report)
	case !nothing:
		err = report.WriteText(std.out)
	}
	switch {
	case err != nil:
		return err
	case !report.OK():
		return errViolations
	case nothing:
		return errors.New("there is nothing to verify: the database has no rows: check that it is the right one")
	}
	return nil
}

type configCmd struct {
	JSON bool `help:"Write JSON."`
}

func (c *configCmd) Run(g *globals, std streams) error {
	loaded, err := g.load()
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(std.out).Encode(loaded.Effective())
	}
	w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	for _, r := range loaded.Effective() {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.Name, r.Value, r.Origin)
	}
	return w.Flush()
}

// verifyBooks verifies the books of a database with the keys of the installation.
func verifyBooks(ctx context.Context, c config.Config, d *db.DB, progress func(verify.Progress)) (verify.Report, error) {
	keys, err := app.KeysToRead(c)
	if err != nil {
		return verify.Report{}, err
	}
	if keys, err = settings.WithRetired(ctx, d, keys); err != nil {
		return verify.Report{}, err
	}
	return verify.Run(ctx, d, keys, progress)
}

type versionCmd struct{}

func (*versionCmd) Run(std streams) error {
	_, err := fmt.Fprintln(std.out, about())
	return err
}

func about() string {
	return fmt.Sprintf("backstop %s commit %s date %s %s", build.Version, build.Commit, build.Date, runtime.Version())
}

// known returns the build with what the compiler noted where nothing else is given.
func (b Build) known() Build {
	info, _ := debug.ReadBuildInfo()
	noted := func(key string) string {
		if info != nil {
			for _, s := range info.Settings {
				if s.Key == key {
					return s.Value
				}
			}
		}
		return "unknown"
	}
	b.Commit, b.Date = cmp.Or(b.Commit, noted("vcs.revision")), cmp.Or(b.Date, noted("vcs.time"))
	return b
}
