package servertest

import "syscall"

// EndWithUs makes the kernel end a server with its test, even if the test panics or times out.
// The kernel looks at the thread that started the server, so start it by Start.
func EndWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
