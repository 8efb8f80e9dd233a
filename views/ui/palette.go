package ui

import "backstop/internal/base/text"

// Texts of the palette.
var (
	tPalette      = text.Text{ZH: "快速跳转与操作", EN: "Go to a page, an order or an act"}
	tPaletteHint  = text.Text{ZH: "页面、操作、单号、商户、渠道", EN: "Page, act, number, merchant, supplier"}
	tPaletteHits  = text.Text{ZH: "匹配项", EN: "Matches"}
	tPaletteHere  = text.Text{ZH: "本页操作", EN: "On this page"}
	tPaletteFound = text.Text{ZH: "共 # 项", EN: "Found: #"}
	tPaletteMove  = text.Text{ZH: "选择", EN: "choose"}
	tPaletteGo    = text.Text{ZH: "打开", EN: "open"}
)
