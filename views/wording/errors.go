package wording

import (
	"fmt"
	"regexp"

	"backstop/views/ui"
)

// answered matches a channel's note of an answer that is no success.
var answered = regexp.MustCompile(`^answered (\d{3})(.*)$`)

// attemptErrors are the sentences that channels note of attempts, in Chinese.
var attemptErrors = map[string]string{
	"answered %s": "应答 %s",
	"answered %s; redirects are not followed":                  "应答 %s；不跟随重定向",
	"answered %s, but not with the text agreed on":             "应答 %s，但正文与约定不符",
	"answered %s, but without the text that means success":     "应答 %s，但没有表示成功的文字",
	"no complete answer in time":                               "未在时限内完整应答",
	"stopped by us":                                            "我方停止",
	"the connection was reset before an answer":                "应答前连接被重置",
	"the connection was closed before the answer was complete": "应答未完时连接关闭",
}

// AttemptError is the noted error of an attempt in the person's language. What a system or
// a merchant wrote stays as it is.
func AttemptError(p *ui.Page, noted string) string {
	if p.Language == "en" {
		return noted
	}
	if m := answered.FindStringSubmatch(noted); m != nil {
		if zh, ok := attemptErrors["answered %s"+m[2]]; ok {
			return fmt.Sprintf(zh, m[1])
		}
	}
	if zh, ok := attemptErrors[noted]; ok {
		return zh
	}
	return noted
}
