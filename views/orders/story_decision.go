package orders

import (
	"cmp"
	"slices"

	"backstop/internal/approval"
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// storyDecision is one link of the chain from a proposal to its effect.
func storyDecision(p *ui.Page, i console.Item) parts {
	d := i.Decision()
	var did, below parts
	switch {
	case i.Proposal != nil:
		var facts parts
		for _, f := range wording.ProposalFacts(p, d.ObjectID, d.Params, d.Currency) {
			facts = append(facts, block("", panel.Text(p.T(f.Label)+p.T(text.Colon)+f.Text)))
		}
		did = parts{strong(wording.Actor(p, d.MakerName)), panel.Text(p.T(tProposed))}
		below = parts{block("wrap", panel.Text(d.Reason)), block("meta wrap", facts...)}
	case i.Verdict != nil:
		did = parts{strong(wording.Actor(p, verdictBy(d))), panel.Text(p.T(tVerdict))}
		below = parts{block("wrap", panel.Text(d.CheckerReason))}
	default:
		did = parts{strong(p.T(ranText(d)))}
		below = parts{
			meta(p.T(tPeople, d.MakerName, verdictBy(d))),
			ui.If(d.Tries > 1, block("meta", panel.Text(p.T(tRanTimes, d.Tries, wording.MaxRuns)))),
			ui.If(d.Error != "", meta(d.Error)),
		}
	}
	number := templ.Join(ui.ID(p, d.No(), d.No(), ""), ui.If(d.SinglePerson, tag(p.T(text.SinglePerson))))
	first := what(append(did, panel.Anchor(link.Approval(d.ID), p.T(wording.Action(d.Action))), number)...)
	return slices.Concat(parts{first}, below, parts{block("meta", panel.Text(p.T(tBoundTo)), ui.Styled("mono wrap", d.Hash))})
}

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
