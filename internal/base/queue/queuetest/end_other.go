//go:build unix && !linux

package queuetest

import "syscall"

// EndWithUs has no means here: a test that panics leaves its server behind.
func EndWithUs() *syscall.SysProcAttr { return new(syscall.SysProcAttr) }
