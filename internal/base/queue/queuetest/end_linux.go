package queuetest

import "syscall"

// EndWithUs makes the kernel end a server with its test, even if the test panics or times out.
func EndWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
