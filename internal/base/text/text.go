// Package text is what the program says to people: each text in every language,
// and those that more than one page says. A text of one page is declared beside it.
package text

// Text is one text in every language that the console speaks. The texts are
// checked by the compiler (one that is missing does not compile) and by tests: none
// unused, the same placeholders in each language, nothing empty.
type Text struct{ ZH, EN string }

// In is the text in a language: Chinese unless English is asked for.
func (t Text) In(language string) string {
	if language == "en" {
		return t.EN
	}
	return t.ZH
}
