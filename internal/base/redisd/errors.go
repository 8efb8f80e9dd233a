package redisd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// unusable says why a Redis that answers cannot be used. Its text contains neither address
// nor user, so /readyz may show it without a login.
type unusable struct{ error }

func (u unusable) Unwrap() error { return u.error }

var errSentinel = unusable{errors.New("the server is a sentinel: write the URL as redis-sentinel://hosts/master-name")}

// Kind describes in one line what is wrong with a Redis that fails Check. It contains
// neither its address nor a user, since /readyz shows it without a login.
func Kind(err error) string {
	var u unusable
	var network net.Error
	var reply redis.Error
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &u):
		return u.Error()
	case redis.HasErrorPrefix(err, "NOPERM"):
		return "the redis user may not use the queues: see the log for the permissions that it needs"
	case redis.HasErrorPrefix(err, "LOADING"):
		return "redis is loading its data"
	case redis.HasErrorPrefix(err, "MISCONF"):
		return "redis cannot write to its disk: free some space there"
	case redis.HasErrorPrefix(err, "DB index is out of range"):
		return "redis has no database with the number in BACKSTOP_REDIS_URL"
	case errors.As(err, &certificate):
		return "the certificate of redis is not trusted"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "redis does not answer in time"
	case errors.As(err, &reply):
		return "redis answers with an error: see the log"
	}
	return "redis cannot be reached"
}

// noSentinel is the library's error if no sentinel names a master, even if they were reached
// and the URL is wrong. The errors of all sentinels follow, one per line.
const noSentinel = "redis: all sentinels specified in configuration are unreachable: "

// explain turns an error of the library into one line. It adds what to fix if the URL leads
// to a server that can never be used, and quotes no part of the URL.
func (r *Redis) explain(err error) error {
	if answers, ok := strings.CutPrefix(err.Error(), noSentinel); ok {
		return explainSentinels(answers)
	}
	hint := ""
	switch {
	case redis.HasErrorPrefix(err, "NOAUTH"):
		return unusable{errors.New("redis requires a password: add it to the URL, redis://:password@host")}
	case redis.HasErrorPrefix(err, "WRONGPASS"):
		return unusable{errors.New("redis refuses the user name and password: fix them in the URL")}
	case r.opts.Mode != Cluster && redis.HasErrorPrefix(err, "MOVED"):
		return unusable{errors.New("redis is a node of a cluster: begin the URL with redis-cluster://")}
	case r.opts.Mode == Cluster && strings.Contains(err.Error(), "cluster support disabled"):
		return unusable{errors.New("redis is not a cluster: begin the URL with redis:// or rediss://")}
	case redis.HasErrorPrefix(err, "NOPERM"):
		hint = ": the user needs all commands on keys and channels asynq:*"
	case strings.Contains(err.Error(), "x509: certificate signed by unknown authority"):
		hint = ": add the authority to the system's roots, or set SSL_CERT_FILE to its file"
	case !r.opts.TLS && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)):
		hint = ": if it requires TLS, begin the URL with rediss:// or add tls=true"
	}
	return fmt.Errorf("query redis: %w%s", err, hint)
}

// explainSentinels distinguishes a wrong name or password from unreachable sentinels. One
// sentinel that answers is better evidence than several that do not.
func explainSentinels(answers string) error {
	switch {
	case strings.Contains(answers, redis.Nil.Error()):
		return unusable{errors.New("the sentinels have no master with that name: fix the name after the hosts in the URL")}
	case strings.Contains(answers, "NOAUTH"), strings.Contains(answers, "WRONGPASS"):
		return unusable{errors.New("the sentinels refuse the password: fix sentinel_username and sentinel_password in the URL")}
	case strings.Contains(answers, "unknown command"):
		return unusable{errors.New("the server is not a sentinel: fix hosts and ports in the URL")}
	}
	return fmt.Errorf("no sentinel names the master: %s", strings.ReplaceAll(answers, "\n", "; "))
}
