//go:build unix && !linux

package queuetest

import "syscall"

// endWithUs has no means here: a test that panics leaves its server behind.
func endWithUs() *syscall.SysProcAttr { return nil }
