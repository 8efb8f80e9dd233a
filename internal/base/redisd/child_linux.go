package redisd

import "syscall"

// childAttributes lets the kernel end the child when the thread that started it ends. In a
// process group of its own the child gets no Ctrl-C: it is still needed to release running
// work.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
