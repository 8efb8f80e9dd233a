package ui

import (
	"net/url"
	"strings"

	"backstop/internal/base/text"
	"backstop/internal/list"
	"backstop/internal/savedview"
)

// ViewBar is the views of a list, above it.
type ViewBar struct {
	List   string // name
	Tabs   []ViewTab
	Filter string // the current filter as in the URL; "" = none, or it is a view
	Key    string // of the form that saves it
	// MayShare and MayWatch say what the form offers.
	MayShare, MayWatch bool
	// Broken is what is wrong with the view that is open; "" = nothing.
	Broken string
	Saved  bool // the view that is open has just been saved
}

// ViewTab is one view.
type ViewTab struct {
	Key     string // of its count; "" = the whole list
	Label   string
	Hint    string // where the pointer rests
	Icon    string // "" = none
	Link    string
	Count   string // "" = not counted yet
	Current bool
}

// FilterWords writes a filter in words.
func (p *Page) FilterWords(spec *list.Spec, texts ListTexts, values url.Values) string {
	l := List{Query: Query{Values: values}, Spec: spec, Texts: texts, Window: Window{Always: true}}
	var parts []string
	for _, c := range l.chips(p) {
		parts = append(parts, c.Label+p.T(text.Colon)+c.Value)
	}
	return strings.Join(parts, " · ")
}

// days writes a month or a day of a filter with its zone.
func days(value string) text.Text {
	day, zone, _ := strings.Cut(value, "@")
	return text.Text{ZH: day + "（" + zone + "）", EN: day + " (" + zone + ")"}
}

// Most characters of a view's name.
const maxViewName = savedview.MaxName

// Texts of the views.
var (
	tViews      = text.Text{ZH: "视图", EN: "Views"}
	tViewName   = text.Text{ZH: "视图名称", EN: "Name of the view"}
	tViewSave   = text.Text{ZH: "保存为视图", EN: "Save as a view"}
	tViewSaveGo = text.Text{ZH: "保存", EN: "Save"}
	tViewShare  = text.Text{ZH: "共享给能打开此列表的人", EN: "Share with everybody who may open this list"}
	tViewWatch  = text.Text{ZH: "有新记录时提醒我（收件箱）", EN: "Alert me to new rows, in my inbox"}
	tViewManage = text.Text{ZH: "管理视图", EN: "Manage views"}
	tViewSaved  = text.Text{ZH: "视图已保存。", EN: "The view is saved."}
)
