// Package text declares texts in every language of the console, and the texts that several
// pages share. A text of a single page is declared beside that page.
package text

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
