package amqp

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"backstop/internal/base/egress"
)

// ErrTarget means that a URL cannot be used. Its text never contains the URL, which might
// contain a password.
var ErrTarget = errors.New("bad amqp address")

// maxName bounds names of exchanges and routing keys: short strings in AMQP.
const maxName = 255

// target is where a message goes.
type target struct {
	scheme   string // amqp or amqps
	address  string // host:port
	host     string
	vhost    string
	exchange string // empty = the default exchange, which routes to the queue of that name
	key      string // empty = the event's type
}

// CheckTarget checks a URL: amqps://host[:port]/vhost?exchange=x&routing_key=y. Errors are
// ErrTarget.
func CheckTarget(raw string) error {
	_, err := parse(raw)
	return err
}

func parse(raw string) (target, error) {
	wrong := func(format string, args ...any) (target, error) {
		return target{}, fmt.Errorf("%w: %s", ErrTarget, fmt.Sprintf(format, args...))
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return wrong("cannot be read as a URL")
	case u.Scheme != "amqp" && u.Scheme != "amqps" || u.Opaque != "":
		return wrong("must begin with amqps:// (or amqp:// inside an allowed range)")
	case u.User != nil:
		return wrong("the login belongs in the credentials, not in the address")
	case u.Fragment != "":
		return wrong("must not have a fragment (#)")
	}
	if err := egress.CheckHost(u.Hostname()); err != nil {
		return wrong("%v", err)
	}
	t := target{scheme: u.Scheme, host: u.Hostname(), vhost: "/"}
	standard := map[string]string{"amqp": "5672", "amqps": "5671"}[u.Scheme]
	port, err := strconv.ParseUint(cmp.Or(u.Port(), standard), 10, 16)
	if err != nil || port == 0 {
		return wrong("the port must be 1 to 65535")
	}
	t.address = net.JoinHostPort(t.host, strconv.FormatUint(port, 10))
	if path := strings.TrimPrefix(u.EscapedPath(), "/"); path != "" {
		if t.vhost, err = url.PathUnescape(path); err != nil || strings.Contains(path, "/") || len(t.vhost) > maxName {
			return wrong("the path is one virtual host (write / in its name as %%2f)")
		}
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return wrong("the part after ? cannot be read")
	}
	for name, values := range query {
		switch {
		case name != "exchange" && name != "routing_key":
			return wrong("only exchange and routing_key are allowed after ?")
		case len(values) != 1 || len(values[0]) > maxName || strings.ContainsFunc(values[0], func(c rune) bool { return c < ' ' }):
			return wrong("%s must be given once, in at most %d bytes", name, maxName)
		}
	}
	t.exchange, t.key = query.Get("exchange"), query.Get("routing_key")
	if t.exchange == "" && t.key == "" {
		return wrong("exchange or routing_key is missing: the default exchange needs the name of a queue")
	}
	return t, nil
}
