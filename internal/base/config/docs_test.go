package config

import (
	"fmt"
	"strings"
)

const intro = `# Configuration

Generated from the code; change the tags in ` + "`internal/base/config/config.go`" + ` and run ` + "`go generate ./internal/base/config`" +
	`.

Every setting is an environment variable, or the same name in lower case and without ` + "`BACKSTOP_`" + ` in ` + "`backstop.yaml`" +
	` in the working directory (another file with ` + "`--config FILE`" +
	`). The environment wins over the file, the file over the default; an empty value counts as not set. Lists are separated by commas, or are YAML lists in the file. ` + "`backstop config`" + ` prints the effective values and their origins, with secrets masked.

An unknown name is an error, so that typing errors are detected. ` + "`BACKSTOP_PORT*` and `BACKSTOP_SERVICE_*`" +
	` are ignored: Kubernetes sets them for a service named ` + "`backstop`" + `; for services with longer names, such as ` +
	"`backstop-redis`" + `, set ` + "`enableServiceLinks: false`" + ` in the pod.
`

// Markdown returns docs/configuration.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(intro)
	group := ""
	for _, s := range settings {
		if s.Group != group {
			group = s.Group
			fmt.Fprintf(&b, "\n## %s\n\n| Variable | Default | Accepted | Meaning |\n|---|---|---|---|\n", group)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Env(), s.defaultText(), cell(s.Accepts()), cell(s.meaning()))
	}
	return b.String()
}

func (s Setting) defaultText() string {
	if s.Default == "" {
		return cell("empty = " + s.Empty)
	}
	return "`" + cell(s.Default) + "`"
}

func (s Setting) meaning() string {
	if s.Secret {
		return s.Doc + " Secret."
	}
	return s.Doc
}

// cell escapes a text for a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
