package access

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
	"unicode"
)

// ErrCommon means that a new password is among those that guessers try first.
var ErrCommon = fmt.Errorf("%w: it is one of the most common ones, or made of one", ErrPassword)

const (
	// commonPasswords is how many of the most common ones are refused.
	commonPasswords = 10_000
	// maxPattern is the length in bytes of what makes no password by being repeated: 111111111111.
	maxPattern = 3
)

// commonList has them, one a line. Its comments say where it is from, and its licence.
//
//go:embed common_passwords.txt
var commonList string

// common holds them.
var common = sync.OnceValue(func() map[string]bool {
	set := make(map[string]bool, commonPasswords)
	for line := range strings.Lines(commonList) {
		if word := strings.TrimSuffix(line, "\n"); word != "#" && !strings.HasPrefix(word, "# ") {
			set[word] = true
		}
	}
	return set
})

// isCommon reports whether a password is a common one, in any case, with digits and signs before or
// after it, or several times in a row. Few common ones have twelve characters: people lengthen one.
func isCommon(password string) bool {
	password = strings.ToLower(password)
	core := strings.TrimFunc(password, func(r rune) bool { return !unicode.IsLetter(r) })
	return common()[core] || common()[unrepeated(core)] || common()[unrepeated(password)] || len(unrepeated(password)) <= maxPattern
}

// unrepeated returns the shortest text that makes up the given one by being repeated.
func unrepeated(text string) string {
	for n := 1; n <= len(text)/2; n++ {
		if len(text)%n == 0 && strings.Repeat(text[:n], len(text)/n) == text {
			return text[:n]
		}
	}
	return text
}
