package cli

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"backstop/internal/access"

	"github.com/alecthomas/kong"
)

var (
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading    = regexp.MustCompile(`^#{1,6} +(.*)`)
	headingID  = regexp.MustCompile(` *\{#([\w-]+)\}$`)
	notInSlug  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	metricName = regexp.MustCompile(`"(backstop_[a-z_]+)"`)
	tableRow   = regexp.MustCompile("(?m)^\\| `(backstop_[a-z_]+)")
	codeSpan   = regexp.MustCompile("`([^`\n]+)`")
	ownCommand = regexp.MustCompile(`^(?:\$ )?(?:[A-Z_]+=\S* )*(?:[A-Z]+=\$\()?(?:\./backstop|backstop|go run \.) ([^|&;#>)]*)`)
	flagName   = regexp.MustCompile(`^\[?--([a-z][a-z0-9-]*)`)
	setting    = regexp.MustCompile(`BACKSTOP_[A-Z0-9_]*[A-Z0-9]`)
)

// pages returns the documents of the repository by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (slices.Contains([]string{"testdata", "build", "build-release"}, e.Name()) || path != "." && e.Name()[0] == '.'):
			return fs.SkipDir
		case strings.HasSuffix(path, ".md"):
			all[path] = read(t, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 60 {
		t.Fatalf("only %d documents seen", len(all))
	}
	return all
}

// prose and code are the lines of a document outside and inside of its code blocks.
func split(page string) (prose, code []string) {
	inCode := false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			inCode = !inCode
		case inCode:
			code = append(code, line)
		default:
			prose = append(prose, line)
		}
	}
	return prose, code
}

// anchors returns the anchors of a document's headings.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	prose, _ := split(page)
	for _, line := range prose {
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if id := headingID.FindStringSubmatch(m[1]); id != nil {
			all[id[1]] = true
			continue
		}
		text := link.ReplaceAllString(m[1], "")
		slug := strings.ReplaceAll(strings.ToLower(notInSlug.ReplaceAllString(text, "")), " ", "-")
		for id, n := slug, 1; ; n++ {
			if !all[id] {
				all[id] = true
				break
			}
			id = fmt.Sprintf("%s-%d", slug, n)
		}
	}
	return all
}

// deadLinks returns the links of a document that lead to no file or to no heading.
func deadLinks(all map[string]string, path, page string) (dead []string, seen int) {
	prose, _ := split(page)
	for _, m := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(strings.Join(prose, "\n"), "code"), -1) {
		file, anchor, _ := strings.Cut(m[1], "#")
		if strings.Contains(file, ":") {
			continue // elsewhere
		}
		seen++
		text := page
		if file != "" {
			target := filepath.Join(filepath.Dir(path), file)
			if _, err := os.Stat(target); err != nil {
				dead = append(dead, m[1])
				continue
			}
			text = all[target]
		}
		if anchor != "" && !anchors(text)[anchor] {
			dead = append(dead, m[1])
		}
	}
	return dead, seen
}

func TestLinksOfThePagesLeadSomewhere(t *testing.T) {
	all, seen := pages(t), 0
	for path, page := range all {
		dead, n := deadLinks(all, path, page)
		seen += n
		for _, d := range dead {
			t.Errorf("%s: a link leads to %s", path, d)
		}
	}
	if seen < 400 {
		t.Errorf("only %d links seen: the pattern misses them", seen)
	}
}

// commandTable returns the root of the command table.
func commandTable(t *testing.T) *kong.Node {
	t.Helper()
	parser, err := kong.New(&commands{}, kong.Name("backstop"), kong.Vars{"version": "test"})
	if err != nil {
		t.Fatal(err)
	}
	return parser.Model.Node
}

// child returns the subcommand of a name, or nil.
func child(node *kong.Node, name string) *kong.Node {
	i := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == name || slices.Contains(n.Aliases, name) })
	if i < 0 {
		return nil
	}
	return node.Children[i]
}

// hasFlag reports whether a command, or one that it belongs to, has a flag.
func hasFlag(node *kong.Node, name string) bool {
	for ; node != nil; node = node.Parent {
		if slices.ContainsFunc(node.Flags, func(f *kong.Flag) bool { return f.Name == name }) {
			return true
		}
	}
	return false
}

