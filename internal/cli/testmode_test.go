package cli

import (
	"strings"
	"testing"
)

// Nothing is sent with a live key, to another machine, or for what the sandbox cannot do.
func TestToolsOfTestModeRefuseWhatIsNotTestMode(t *testing.T) {
	t.Setenv("BACKSTOP_DATA", t.TempDir())
	const key = "--key=sk_test_0123456789abcdef"
	for want, args := range map[string][]string{
		"begins with sk_test_":     {"listen", "--key=sk_live_0123456789abcdef", "--forward=http://localhost:1/"},
		"to this machine only":     {"listen", key, "--forward=http://203.0.113.7/notify"},
		"signing secret":           {"listen", key, "--forward=http://localhost:1/", "--secret=x"},
		"key of test mode":         {"trigger", "order.paid", "--key=sk_live_0123456789abcdef"},
		"order.paid, order.failed": {"trigger", "dispute.opened", key},
		"BACKSTOP_TEST_LISTEN":     {"testmode", "key", "m1"},
	} {
		code, out, stderr := backstop(t.Context(), args...)
		if code != exitUsage || out != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d, %q, %q", args, code, out, stderr)
		}
	}
}
