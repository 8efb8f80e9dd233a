// Package failpoint kills the process at named points, so that tests can prove that nothing
// is lost there. Only a program that was linked with LinkFlag can be killed by it; in all others
// Hit does nothing.
package failpoint

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// Env arms one point: "name" or "name:n" for its n-th hit.
const Env = "FAILPOINT"

// LinkFlag is the flag of the linker that makes a program obey Env. With a build tag, everything
// that uses this package would be compiled twice.
const LinkFlag = "-X backstop/internal/base/failpoint.linked=yes"

// linked is set by LinkFlag.
var linked string

// armed is the point that kills the process, and its remaining hits.
var armed = sync.OnceValue(func() *point {
	name, count, _ := strings.Cut(os.Getenv(Env), ":")
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil || n < 1 {
		n = 1
	}
	p := &point{name: name}
	p.left.Store(n)
	return p
})

type point struct {
	name string
	left atomic.Int64
}

// Hit kills the process without any clean-up, if the point is armed and this is its n-th
// hit.
func Hit(name string) {
	if linked == "" {
		return
	}
	p := armed()
	if p.name != name || p.left.Add(-1) != 0 {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the process must do nothing more until the signal arrives
}
