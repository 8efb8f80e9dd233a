package views

import "strings"

// htmxConfig keeps htmx within the content security policy: it must not write
// styles of its own nor evaluate anything.
const htmxConfig = `{"includeIndicatorStyles":false,"allowEval":false,"allowScriptTags":false,"selfRequestsOnly":true,"historyCacheSize":0,"refreshOnHistoryMiss":true}`

// other is the one of two that is not there.
func other(is, a, b string) string {
	if is == a {
		return b
	}
	return a
}

func initial(name string) string { return strings.ToUpper(name[:min(1, len(name))]) }

// plus stands behind a count that is bounded.
func plus(more bool) string {
	if more {
		return "+"
	}
	return ""
}
