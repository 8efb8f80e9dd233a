package redisd

import "syscall"

// childAttributes makes the kernel end the child when the thread that started it ends. The
// child has its own process group, so that it gets no Ctrl-C: it is still needed to release
// running work.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
