//go:build unix && !linux

package redisd

import "syscall"

// childAttributes keeps Ctrl-C from the child, as we still need it to hand
// running work back. Where the kernel cannot tie its life to ours, a left-over
// child is stopped at the next start.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
