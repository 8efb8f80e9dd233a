package wording

import (
	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/views/ui"
)

// FundPart names a part of the funds.
func FundPart(part string) text.Text { return ui.TextFor(fundParts, console.FundPart(part)) }

var FundIcons = map[console.FundPart]string{console.InTransit: "send", console.Disputed: "shield-alert"}

// FundOrder is the order in which the parts are shown.
var FundOrder = []console.FundPart{console.InTransit, console.Disputed}

var fundParts = map[console.FundPart]text.Text{
	console.InTransit: {ZH: "在途资金（退款、出款）", EN: "In transit"},
	console.Disputed:  {ZH: "争议保留", EN: "Disputed"},
}
