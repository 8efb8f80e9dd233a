package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"

	"backstop/internal/base/db"
)

// Source is where the configuration is read from.
type Source struct {
	// Environ is "NAME=value" as from os.Environ. An empty value counts as not set.
	Environ []string
	// File is the path of --config, which must exist. "" = backstop.yaml in the working
	// directory, if there is one.
	File string
}

// Origin is the source of a value.
type Origin string

// Origins, weakest first.
const (
	FromDefault Origin = "default"
	FromFile    Origin = "file"
	FromEnv     Origin = "env"
)

// given is one value as text.
type given struct {
	text   string
	label  string // its name in messages
	origin Origin
}

// Load reads the configuration. Its error is one line with every problem, each with the
// name, the value (masked if secret) and the accepted values.
func Load(src Source) (Config, error) {
	file, problems, err := readFile(src.File)
	if err != nil {
		return Config{}, err
	}
	env, unknown := readEnviron(src.Environ)
	problems = append(problems, unknown...)

	c := Config{origins: map[string]Origin{}}
	for _, s := range settings {
		g := choose(s, env, file)
		c.origins[s.Name] = g.origin
		if g.text == "" {
			continue
		}
		if bad := s.set(reflect.ValueOf(&c).Elem().Field(s.field), g.text); bad != "" {
			problems = append(problems, refuse(s, g, bad))
		}
	}
	if len(problems) == 0 {
		problems = c.contradictions()
	}
	if len(problems) > 0 {
		return Config{}, errors.New(strings.Join(problems, "; "))
	}
	c.PublicURL, c.AdminURL = strings.TrimRight(c.PublicURL, "/"), strings.TrimRight(c.AdminURL, "/")
	if c.AdminURL == "" {
		c.AdminURL = c.PublicURL
	}
	if c.AdminURL == "" {
		c.AdminURL = PublicFrom(cmp.Or(c.AdminListen, c.Listen))
	}
	if c.PublicURL == "" {
		c.PublicURL = PublicFrom(c.Listen)
	}
	return c, nil
}

func choose(s Setting, env, file map[string]given) given {
	if g, ok := env[s.Name]; ok {
		return g
	}
	if g, ok := file[s.Name]; ok {
		return g
	}
	return given{text: s.Default, label: "the default of " + s.Env(), origin: FromDefault}
}

// refuse is the message for a value; bad is the part that is not accepted. It is also masked
// if it contains an @: it may be a URL with a password under a wrong name.
func refuse(s Setting, g given, bad string) string {
	const maxBad = 80 // bytes; enough to recognise a value
	if s.Secret || strings.Contains(bad, "@") {
		bad = masked
	}
	if len(bad) > maxBad {
		bad = bad[:maxBad] + "…"
	}
	return fmt.Sprintf("%s: %q is not accepted: use %s", g.label, bad, s.Accepts())
}

// readEnviron returns the program's variables by name without prefix, and a problem for
// each unknown name: with a typing error the default would be used unnoticed.
func readEnviron(environ []string) (map[string]given, []string) {
	known := map[string]given{}
	var problems []string
	for _, line := range environ {
		variable, text, _ := strings.Cut(line, "=")
		name, ours := strings.CutPrefix(variable, prefix)
		switch {
		case !ours || injected(name):
		case !isKnown(name):
			problems = append(problems, fmt.Sprintf("%s is not known: did you mean %s%s?", variable, prefix, nearest(name)))
		case text != "":
			known[name] = given{text: text, label: variable, origin: FromEnv}
		}
	}
	return known, problems
}

// injected reports whether Kubernetes sets the variable in every container for a service
// named "backstop".
func injected(name string) bool {
	return strings.HasPrefix(name, "PORT") || strings.HasPrefix(name, "SERVICE_")
}

func isKnown(name string) bool {
	return slices.ContainsFunc(settings, func(s Setting) bool { return s.Name == name })
}

// contradictions finds values that are valid alone and contradict each other.
func (c Config) contradictions() []string {
	var found []string
	rule := func(broken bool, problem string) {
		if broken {
			found = append(found, problem)
		}
	}
	rule(c.MasterKey.IsSet() && c.MasterKeyFile != "",
		"BACKSTOP_MASTER_KEY and BACKSTOP_MASTER_KEY_FILE are both set: keep one of them")
	rule(c.AdminListen == c.Listen && !strings.HasSuffix(c.Listen, ":0"),
		fmt.Sprintf(
			"BACKSTOP_ADMIN_LISTEN and BACKSTOP_LISTEN are both %s: use another address for the console, or do not set BACKSTOP_ADMIN_LISTEN", c.Listen))
	writer, _, _ := db.Shares(c.DatabasePool)
	rule(c.DatabaseURL.IsSet() && writer <= c.CommitWriters,
		fmt.Sprintf(
			"BACKSTOP_DATABASE_POOL (%d, of which %d write) must have more connections that write than BACKSTOP_COMMIT_WRITERS (%d): raise the first or lower the second",
			c.DatabasePool, writer, c.CommitWriters))
	rule(c.CallbackQueue < c.CommitBatch,
		fmt.Sprintf("BACKSTOP_CALLBACK_QUEUE (%d) must not be less than BACKSTOP_COMMIT_BATCH (%d): raise the first or lower the second",
			c.CallbackQueue, c.CommitBatch))
	rule(c.OrderExpiry > c.OrderExpiryMax,
		fmt.Sprintf(
			"BACKSTOP_ORDER_EXPIRY (%s) must not be longer than BACKSTOP_ORDER_EXPIRY_MAX (%s): lower the first or raise the second",
			c.OrderExpiry, c.OrderExpiryMax))
	rule(c.SessionIdle > c.SessionMax,
		fmt.Sprintf("BACKSTOP_SESSION_IDLE (%s) must not be longer than BACKSTOP_SESSION_MAX (%s): lower the first or raise the second",
			c.SessionIdle, c.SessionMax))
	rule(c.OIDCIssuer != "" && (c.OIDCClientID == "" || len(c.OIDCRoles) == 0),
		"BACKSTOP_OIDC_ISSUER needs BACKSTOP_OIDC_CLIENT_ID and BACKSTOP_OIDC_ROLES: set both")
	rule(c.OIDCIssuer == "" && (c.OIDCClientID != "" || len(c.OIDCRoles) > 0),
		"BACKSTOP_OIDC_CLIENT_ID and BACKSTOP_OIDC_ROLES do nothing without BACKSTOP_OIDC_ISSUER: set it, or remove them")
	rule(c.OIDCClientSecret.IsSet() && c.OIDCClientSecretFile != "",
		"BACKSTOP_OIDC_CLIENT_SECRET and BACKSTOP_OIDC_CLIENT_SECRET_FILE are both set: keep one of them")
	rule(c.Passwords == "off" && (c.OIDCIssuer == "" || c.BreakGlass == ""),
		"BACKSTOP_PASSWORDS=off needs BACKSTOP_OIDC_ISSUER and BACKSTOP_BREAK_GLASS, or nobody could sign in: set both")
	return found
}

// PublicFrom is the public URL of a server that listens on addr: localhost for a server on
// all addresses. It is "" for port 0, which is unknown until the listener is open; call it
// again with the listener's address.
func PublicFrom(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port == "0" {
		return ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port)
}
