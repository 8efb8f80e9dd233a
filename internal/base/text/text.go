// Package text declares texts for people in every language, and those that more than one
// page uses. A text of one page is declared beside it.
package text

// Text is one text in every language of the console. Tests check the texts: none unused, the
// same placeholders in each language, nothing empty.
type Text struct{ ZH, EN string }

// In is the text in a language: Chinese unless English is asked for.
func (t Text) In(language string) string {
	if language == "en" {
		return t.EN
	}
	return t.ZH
}
