package servertest

import (
	"os/exec"
	"runtime"
	"sync"
)

// starter runs what it is given on a thread that no goroutine but its own ever uses, so that the
// thread ends with the process and not before it.
var starter = sync.OnceValue(func() chan<- func() {
	starts := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range starts {
			start()
		}
	}()
	return starts
})

// Start starts a server that ends with its test, and with nothing else: a thread of Go's may end
// before its process (that of a goroutine that returns without unlocking it does), and the kernel
// would end each server that was ever started on it.
func Start(cmd *exec.Cmd) error {
	err := make(chan error)
	starter() <- func() {
		cmd.SysProcAttr = EndWithUs()
		err <- cmd.Start()
	}
	return <-err
}
