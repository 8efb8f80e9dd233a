package servertest

import (
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// The negative control is the server that the ending thread starts itself.
func TestAServerOutlivesTheThreadThatAskedForIt(t *testing.T) {
	t.Parallel()
	const servers = 20
	ended := func(start func(*exec.Cmd) error) (n int) {
		var cmds []*exec.Cmd
		for range servers {
			cmd, started := exec.Command("sleep", "60"), make(chan error)
			go func() {
				runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
				started <- start(cmd)
			}()
			if err := <-started; err != nil {
				t.Fatal(err)
			}
			cmds = append(cmds, cmd)
		}
		over := make(chan bool)
		for _, cmd := range cmds {
			go func() { _ = cmd.Wait(); over <- true }()
		}
		for {
			select {
			case <-over:
				n++
			case <-time.After(time.Second):
				for _, cmd := range cmds {
					_ = cmd.Process.Kill()
				}
				for range servers - n {
					<-over
				}
				return n
			}
		}
	}
	if n := ended(Start); n != 0 {
		t.Errorf("%d of %d servers ended with a thread", n, servers)
	}
	naive := func(cmd *exec.Cmd) error {
		cmd.SysProcAttr = EndWithUs()
		return cmd.Start()
	}
	// The first thread of a process never ends, so not every one need end.
	if n := ended(naive); n == 0 {
		t.Error("a server started by a thread that ends stays: Start is of no use")
	}
}
