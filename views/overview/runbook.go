package overview

import (
	"strings"

	"backstop/docs"
	"backstop/internal/base/text"
	"backstop/views/panel"
)

// runbooks are the operations manual as HTML, by language; it is part of the program, so it is rendered once.
var runbooks = map[string]string{"en": renderManual("en"), "zh": renderManual("zh")}

func renderManual(language string) (html string) {
	for _, page := range docs.Operations(language) {
		html += panel.Markdown(page, "manual-title", func(page string) bool { return !strings.Contains(page, "/") }) // the others are in other folders
	}
	return html
}

var tRunbookHow = text.Text{ZH: "当前版本的运维手册。", EN: "The operations manual of this version."}
