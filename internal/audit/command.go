package audit

import (
	"os"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// Command returns the actor of a command: "command:", user and machine. Both come from the
// operating system, where a user who may read the master key can forge them.
var Command = sync.OnceValue(func() string {
	name := "uid " + strconv.Itoa(os.Getuid()) // a container's user often has no name
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	host, _ := os.Hostname()
	return commandActor(name, host)
})

// maxPart bounds the name of a user or machine.
const maxPart = 64

func commandActor(name, host string) string {
	return "command:" + plain(name) + "@" + plain(host)
}

// plain returns a short name on one line; "-" if there is none.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == '@' {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(s, "_"))
	if r := []rune(s); len(r) > maxPart {
		s = string(r[:maxPart])
	}
	if s == "" {
		return "-"
	}
	return s
}
