//go:build !failpoint

// Package failpoint kills the process at named points, so that tests can prove that nothing
// is lost there. It exists only in programs built with the tag "failpoint"; in all others
// Hit is empty and costs nothing.
package failpoint

// Hit does nothing in this build.
func Hit(string) {}
