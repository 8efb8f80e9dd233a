package pages

import (
	"net/url"

	"backstop/internal/base/text"
	"backstop/internal/exception"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

func orderLink(no string) templ.SafeURL { return templ.URL("/orders/" + url.PathEscape(no)) }

// callbackOrder leads to the order that a callback is about. The reference of one without an order
// leads nowhere.
func callbackOrder(id int64, no string) string {
	if id == 0 {
		return ""
	}
	return string(orderLink(no))
}

// exceptionLink leads to the order's story, or to the exception itself where no
// order is behind it.
func exceptionLink(x exception.Item) templ.SafeURL {
	if x.Kind == exception.CompensationDead {
		return templ.URL("/compensations/" + url.PathEscape(x.Subject))
	}
	if x.OrderID != 0 || x.OrderNo != "" && x.Kind != exception.UnknownOrder {
		return orderLink(x.OrderNo)
	}
	return templ.URL("/exceptions?kind=" + x.Kind)
}

// TextsOf returns the texts of a list.
func TextsOf(list string) ui.ListTexts {
	for _, l := range viewedLists {
		if l.name == list {
			return l.texts()
		}
	}
	for _, l := range []struct {
		name  string
		texts ui.ListTexts
	}{{"accounts", accountTexts}, {"alerts", alertTexts}, {"batches", batchTexts}, {"merchants", merchantTexts}, {"reports", reportTexts}} {
		if l.name == list {
			return l.texts
		}
	}
	return ui.ListTexts{} // without fields
}

// Texts of several lists.
var (
	tBarsCalls = text.Text{ZH: "可信的渠道回调", EN: "Authentic callbacks from suppliers"}
)
