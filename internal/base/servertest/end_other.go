//go:build unix && !linux

package servertest

import "syscall"

// EndWithUs has no effect on this system: a test that panics leaves its server behind.
func EndWithUs() *syscall.SysProcAttr { return new(syscall.SysProcAttr) }
