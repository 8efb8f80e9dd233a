package wording

import (
	"backstop/internal/alert"
	"backstop/internal/base/text"
	"backstop/views/ui"
)

// AlertSubject is what an alert is about: a kind of exceptions, everything, or a name.
func AlertSubject(p *ui.Page, subject string) string {
	if w, ok := ui.ExceptionKinds[subject]; ok {
		return p.T(w)
	}
	if subject == "all" {
		return p.T(text.All)
	}
	merchant, supplier := p.Merchant(subject), p.Supplier(subject)
	switch {
	case supplier == subject && merchant != subject:
		return merchant
	case merchant == subject && supplier != subject:
		return supplier
	}
	return alert.Subject(subject, p.Language) // also of a code that both have
}

// AlertLevel is an alert's worst level; alerts about events have none.
func AlertLevel(p *ui.Page, a alert.Alert) string {
	if a.State == alert.Happened {
		return p.T(text.None)
	}
	level := alert.Level(a.Rule, a.Value)
	for _, m := range a.Sums {
		level += " · " + ui.MoneyText(m.Minor, m.Currency)
	}
	return level
}

// AlertLimit is the level at which a rule fires; rules about events have none.
func AlertLimit(p *ui.Page, r alert.Rule) string {
	if !r.Watches() {
		return p.T(text.None)
	}
	if r.Clear < r.Fire {
		return p.T(tAbove, alert.Level(r.Name, r.Fire))
	}
	return p.T(tBelow, alert.Level(r.Name, r.Fire))
}

var tAbove = text.Text{ZH: "高于 %s", EN: "above %s"}

var tBelow = text.Text{ZH: "低于 %s", EN: "below %s"}
