package views

import (
	"strings"
	"time"

	"backstop/internal/access"
)

// Problem is what was wrong with a form, for its page to say.
type Problem string

// Problems.
const (
	WrongLogin Problem = "wrong_login"
	TooMany    Problem = "too_many"
	// PasswordExpired is of a one-time password that was not used in time.
	PasswordExpired Problem = "password_expired"
	Foreign         Problem = "foreign"
	OldWrong        Problem = "old_wrong"
	NewBad          Problem = "new_bad"
	NotSame         Problem = "not_same"
	BadChoice       Problem = "bad_choice"
	MustChange      Problem = "must_change"
	ChoicesKept     Problem = "kept" // none: all went well
	OthersEnded     Problem = "ended"
)

var problems = map[Problem]struct {
	kind string
	word word
}{
	WrongLogin: {"bad", tWrongLogin}, PasswordExpired: {"bad", tExpired}, Foreign: {"bad", tForeign}, OldWrong: {"bad", tOldWrong}, NewBad: {"bad", tNewBad},
	NotSame: {"bad", tNotSame}, BadChoice: {"bad", tBadChoice}, MustChange: {"warn", tMustChange}, ChoicesKept: {"ok", tSaved},
	OthersEnded: {"ok", tOthersEnded},
}

// Login is what the page for signing in shows.
type Login struct {
	Name    string
	Next    string // where to go afterwards
	Problem Problem
	Wait    time.Duration // with TooMany
}

func (l Login) wait(p *Page) string {
	// Whole seconds, up: "try again in 0 s" helps nobody.
	return p.took((l.Wait + time.Second - 1).Truncate(time.Second))
}

// Account is what one's own settings show.
type Account struct {
	Language, Theme, Zone string // as chosen, "" = no choice
	DefaultZone           string
	Rows                  int // of lists, a page
	Sessions              []access.Session
	Problem               Problem
	// Forced says that the password must be changed before anything else.
	Forced bool
}

// zones are proposed; every other one of the IANA names may be written.
var zones = strings.Fields("Asia/Shanghai Asia/Hong_Kong Asia/Taipei Asia/Tokyo Asia/Singapore Asia/Kolkata Asia/Dubai" +
	" Europe/London Europe/Berlin Europe/Paris America/New_York America/Chicago America/Los_Angeles America/Sao_Paulo Australia/Sydney UTC")
