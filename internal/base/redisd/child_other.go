//go:build unix && !linux

package redisd

import "syscall"

// childAttributes puts the child into its own process group, so that it gets no Ctrl-C: it is
// still needed to release running work. This kernel cannot end it with the program, so the
// next start stops a left-over child.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
