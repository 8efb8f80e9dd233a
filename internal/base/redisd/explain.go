package redisd

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// noSentinel is how the library begins the answers of all sentinels, joined by
// line ends, where none of them names a master: also when they were reached and
// the fault is in the URL.
const noSentinel = "redis: all sentinels specified in configuration are unreachable: "

// explain makes one line of an error of the library, and says what to mend where
// the URL leads to a server that will never do. It quotes no part of the URL.
func (r *Redis) explain(err error) error {
	if answers, ok := strings.CutPrefix(err.Error(), noSentinel); ok {
		return explainSentinels(answers)
	}
	hint := ""
	switch {
	case redis.HasErrorPrefix(err, "NOAUTH"):
		return unfit{errors.New("redis wants a password: write it into the URL, redis://:password@host")}
	case redis.HasErrorPrefix(err, "WRONGPASS"):
		return unfit{errors.New("redis refuses user and password: mend them in the URL")}
	case redis.HasErrorPrefix(err, "NOPERM"):
		hint = "the user needs all commands on keys and channels asynq:*"
	case r.opts.Mode != Cluster && redis.HasErrorPrefix(err, "MOVED"):
		return unfit{errors.New("redis is one node of a cluster: begin the URL with redis-cluster://")}
	case r.opts.Mode == Cluster && strings.Contains(err.Error(), "cluster support disabled"):
		return unfit{errors.New("redis is no cluster: begin the URL with redis:// or rediss://")}
	case strings.Contains(err.Error(), "x509: certificate signed by unknown authority"):
		hint = "add the authority to the system's, or name its file in SSL_CERT_FILE"
	case !r.opts.TLS && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)):
		hint = "where it wants TLS, begin the URL with rediss:// or add tls=true"
	}
	if hint == "" {
		return fmt.Errorf("ask redis: %w", err)
	}
	return fmt.Errorf("ask redis: %w: %s", err, hint)
}

// explainSentinels tells a name and a password that are wrong from sentinels that
// are away. One that answers knows more than those that do not.
func explainSentinels(answers string) error {
	switch {
	case strings.Contains(answers, redis.Nil.Error()):
		return unfit{errors.New("the sentinels know no master of that name: mend the name after the hosts in the URL")}
	case strings.Contains(answers, "NOAUTH"), strings.Contains(answers, "WRONGPASS"):
		return unfit{errors.New("the sentinels refuse the password: mend sentinel_username and sentinel_password in the URL")}
	case strings.Contains(answers, "unknown command"):
		return unfit{errors.New("what answers is no sentinel: mend hosts and ports in the URL")}
	}
	return fmt.Errorf("no sentinel names the master: %s", strings.ReplaceAll(answers, "\n", "; "))
}
