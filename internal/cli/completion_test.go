package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// completionFile writes the completion of a shell, and skips the test where the shell is not
// installed.
func completionFile(t *testing.T, shell string) (path string) {
	t.Helper()
	if _, err := exec.LookPath(shell); err != nil {
		t.Skipf("%s is not on this machine: its completion is not run", shell)
	}
	code, out, errOut := backstop(t.Context(), "completion", shell)
	if code != exitDone {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	path = filepath.Join(t.TempDir(), "backstop."+shell)
	if err := os.WriteFile(path, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Each line ends with what is to be completed.
var completions = []struct{ line, want string }{
	{"backstop tok", "token"},
	{"backstop token ", "add list revoke"},
	{"backstop token add --sc", "--scope"},
	{"backstop token add --scope monitor --mer", "--merchants"},
	{"backstop --config x.yaml oper", "operator"},
	{"backstop completion f", "fish"},
	{"backstop verify --js", "--json"},
	{"backstop verify --dry", ""},
	{"backstop nonsense tok", "token"}, // a word that is no command changes nothing
}

func TestBashCompletesCommandsAndFlags(t *testing.T) {
	file := completionFile(t, "bash")
	var script bytes.Buffer
	fmt.Fprintf(&script, "source %s\n", file)
	for _, c := range completions {
		words := strings.Split(c.line, " ")
		fmt.Fprintf(&script, "COMP_WORDS=(%s) COMP_CWORD=%d COMPREPLY=(); _backstop; echo \"${COMPREPLY[*]}\"\n",
			"'"+strings.Join(words, "' '")+"'", len(words)-1)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "--norc", "-c", script.String())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := strings.Split(string(out), "\n")
	for i, c := range completions {
		if got[i] != c.want {
			t.Errorf("%q is completed by %q, want %q", c.line, got[i], c.want)
		}
	}
}

func TestFishCompletesCommandsAndFlags(t *testing.T) {
	file := completionFile(t, "fish")
	for _, c := range completions {
		cmd := exec.CommandContext(t.Context(), "fish", "--no-config", "-c", "source "+file+"; complete -C '"+c.line+"'")
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var words []string
		for line := range strings.Lines(string(out)) {
			word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			words = append(words, word)
		}
		if got := strings.Join(words, " "); got != c.want {
			t.Errorf("%q is completed by %q, want %q", c.line, got, c.want)
		}
	}
}

func TestZshReadsItsCompletion(t *testing.T) {
	if out, err := exec.CommandContext(t.Context(), "zsh", "-n", completionFile(t, "zsh")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestACompletionOfAnotherShellIsWrongUsage(t *testing.T) {
	if code, out, errOut := backstop(t.Context(), "completion", "tcsh"); code != exitUsage || out != "" || !strings.Contains(errOut, "bash") {
		t.Errorf("exit %d, %q, %q", code, out, errOut)
	}
}

func TestTheManPageHasEveryCommandAndFlag(t *testing.T) {
	code, page, errOut := backstop(t.Context(), "man")
	if code != exitDone {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	var walk func(node *kong.Node)
	walk = func(node *kong.Node) {
		for _, c := range node.Children {
			if len(c.Children) == 0 && !strings.Contains(page, "\n.SS "+roff(c.Path())) {
				t.Errorf("the page has no %q", c.Path())
			}
			walk(c)
		}
		for _, f := range node.Flags {
			if !strings.Contains(page, roff("--"+f.Name)) {
				t.Errorf("the page has no --%s of %s", f.Name, node.Path())
			}
		}
	}
	walk(commandTable(t))
	// Every line that begins with a dot is a request of the macros.
	for line := range strings.Lines(page) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(name, ".") && !slices.Contains([]string{".TH", ".SH", ".SS", ".TP", ".B", ".I", ".BR", ".RB", ".RI"}, name) {
			t.Errorf("%q is no request", line)
		}
	}
}
