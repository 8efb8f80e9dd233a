package panel

import (
	"strings"

	"backstop/internal/base/text"
	"backstop/views/ui"
)

// RefusedNote is a note that was not stored, to be corrected.
type RefusedNote struct {
	Text    string
	Unknown []string // people whom it mentions and who cannot be reached; none = it is too short or too long
}

func (n *RefusedNote) problem(p *ui.Page) string {
	if len(n.Unknown) == 0 {
		return p.T(text.ReasonRule)
	}
	return p.T(tMentionUnknown, "@"+strings.Join(n.Unknown, ", @"))
}

var tMentionHow = text.Text{ZH: "写 @用户名 可将备注发到同事的收件箱。", EN: "Write @name to send the note to a colleague's inbox."}

var tMentionUnknown = text.Text{
	ZH: "没有能看到此内容的用户 %s：请更正，或在 @ 后加一个空格。备注没有保存。",
	EN: "Nobody named %s may see this. Correct the name, or put a space after the @. The note was not stored.",
}

var tMentionWho = text.Text{ZH: "可以提到的同事", EN: "Colleagues you can mention"}

var tNoteAgain = text.Text{ZH: "备注没有保存", EN: "The note was not stored"}
