package ui

import (
	"strings"
	"time"

	"backstop/internal/base/text"
)

// Minute is a moment to the minute, with the day where it is not today's.
func Minute(p *Page, us int64) string {
	if t := p.At(us); t.Format(time.DateOnly) != p.Now.In(p.Zone).Format(time.DateOnly) {
		return t.Format("01-02 15:04")
	}
	return p.At(us).Format("15:04")
}

// MomentOr is a moment; nil = it is 0, so there is none.
func MomentOr(us int64) *int64 {
	if us == 0 {
		return nil
	}
	return &us
}

// awayWords are the words of Away, with which a script goes on.
func (p *Page) awayWords() string {
	return strings.Join([]string{p.T(tAgo), p.T(tIn), p.T(tSeconds), p.T(tMinutes), p.T(tHours), p.T(tDays)}, "|")
}

var tOldestSince = text.Text{ZH: "最早", EN: "oldest from"}

var tSince = text.Text{ZH: "始于", EN: "since"}
