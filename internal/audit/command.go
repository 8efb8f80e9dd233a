package audit

import (
	"os"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// Command is the actor of a command: "command:" and who runs it on which machine.
// That is what the operating system says, which whoever may read the master key
// could make it say otherwise.
var Command = sync.OnceValue(func() string {
	name := "uid " + strconv.Itoa(os.Getuid()) // a container's user has no name often
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	return commandActor(name, host)
})

// maxPart bounds the name of a user, and of a machine.
const maxPart = 64

func commandActor(name, host string) string {
	return "command:" + plain(name) + "@" + plain(host)
}

// plain is a short name in one line; "-" where there is none.
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
