package kafka

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"backstop/internal/base/egress"
)

// ErrTarget means that a URL cannot be used. Its text never contains the URL, which might
// contain a password.
var ErrTarget = errors.New("bad kafka address")

const (
	// maxBrokers is enough to discover the others: brokers name each other.
	maxBrokers = 10
	// maxTopic is Kafka's limit.
	maxTopic     = 249
	standardPort = "9092"
)

// target is where a message goes.
type target struct {
	scheme  string // kafka or kafkas (TLS)
	brokers []string
	topic   string
	sasl    string // mechanism, used if there is a user name
}

// mechanisms are the supported kinds of login.
var mechanisms = map[string]bool{"plain": true, "scram-sha-256": true, "scram-sha-512": true}

// CheckTarget checks a URL:
// kafkas://broker[:port][,broker[:port]…]/topic[?sasl=plain|scram-sha-256|scram-sha-512].
// Errors are ErrTarget.
func CheckTarget(raw string) error {
	_, err := parse(raw)
	return err
}

// parse does not use net/url for the brokers: a URL has only one host.
func parse(raw string) (target, error) {
	wrong := func(format string, args ...any) (target, error) {
		return target{}, fmt.Errorf("%w: %s", ErrTarget, fmt.Sprintf(format, args...))
	}
	scheme, rest, _ := strings.Cut(raw, "://")
	if scheme != "kafka" && scheme != "kafkas" {
		return wrong("must begin with kafkas:// (or kafka:// inside an allowed range)")
	}
	rest, query, _ := strings.Cut(rest, "?")
	hosts, topic, _ := strings.Cut(rest, "/")
	t := target{scheme: scheme, topic: topic, sasl: "plain"}
	if strings.Contains(hosts, "@") {
		return wrong("the login belongs in the credentials, not in the address")
	}
	list := strings.Split(hosts, ",")
	if len(list) > maxBrokers {
		return wrong("at most %d brokers", maxBrokers)
	}
	for _, broker := range list {
		address, err := addressOf(broker)
		if err != nil {
			return wrong("%v", err)
		}
		t.brokers = append(t.brokers, address)
	}
	if topic == "" || topic == "." || topic == ".." || len(topic) > maxTopic || strings.ContainsFunc(topic, notInTopic) {
		return wrong("the path is the topic: 1 to %d letters, digits, dots, hyphens and underscores", maxTopic)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return wrong("the part after ? cannot be read")
	}
	for name, v := range values {
		if name != "sasl" || len(v) != 1 || !mechanisms[v[0]] {
			return wrong("only sasl=plain, sasl=scram-sha-256 or sasl=scram-sha-512 is allowed after ?")
		}
		t.sasl = v[0]
	}
	return t, nil
}

// addressOf adds the standard port to a broker without one.
func addressOf(broker string) (string, error) {
	host, port, err := net.SplitHostPort(broker)
	if err != nil {
		host, port = strings.Trim(broker, "[]"), standardPort
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", errors.New("a broker's port must be 1 to 65535")
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return net.JoinHostPort(host, port), nil
	}
	return net.JoinHostPort(host, port), egress.CheckHost(host)
}

func notInTopic(c rune) bool {
	letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	return !letter && (c < '0' || c > '9') && !strings.ContainsRune("._-", c)
}
