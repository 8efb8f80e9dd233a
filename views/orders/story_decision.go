package orders

import (
	"cmp"

	"backstop/internal/approval"
	"backstop/internal/base/text"
	"backstop/internal/console"
)

// verdictBy is who decided: of what one person decides alone, its maker.
func verdictBy(d *console.Decision) string { return cmp.Or(d.CheckerName, d.MakerName) }

// ranText is how a decision ended.
func ranText(d *console.Decision) text.Text {
	if d.State == approval.Failed {
		return tRanFailed
	}
	return tRan
}

// Texts of a chain of decisions.
var (
	tProposed  = text.Text{ZH: "提议", EN: "proposed"}
	tVerdict   = text.Text{ZH: "复核", EN: "decided on"}
	tRan       = text.Text{ZH: "决定已生效", EN: "Decision in effect"}
	tRanFailed = text.Text{ZH: "决定未能执行", EN: "Decision not carried out"}
	tRanTimes  = text.Text{ZH: "第 %d 次执行，最多 %d 次", EN: "run %d of at most %d"}
	tPeople    = text.Text{ZH: "经办 %s · 复核 %s", EN: "made by %s · checked by %s"}
	tBoundTo   = text.Text{ZH: "绑定的摘要", EN: "Bound to hash"}
)
