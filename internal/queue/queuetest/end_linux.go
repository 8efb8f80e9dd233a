package queuetest

import "syscall"

// endWithUs keeps a test that panics or times out from leaving its server behind.
func endWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
