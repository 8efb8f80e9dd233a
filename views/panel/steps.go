package panel

import (
	"backstop/internal/base/text"

	"github.com/a-h/templ"
)

// Step is one step of a way that is walked once.
type Step struct {
	Title string
	Done  bool
	How   templ.Component // nil = the title says it
}

var tDone = text.Text{ZH: "已完成", EN: "done"}