// misused returns the words of a command line that the command table does not have.
func misused(root *kong.Node, line string) (wrong []string) {
	nodes := []*kong.Node{root} // several for "token add|list"
	for word := range strings.FieldsSeq(line) {
		if m := flagName.FindStringSubmatch(word); m != nil {
			known := m[1] == "help" || slices.ContainsFunc(nodes, func(n *kong.Node) bool {
				return hasFlag(n, m[1]) || n.DefaultCmd != nil && hasFlag(n.DefaultCmd, m[1])
			})
			if !known {
				wrong = append(wrong, word)
			}
			continue
		}
		if len(nodes) != 1 || len(nodes[0].Children) == 0 || strings.HasPrefix(word, "[") || strings.HasPrefix(word, "-") {
			continue // an argument
		}
		var next []*kong.Node
		for name := range strings.SplitSeq(strings.Trim(word, ".,:"), "¦") {
			if c := child(nodes[0], name); c != nil {
				next = append(next, c)
			} else {
				wrong = append(wrong, word)
			}
		}
		if len(next) == 0 {
			return wrong
		}
		nodes = next
	}
	return wrong
}

// unknownCommands returns the command lines of a document that the program does not take, and how
// many it takes.
func unknownCommands(root *kong.Node, page string) (wrong []string, seen int) {
	prose, code := split(page)
	lines := code
	for _, m := range codeSpan.FindAllStringSubmatch(strings.Join(prose, "\n"), -1) {
		lines = append(lines, m[1])
	}
	either := regexp.MustCompile(`(\w)\|(\w)`) // alternatives, not a pipe
	for _, line := range lines {
		m := ownCommand.FindStringSubmatch(either.ReplaceAllString(strings.TrimSpace(line), "$1¦$2"))
		if m == nil {
			continue
		}
		seen++
		for _, w := range misused(root, m[1]) {
			wrong = append(wrong, fmt.Sprintf("%s in %q", w, line))
		}
	}
	return wrong, seen
}

func TestCommandsAndFlagsOfThePagesExist(t *testing.T) {
	root, seen := commandTable(t), 0
	for path, page := range pages(t) {
		wrong, n := unknownCommands(root, page)
		seen += n
		for _, w := range wrong {
			t.Errorf("%s: there is no %s", path, w)
		}
	}
	if seen < 120 {
		t.Errorf("only %d commands seen: the pattern misses them", seen)
	}
}

// unknownSettings returns the settings that a document names and configuration.md does not.
func unknownSettings(reference, page string) (wrong []string) {
	for _, name := range setting.FindAllString(page, -1) {
		begins := slices.Contains([]string{"BACKSTOP_PORT", "BACKSTOP_SERVICE", "BACKSTOP_OIDC"}, name) // named as prefixes
		if !begins && !strings.Contains(reference, "\n| `"+name+"` | ") {
			wrong = append(wrong, name)
		}
	}
	return wrong
}

func TestSettingsOfThePagesExist(t *testing.T) {
	all := pages(t)
	for path, page := range all {
		if path == "CHANGELOG.md" { // names settings that were removed
			continue
		}
		for _, w := range unknownSettings(all["docs/configuration.md"], page) {
			t.Errorf("%s: there is no setting %s", path, w)
		}
	}
}

// The negative control: each kind of fault in a document is found.
func TestFaultsInADocumentAreFound(t *testing.T) {
	all, root := pages(t), commandTable(t)
	for _, page := range []string{"[a](no-such.md)", "[a](README.md#no-such)", "[a](#no-such)", "# A\n\n[a](#b)"} {
		if dead, _ := deadLinks(all, "planted.md", page); len(dead) != 1 {
			t.Errorf("%q: %q", page, dead)
		}
	}
	for _, page := range []string{
		"`backstop tokn add`", "`backstop token ad NAME`", "`backstop token add|lst`", "```sh\nbackstop verify --jsn\n```",
		"```sh\nexport A=b\nTOKEN=$(go run . token add desk --scop monitor)\n```", "`backstop operator add NAME --roles admin`",
	} {
		if wrong, _ := unknownCommands(root, page); len(wrong) != 1 {
			t.Errorf("%q: %q", page, wrong)
		}
	}
	for _, page := range []string{"set `BACKSTOP_LISTN`", "```sh\nBACKSTOP_NO=1 backstop serve\n```"} {
		if wrong := unknownSettings(all["docs/configuration.md"], page); len(wrong) != 1 {
			t.Errorf("%q: %q", page, wrong)
		}
	}
}

