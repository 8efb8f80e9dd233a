package overview

import (
	"strings"

	"backstop/docs"
	"backstop/internal/base/text"
	"backstop/views/panel"
)

// runbooks are the operations manual as HTML, by language; it is part of the program, so it is rendered once.
var runbooks = map[string]panel.Document{"en": renderManual("en"), "zh": renderManual("zh")}

func renderManual(language string) (html panel.Document) {
	ours := func(page string) bool { return !strings.Contains(page, "/") } // the others are in other folders
	for _, page := range docs.Operations(language) {
		html += panel.Markdown(page, "manual-title", ours)
	}
	return html
}

var tRunbookHow = text.Text{ZH: "当前版本的运维手册。", EN: "The operations manual of this version."}
