package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"backstop/internal/audit"
)

// What becomes of an entry of the file.
const (
	created   = "created"
	changed   = "changed"
	opened    = "opened"
	unchanged = "unchanged"
	// disabled is said beside changed, in the audit.
	disabled = "disabled"
)

// entry is what became of one entry of the file. None of it is a secret: how names
// fields, or is an opening balance.
type entry struct {
	name     string // "supplier wx-main"
	what     string
	how      string
	disabled bool
}

func (w *writer) say(what, name, how string) {
	w.entries = append(w.entries, entry{name: name, what: what, how: how})
}

// turned notes of the entry that was said last whether it was switched off.
func (w *writer) turned(is, was bool) { w.entries[len(w.entries)-1].disabled = was && !is }

// line is the entry for who applies.
func (e entry) line() string {
	line := e.name + " " + e.what
	switch {
	case e.how == "":
		return line
	case e.what == changed:
		return line + ": " + e.how
	case e.what == opened:
		return line + " " + e.how
	}
	return line + " (" + e.how + ")"
}

// Limits of what the audit keeps of a file.
const (
	maxNamed = 20  // entries that are named, of each kind of change
	maxHow   = 200 // characters of how one of them changed
)

// keep leaves in the audit what the file changed, in the transaction that does it.
// A file that changes nothing leaves nothing.
func (w *writer) keep(ctx context.Context, f File) error {
	params := map[string]any{}
	for _, what := range []string{created, changed, opened, disabled} {
		if text := w.named(what); text != "" {
			params[what] = text
		}
	}
	if len(params) == 0 {
		return nil
	}
	sum := sha256.Sum256(f.Text)
	params["sha256"] = hex.EncodeToString(sum[:])
	return audit.New(w.env.DB, w.env.Keys).Write(ctx, w.tx, audit.Act{
		Actor: audit.Command(), Action: "settings.apply", Object: "file", ObjectID: f.Name, Params: params,
	})
}

// named lists the entries of which the same became, and counts those beyond the first.
func (w *writer) named(what string) string {
	var names []string
	more := 0
	for _, e := range w.entries {
		off := what == disabled && e.disabled
		switch {
		case e.what != what && !off:
		case len(names) == maxNamed:
			more++
		case e.how == "" || off:
			names = append(names, e.name)
		default:
			names = append(names, e.name+": "+short(e.how))
		}
	}
	text := strings.Join(names, "; ")
	if more > 0 {
		text += fmt.Sprintf(" … and %d more", more)
	}
	return text
}

func short(s string) string {
	if utf8.RuneCountInString(s) <= maxHow {
		return s
	}
	return string([]rune(s)[:maxHow]) + "…"
}
