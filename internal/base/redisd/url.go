package redisd

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
)

// Mode is how the servers of a Redis URL are organised.
type Mode string

// Modes, by the URL's scheme.
const (
	Single   Mode = "single"   // redis://, rediss://
	Sentinel Mode = "sentinel" // redis-sentinel://
	Cluster  Mode = "cluster"  // redis-cluster://
)

// Limits of a URL: more is a mistake, not a configuration.
const (
	maxURL   = 4096
	maxHosts = 32
)

// secret is a password that no log line, error or dump can print.
type secret string

func (secret) String() string               { return "***" }
func (secret) GoString() string             { return `"***"` }
func (secret) LogValue() slog.Value         { return slog.StringValue("***") }
func (secret) MarshalText() ([]byte, error) { return []byte("***"), nil }

// Options are the address and the credentials of a Redis.
type Options struct {
	Mode     Mode
	Addrs    []string // host:port of each server (Sentinel: of each sentinel), or one socket path
	Username string
	Password secret
	DB       int
	// Master is the sentinels' name of the master.
	Master           string
	SentinelUsername string
	SentinelPassword secret
	// TLS encrypts every connection, sentinels included; certificates are
	// verified against the system's roots.
	TLS bool
}

// Parse reads the URL of a Redis:
//
//	redis://[user:password@]host[:6379][/db]
//	rediss://…                                     the same over TLS
//	redis-sentinel://[user:password@]h1[:26379],h2/master[/db]?sentinel_username=…&sentinel_password=…&tls=true
//	redis-cluster://[user:password@]h1[:6379],h2?tls=true
//
// Reserved characters in a user name or password are percent-encoded. Errors say what is wrong
// and where, and quote nothing: in a mistyped URL, a password can be anywhere.
func Parse(raw string) (Options, error) {
	o, err := parse(raw)
	if err != nil {
		return Options{}, fmt.Errorf("redis url: %w", err)
	}
	return o, nil
}

func parse(raw string) (Options, error) {
	if len(raw) > maxURL {
		return Options{}, fmt.Errorf("longer than %d characters", maxURL)
	}
	scheme, rest, found := strings.Cut(raw, "://")
	if !found {
		return Options{}, errors.New("the scheme is missing; use redis://, rediss://, redis-sentinel:// or redis-cluster://")
	}
	var o Options
	port := "6379"
	switch strings.ToLower(scheme) {
	case "redis":
		o.Mode = Single
	case "rediss":
		o.Mode, o.TLS = Single, true
	case "redis-sentinel":
		o.Mode, port = Sentinel, "26379"
	case "redis-cluster":
		o.Mode = Cluster
	default:
		return Options{}, errors.New("unknown scheme; use redis://, rediss://, redis-sentinel:// or redis-cluster://")
	}

	authority := rest
	if end := strings.IndexAny(rest, "/?"); end >= 0 {
		authority = rest[:end]
	}
	if tail := rest[len(authority):]; !strings.Contains(authority, "@") && strings.Contains(tail, "@") {
		return Options{}, errors.New("an @ after the hosts; percent-encode @, / and ? in a password")
	}
	path, query, _ := strings.Cut(rest[len(authority):], "?")
	hosts := authority
	// The last @ ends the user part, so that an unescaped one in a password does not make
	// the rest of the password a host name.
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		hosts = authority[at+1:]
		if err := o.parseUser(authority[:at]); err != nil {
			return Options{}, err
		}
	}
	if err := o.parseHosts(hosts, port); err != nil {
		return Options{}, err
	}
	if err := o.parsePath(strings.TrimPrefix(path, "/")); err != nil {
		return Options{}, err
	}
	return o, o.parseQuery(query)
}

func (o *Options) parseUser(user string) error {
	name, password, found := strings.Cut(user, ":")
	if !found {
		return errors.New("a user name without a password; for a password alone, write :password@")
	}
	name, err := unescape(name)
	if err != nil {
		return errors.New("the user name is not correctly percent-encoded")
	}
	password, err = unescape(password)
	if err != nil {
		return errors.New("the password is not correctly percent-encoded")
	}
	if name != "" && password == "" {
		return errors.New("a user name without a password; write user:password@")
	}
	o.Username, o.Password = name, secret(password)
	return nil
}

