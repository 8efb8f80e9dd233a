package redisd

import "syscall"

// childAttributes ties the child's life to ours: the kernel ends it when the
// thread that started it ends. A group of its own keeps Ctrl-C from it, as we
// still need it to hand running work back.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
