// Package text declares texts in every language of the console, and the texts that several
// pages share. A text of a single page is declared beside that page.
package text

import (
	"strings"
	"time"
)

// Text is one text in every language of the console. Tests check that no text is unused or
// empty and that its placeholders are the same in each language.
type Text struct{ ZH, EN string }

// In returns the text in a language: English for "en", else Chinese.
func (t Text) In(language string) string {
	if language == "en" {
		return t.EN
	}
	return t.ZH
}

// Duration writes a duration as people do: 15m, not 15m0s.
func Duration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
