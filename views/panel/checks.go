package panel

import (
	"strings"

	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/supplier"
)

func Passed(steps []supplier.Step) (n int) {
	for _, s := range steps {
		if s.OK {
			n++
		}
	}
	return n
}

// mark shows whether a step was passed.
type mark struct {
	class, icon string
	says        text.Text
}

func markOf(s supplier.Step) mark {
	if s.OK {
		return mark{"t-ok", "check", tPassed}
	}
	return mark{"t-bad", "x", tNotPassed}
}

// RawRequest is a callback as it came: line, headers, body.
func RawRequest(c *console.Callback) string {
	target := "/callback/" + c.Supplier
	if c.Query != "" {
		target += "?" + c.Query
	}
	return c.Method + " " + target + "\n" + strings.TrimRight(c.Headers, "\n") + "\n\n" + string(c.Body)
}

var tPassed = text.Text{ZH: "通过", EN: "passed"}

var tNotPassed = text.Text{ZH: "未通过", EN: "not passed"}
