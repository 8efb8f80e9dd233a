package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// completionCmd prints what makes a shell complete the commands and flags of the command table.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (c *completionCmd) Run(k *kong.Context, std streams) error {
	script := map[string]func([]place) string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[c.Shell]
	_, err := io.WriteString(std.out, script(places("", k.Model.Node)))
	return err
}

// place is what can follow a command: of "token" its subcommands, of "token add" its flags.
type place struct {
	command string   // "" = the program itself
	words   []choice // empty = a file, or a word that only the caller knows
	flags   []choice
}

// choice is a word to complete.
type choice struct {
	word, help string
	value      bool // of a flag: a value follows
}

// places returns a command and all below it.
func places(command string, node *kong.Node) []place {
	at := place{command: command}
	for _, arg := range node.Positional {
		for _, word := range arg.EnumSlice() {
			at.words = append(at.words, choice{word: word})
		}
	}
	var below []place
	for _, c := range node.Children {
		at.words = append(at.words, choice{word: c.Name, help: c.Help})
		below = append(below, places(strings.TrimSpace(command+" "+c.Name), c)...)
	}
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			at.flags = append(at.flags, choice{word: "--" + f.Name, help: f.Help, value: !f.IsBool() && !f.IsCounter()})
		}
	}
	return append([]place{at}, below...)
}

// quoted is a word of bash and zsh.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func joined(choices []choice) string {
	var all []string
	for _, c := range choices {
		all = append(all, c.word)
	}
	return strings.Join(all, " ")
}

// commandsOf are the commands below the program, as patterns of a case of bash and zsh.
func commandsOf(all []place) string {
	var patterns []string
	for _, p := range all[1:] {
		patterns = append(patterns, quoted(p.command))
	}
	return strings.Join(patterns, " | ")
}

func bashCompletion(all []place) string {
	values, seen := []string{}, map[string]bool{}
	var cases strings.Builder
	for _, p := range all {
		fmt.Fprintf(&cases, "\t%s) words=%s flags=%s ;;\n", quoted(p.command), quoted(joined(p.words)), quoted(joined(p.flags)))
		for _, f := range p.flags {
			if f.value && !seen[f.word] {
				values, seen[f.word] = append(values, f.word), true
			}
		}
	}
	return `# Completion of backstop for bash, by: backstop completion bash
_backstop() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} at= next= words= flags= i
	for ((i = 1; i < COMP_CWORD; i++)); do
		next="${at:+$at }${COMP_WORDS[i]}"
		case $next in
		` + commandsOf(all) + `) at=$next ;;
		esac
	done
	case $prev in
	` + strings.Join(values, " | ") + `) return ;; # its value follows
	esac
	case $at in
` + cases.String() + `	esac
	[[ $cur == -* ]] && words=$flags
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _backstop backstop
`
}

func zshCompletion(all []place) string {
	described := func(choices []choice) string {
		var all []string
		for _, c := range choices {
			all = append(all, quoted(c.word+":"+c.help))
		}
		return "(" + strings.Join(all, " ") + ")"
	}
	var cases strings.Builder
	for _, p := range all {
		fmt.Fprintf(&cases, "\t(%s) choices=%s flags=%s ;;\n", quoted(p.command), described(p.words), described(p.flags))
	}
	return `#compdef backstop
# Completion of backstop for zsh, by: backstop completion zsh
_backstop() {
	local at= next= i
	local -a choices flags
	for ((i = 2; i < CURRENT; i++)); do
		next="${at:+$at }$words[i]"
		case $next in
		(` + commandsOf(all) + `) at=$next ;;
		esac
	done
	case $at in
` + cases.String() + `	esac
	if [[ $words[CURRENT] == -* ]]; then
		_describe option flags
	elif (( $#choices )); then
		_describe command choices
	else
		_files
	fi
}
if [[ $funcstack[1] == _backstop ]]; then
	_backstop "$@"
else
	compdef _backstop backstop
fi
`
}

func fishCompletion(all []place) string {
	word := func(text string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
	}
	var commands []string
	for _, p := range all[1:] {
		commands = append(commands, word(p.command))
	}
	var lines strings.Builder
	for _, p := range all {
		begin := "complete -c backstop -n " + word("__backstop_at "+word(p.command))
		if len(p.words) > 0 {
			fmt.Fprintf(&lines, "%s -f\n", begin)
		}
		for _, c := range p.words {
			fmt.Fprintf(&lines, "%s -a %s -d %s\n", begin, word(c.word), word(c.help))
		}
		for _, f := range p.flags {
			needs := ""
			if f.value {
				needs = " -r"
			}
			fmt.Fprintf(&lines, "%s -l %s%s -d %s\n", begin, strings.TrimPrefix(f.word, "--"), needs, word(f.help))
		}
	}
	return `# Completion of backstop for fish, by: backstop completion fish
function __backstop_at
	set -l at ''
	for word in (commandline -opc)[2..-1]
		set -l next (string trim -- "$at $word")
		if contains -- $next ` + strings.Join(commands, " ") + `
			set at $next
		end
	end
	test "$at" = "$argv[1]"
end
` + lines.String()
}
