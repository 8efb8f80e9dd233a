package config

import (
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// form is the accepted form of a string. It does not check that a named file or host exists.
type form struct {
	accepts string
	holds   func(string) bool
}

var forms = map[string]form{
	"address": {"host:port with a port from 0 to 65535 (127.0.0.1:8080)", isAddress},
	"path":    {"a path", isPath},
	"public":  {"an absolute http or https URL without user, query or fragment (https://pay.example.com)", isPublic},
	"name": {
		"1 to 64 letters, digits, dots, dashes or underscores",
		regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`).MatchString,
	},
	"operator": {"the name of an operator (a-z, 0-9, dot, - and _)", regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`).MatchString},
	"role": {
		"viewer, support, ops, finance, lead, admin, auditor, merchant, or a role of your own",
		regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`).MatchString,
	},
	"word":     {"1 to 512 visible characters of ASCII without spaces", regexp.MustCompile(`^[!-~]{1,512}$`).MatchString},
	"postgres": {"a URL that begins with postgres:// or postgresql://", hasScheme("postgres", "postgresql")},
	"redis": {
		"a URL that begins with redis://, rediss://, redis-sentinel:// or redis-cluster://",
		hasScheme("redis", "rediss", "redis-sentinel", "redis-cluster"),
	},
	"alert": {
		"URLs separated by commas or spaces that begin with telegram://, slack://, smtp://, json+https://, json+http://, generic+https:// or generic+http://",
		hasScheme("telegram", "slack", "smtp", "json+https", "json+http", "generic+https", "generic+http"),
	},
	"mail": {"URLs separated by commas or spaces that begin with smtp://", hasScheme("smtp")},
	"key":  {"32 bytes as base64 (44 characters) or hex (64 characters), e.g. from `openssl rand -base64 32`", isKeys},
	"personal": {
		"a personal token as backstop operator token prints it (bso_…)",
		func(text string) bool { return strings.HasPrefix(text, "bso_") },
	},
	"schedule": {"day, quick, or 1 to 32 waits from 1s to 24h separated by commas (1s,3s,5s)", isSchedule},
}

func isAddress(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil || strings.ContainsAny(host, " /@") {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && strconv.FormatUint(n, 10) == port
}

func isPath(text string) bool { return !strings.ContainsAny(text, "\x00\r\n") }

func isPublic(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" &&
		u.User == nil && u.RawQuery == "" && !u.ForceQuery && u.Fragment == "" && !strings.HasSuffix(text, "#")
}

// hasScheme checks only the scheme: net/url rejects lists of hosts (h1:1,h2:2), which
// PostgreSQL and Redis drivers accept.
func hasScheme(schemes ...string) func(string) bool {
	return func(text string) bool {
		scheme, rest, ok := strings.Cut(text, "://")
		return ok && rest != "" && slices.Contains(schemes, scheme) && !strings.ContainsAny(text, " \x00\r\n\t")
	}
}

// keyShape detects typing errors; package seal decodes keys.
var keyShape = regexp.MustCompile(`^([0-9A-Fa-f]{64}|[A-Za-z0-9+/_-]{43}=?)$`)

func isKeys(text string) bool {
	keys := pieces(text)
	return len(keys) > 0 && !slices.ContainsFunc(keys, func(k string) bool { return !keyShape.MatchString(k) })
}

// maxWaits bounds a schedule; `day`, which spans more than 24 hours, has 12.
const maxWaits = 32

func isSchedule(text string) bool {
	if text == "day" || text == "quick" {
		return true
	}
	waits := pieces(text)
	return len(waits) > 0 && len(waits) <= maxWaits && !slices.ContainsFunc(waits, func(w string) bool {
		d, err := time.ParseDuration(w)
		return err != nil || d < time.Second || d > 24*time.Hour
	})
}
