package redisd

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"

	"github.com/redis/go-redis/v9"
)

// unfit is why a Redis that answers cannot be worked with. Its text names neither
// address nor user, so that everybody may read it.
type unfit struct{ error }

func (u unfit) Unwrap() error { return u.error }

// Kind says what is wrong with a Redis that Check refuses, and nothing of where it
// is or as whom we come: it is told to everybody who asks.
func Kind(err error) string {
	var u unfit
	var network net.Error
	var reply redis.Error
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &u):
		return u.Error()
	case redis.HasErrorPrefix(err, "NOPERM"):
		return "redis does not let the user work its queues: the log says what it needs"
	case redis.HasErrorPrefix(err, "LOADING"):
		return "redis is loading its data"
	case redis.HasErrorPrefix(err, "MISCONF"):
		return "redis cannot write to its disk: make room there"
	case redis.HasErrorPrefix(err, "DB index is out of range"):
		return "redis has no database of the number that BACKSTOP_REDIS_URL names"
	case errors.As(err, &certificate):
		return "the certificate of redis is not trusted"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "redis does not answer in time"
	case errors.As(err, &reply):
		return "redis answers with an error: the log says which"
	}
	return "redis cannot be reached"
}
