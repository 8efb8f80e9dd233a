package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
)

// Source is where the configuration is read from.
type Source struct {
	// Environ is "NAME=value" as from os.Environ. An empty value counts as not set.
	Environ []string
	// File is the path given with --config; it must exist. "" stands for
	// backstop.yaml in the working directory, if there is one.
	File string
}

// Origin says where a value came from.
type Origin string

// Origins, weakest first.
const (
	FromDefault Origin = "default"
	FromFile    Origin = "file"
	FromEnv     Origin = "env"
)

// given is one value as somebody wrote it.
type given struct {
	text   string
	label  string // how to name it to the one who wrote it
	origin Origin
}

// Load reads the configuration. Its error is one line that holds every problem
// found, each with the name, the value (masked where secret) and what is
// accepted instead.
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

// refuse says what to mend. bad is the piece that is not accepted. It is masked
// where it holds an @ too: a URL with a password in it may stand at a wrong name.
func refuse(s Setting, g given, bad string) string {
	const most = 80 // characters; enough to recognise a value, too few to fill a log
	if s.Secret || strings.Contains(bad, "@") {
		bad = masked
	}
	if len(bad) > most {
		bad = bad[:most] + "…"
	}
	return fmt.Sprintf("%s: %q is not accepted: use %s", g.label, bad, s.Accepts())
}

// readEnviron returns the program's variables by name without prefix, and a
// problem for each name that is not known: a typing error would otherwise run
// with a default that nobody wanted.
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

// injected tells the variables that Kubernetes sets in every container beside a
// service named "backstop".
func injected(name string) bool {
	return strings.HasPrefix(name, "PORT") || strings.HasPrefix(name, "SERVICE_")
}

func isKnown(name string) bool {
	for _, s := range settings {
		if s.Name == name {
			return true
		}
	}
	return false
}

// contradictions finds values that are fine alone and wrong together.
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
		fmt.Sprintf("BACKSTOP_ADMIN_LISTEN and BACKSTOP_LISTEN are both %s: give the console another address, or leave the first out", c.Listen))
	rule(c.DatabaseURL.IsSet() && c.DatabasePool <= c.CommitWriters,
		fmt.Sprintf("BACKSTOP_DATABASE_POOL (%d) must be more than BACKSTOP_COMMIT_WRITERS (%d): raise the first or lower the second", c.DatabasePool, c.CommitWriters))
	rule(c.CallbackQueue < c.CommitBatch,
		fmt.Sprintf("BACKSTOP_CALLBACK_QUEUE (%d) must not be less than BACKSTOP_COMMIT_BATCH (%d): raise the first or lower the second", c.CallbackQueue, c.CommitBatch))
	rule(c.OrderExpiry > c.OrderExpiryMax,
		fmt.Sprintf("BACKSTOP_ORDER_EXPIRY (%s) must not be longer than BACKSTOP_ORDER_EXPIRY_MAX (%s): lower the first or raise the second", c.OrderExpiry, c.OrderExpiryMax))
	rule(c.SessionIdle > c.SessionMax,
		fmt.Sprintf("BACKSTOP_SESSION_IDLE (%s) must not be longer than BACKSTOP_SESSION_MAX (%s): lower the first or raise the second", c.SessionIdle, c.SessionMax))
	return found
}

// PublicFrom makes the public URL of a server that listens on addr: a server on
// all addresses is reached as localhost. It is "" for port 0, which is not known
// before the listener is open; call it again with the listener's address.
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