// unescape decodes percent-encoding and leaves + as it is.
func unescape(s string) (string, error) {
	s, err := url.PathUnescape(s)
	if err == nil && strings.ContainsAny(s, "\x00\r\n") {
		return "", errors.New("control character")
	}
	return s, err
}

func (o *Options) parseHosts(list, port string) error {
	hosts := strings.Split(list, ",")
	if o.Mode == Single && len(hosts) > 1 {
		return errors.New("several hosts; only redis-sentinel:// and redis-cluster:// take several")
	}
	if len(hosts) > maxHosts {
		return fmt.Errorf("more than %d hosts", maxHosts)
	}
	for i, host := range hosts {
		addr, err := hostPort(host, port)
		if err != nil {
			return fmt.Errorf("host %d: %w", i+1, err)
		}
		o.Addrs = append(o.Addrs, addr)
	}
	return nil
}

// hostPort completes host, host:port, [v6] or [v6]:port to an address that can be dialled.
func hostPort(s, port string) (string, error) {
	host, number, hasPort := s, "", false
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return "", errors.New("the bracket of an IPv6 address is not closed")
		}
		host = s[1:end]
		rest := s[end+1:]
		if rest != "" && rest[0] != ':' {
			return "", errors.New("text after the closing bracket")
		}
		number, hasPort = strings.TrimPrefix(rest, ":"), rest != ""
		if strings.Trim(host, "0123456789abcdefABCDEF:.") != "" || !strings.Contains(host, ":") {
			return "", errors.New("the text between the brackets is not an IPv6 address")
		}
		host = "[" + host + "]"
	} else {
		host, number, hasPort = strings.Cut(s, ":")
		if host == "" {
			return "", errors.New("the host name is missing")
		}
		if strings.Trim(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") != "" {
			return "", errors.New("a character that is not allowed in a host name (percent-encode it in a password)")
		}
	}
	if !hasPort {
		return host + ":" + port, nil
	}
	n, err := number16(number)
	if err != nil || n == 0 {
		return "", errors.New("the port is not a number from 1 to 65535")
	}
	return host + ":" + strconv.Itoa(n), nil
}

// number16 parses plain digits up to 65535.
func number16(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	return int(n), err
}

func (o *Options) parsePath(path string) error {
	path = strings.TrimSuffix(path, "/")
	db := path
	switch o.Mode {
	case Cluster:
		if path != "" {
			return errors.New("a cluster has no database numbers: nothing may follow the hosts")
		}
	case Sentinel:
		master, number, _ := strings.Cut(path, "/")
		master, err := unescape(master)
		if err != nil || strings.TrimSpace(master) == "" {
			return errors.New("the master name is missing; write redis-sentinel://hosts/master-name")
		}
		o.Master, db = master, number
	}
	if db == "" {
		return nil
	}
	n, err := number16(db)
	if err != nil {
		return errors.New("the database is not a number from 0 to 65535")
	}
	o.DB = n
	return nil
}

func (o *Options) parseQuery(query string) error {
	if query == "" {
		return nil
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("the parameters after ? cannot be read")
	}
	for name, list := range values {
		if len(list) != 1 || strings.ContainsAny(list[0], "\x00\r\n") {
			return errors.New("a parameter after ? is given twice or contains a control character")
		}
		switch {
		case name == "tls" && o.Mode != Single:
			o.TLS, err = strconv.ParseBool(list[0])
			if err != nil {
				return errors.New("tls is neither true nor false")
			}
		case name == "sentinel_username" && o.Mode == Sentinel:
			o.SentinelUsername = list[0]
		case name == "sentinel_password" && o.Mode == Sentinel:
			o.SentinelPassword = secret(list[0])
		default:
			return errors.New(
				"unknown parameter; redis-sentinel:// takes tls, sentinel_username and sentinel_password, redis-cluster:// takes tls")
		}
	}
	return nil
}
