package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// manCmd prints the man page, made from the command table.
type manCmd struct{}

func (*manCmd) Run(k *kong.Context, std streams) error {
	_, err := io.WriteString(std.out, manPage(k.Model))
	return err
}

// manEnd is what the command table does not have.
const manEnd = `.SH EXIT STATUS
.TP
0
Done.
.TP
1
It failed, or found violations.
.TP
2
Wrong usage, or a wrong setting.
.TP
3
A dry run found a difference.
.SH ENVIRONMENT
Every setting is an environment variable that begins with
.BR BACKSTOP_ .
.B backstop config
prints those in effect with the origin of each.
.SH FILES
.TP
.I backstop.yaml
Settings, in the working directory: names in lower case, without the prefix.
.TP
.I ./data
The data folder
.RB ( BACKSTOP_DATA ):
the embedded database, queue and keys.
`

// manPage returns the page in roff.
func manPage(app *kong.Application) string {
	var b strings.Builder
	date, _, _ := strings.Cut(build.Date, "T")
	fmt.Fprintf(&b, ".TH BACKSTOP 1 %q %q \"User Commands\"\n", date, "backstop "+build.Version)
	fmt.Fprintf(&b, ".SH NAME\nbackstop \\- %s\n", roff(strings.ToLower(app.Help[:1])+strings.TrimSuffix(app.Help[1:], ".")))
	b.WriteString(".SH SYNOPSIS\n.B backstop\n.RI [ command ]\n.RI [ flags ]\n")
	b.WriteString(".SH DESCRIPTION\nWithout a command it serves. These flags are for every command:\n")
	manFlags(&b, app.Flags)
	b.WriteString(".SH COMMANDS\n")
	manCommands(&b, app.Node)
	b.WriteString(manEnd)
	return b.String()
}

// manCommands writes the commands below a node that can be run.
func manCommands(b *strings.Builder, node *kong.Node) {
	for _, c := range node.Children {
		if len(c.Children) > 0 {
			manCommands(b, c)
			continue
		}
		fmt.Fprintf(b, ".SS %s\n%s\n", roff(strings.TrimSuffix(c.Summary(), " [flags]")), roff(c.Help))
		for _, arg := range c.Positional {
			if arg.Help == "" { // its name says it
				continue
			}
			fmt.Fprintf(b, ".TP\n.I %s\n%s\n", roff(arg.Name), roff(arg.Help))
		}
		manFlags(b, c.Flags)
	}
}

func manFlags(b *strings.Builder, flags []*kong.Flag) {
	for _, f := range flags {
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(f.String()), roff(f.Help))
	}
}

// roff escapes a text of one line.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}
