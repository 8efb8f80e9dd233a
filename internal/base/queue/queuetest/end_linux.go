package queuetest

import "syscall"

// EndWithUs keeps a test that panics or times out from leaving its server behind.
func EndWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
