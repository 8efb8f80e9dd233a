//go:build !failpoint

// Package failpoint ends the process at named points, so that tests can show
// that nothing is lost there. Only programs built with the tag "failpoint" have
// it; in all others Hit is empty and costs nothing.
package failpoint

// Hit does nothing in this build.
func Hit(string) {}