// sentencesAbove returns the sentences of a page that have more words. A code span is one word.
func sentencesAbove(page string, words int) (long []string) {
	prose, _ := split(page)
	ends := regexp.MustCompile(`[.!?][)"*]*\s+|\s\|`)
	for _, line := range prose {
		line = link.ReplaceAllString(codeSpan.ReplaceAllString(line, "code"), "]")
		for _, sentence := range ends.Split(line+" ", -1) {
			if len(strings.Fields(strings.NewReplacer("| ", "", "– ", "").Replace(sentence))) > words {
				long = append(long, sentence)
			}
		}
	}
	return long
}

func TestSentencesOfTheManualAreShort(t *testing.T) {
	const words = 30
	for path, page := range pages(t) {
		if !strings.HasPrefix(path, "docs/operations") || strings.HasSuffix(path, ".zh-CN.md") {
			continue
		}
		for _, s := range sentencesAbove(page, words) {
			t.Errorf("%s has more than %d words in %q", path, words, s)
		}
	}
	if long := sentencesAbove("Short. "+strings.Repeat("word ", words+1)+"end. Short.", words); len(long) != 1 {
		t.Errorf("a long sentence is not seen: %q", long)
	}
}

var listItem = regexp.MustCompile(`^ *(?:-|\d+\.) `)

// partsOf returns what a document consists of, in order: headings by their level, rows of tables, points,
// paragraphs, and code blocks by their language.
func partsOf(page string) (parts []string) {
	inCode := false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			if inCode = !inCode; inCode {
				parts = append(parts, line)
			}
		case inCode || strings.TrimSpace(line) == "":
		case strings.HasPrefix(line, "#"):
			level, _, _ := strings.Cut(line, " ")
			parts = append(parts, level)
		case strings.HasPrefix(strings.TrimSpace(line), "|"):
			parts = append(parts, "row")
		case listItem.MatchString(line):
			parts = append(parts, "point")
		default:
			parts = append(parts, "paragraph")
		}
	}
	return parts
}

func TestPagesAreWholeInBothLanguages(t *testing.T) {
	all, seen := pages(t), 0
	for path, zh := range all {
		name, ok := strings.CutSuffix(path, ".zh-CN.md")
		if !ok || path == "README.zh-CN.md" { // tells the same in its own order
			continue
		}
		seen++
		want, got := partsOf(all[name+".md"]), partsOf(zh)
		if len(want) != len(got) {
			t.Errorf("%s has %d parts, %s.md %d", path, len(got), name, len(want))
		}
		for i := range min(len(want), len(got)) {
			if want[i] != got[i] {
				t.Errorf("part %d of %s is %q, not %q", i, path, got[i], want[i])
				break
			}
		}
	}
	if seen < 18 {
		t.Errorf("only %d pages are in Chinese", seen)
	}
	if a, b := partsOf("# A\n\n- b\n"), partsOf("# A\n\nb\n"); slices.Equal(a, b) {
		t.Error("a missing point is not seen")
	}
}

func TestOperationsListsEveryMetric(t *testing.T) {
	files, err := filepath.Glob("internal/base/metric/*.go")
	if err != nil {
		t.Fatal(err)
	}
	inCode := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range metricName.FindAllStringSubmatch(read(t, file), -1) {
			inCode[m[1]] = true
		}
	}
	onPage := map[string]bool{}
	for _, m := range tableRow.FindAllStringSubmatch(read(t, "docs/operations/health.md"), -1) {
		onPage[m[1]] = true
	}
	for name := range inCode {
		if !onPage[name] {
			t.Errorf("docs/operations/health.md does not list %s", name)
		}
	}
	for name := range onPage {
		if !inCode[name] {
			t.Errorf("docs/operations/health.md lists %s, which is no more", name)
		}
	}
	if len(inCode) < 10 {
		t.Errorf("only %d metrics seen: the pattern misses them", len(inCode))
	}
}

func TestOperationsListsEveryRole(t *testing.T) {
	page := read(t, "docs/operations/operators.md")
	for _, role := range access.AllRoles {
		if !strings.Contains(page, "\n| `"+role+"` | ") {
			t.Errorf("docs/operations/operators.md does not say what %s may do", role)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
