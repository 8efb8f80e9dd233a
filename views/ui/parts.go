package ui

import (
	"strconv"
	"strings"

	"backstop/internal/base/text"
)

// htmxConfig keeps htmx within the content security policy: it must not add
// styles or evaluate code.
const htmxConfig = `{"includeIndicatorStyles":false,"allowEval":false,"allowScriptTags":false,"selfRequestsOnly":true,"historyCacheSize":0,"refreshOnHistoryMiss":true}`

// other is the other one of two.
func other(is, a, b string) string {
	if is == a {
		return b
	}
	return a
}

func initial(name string) string { return strings.ToUpper(name[:min(1, len(name))]) }

// pressed is the value of aria-pressed.
func pressed(is bool) string { return strconv.FormatBool(is) }

// Plus follows a count that stops at a bound.
func Plus(more bool) string {
	if more {
		return "+"
	}
	return ""
}

// Texts of these pieces.
var (
	tCopy    = text.Text{ZH: "复制 %s", EN: "Copy %s"}
	tCopyAll = text.Text{ZH: "复制", EN: "Copy"}
)
