package ui

import "backstop/internal/base/text"

// emptyWords are what is shown in place of rows.
type emptyWords struct {
	icon, title, how string
	chips            []Chip // filters to drop
	wider            string // the list over a longer time; "" = it covers all
}

// nothing says why a list is empty: what was typed cannot be read, the end is reached, all is clear,
// nothing matches, nothing happened recently, or there is nothing yet.
func (l List) nothing(p *Page) emptyWords {
	switch {
	case len(l.Problems) > 0:
		return emptyWords{icon: "filter", title: p.T(tUnread), how: p.T(tUnreadHow)}
	case !l.First:
		return emptyWords{icon: l.Texts.Icon, title: p.T(tNoMore), how: p.T(tNoMoreHow)}
	case l.clear():
		return emptyWords{icon: "circle-check", title: p.T(text.AllClear), how: p.T(text.AllClearHow)}
	case !l.Anything:
		return emptyWords{icon: l.Texts.Icon, title: p.T(l.Texts.None), how: p.T(l.Texts.NoneHow, l.Texts.HowArgs...)}
	case l.filtered():
		chips, how := l.toDrop(p)
		return emptyWords{icon: "filter", title: p.T(tNoMatch), how: p.T(how), chips: chips, wider: l.wider()}
	}
	span := p.Full(l.Window.From) + " – " + p.Full(l.Window.To)
	return emptyWords{icon: "clock", title: p.T(tNothingThen), how: span, wider: l.wider()}
}

// matching is in which order rows are shown, or how many on a page, and how many there are.
func (l List) matching(p *Page) []string {
	all := []string{p.T(tPerPage, l.Rows)}
	if l.Order != (text.Text{}) {
		all[0] = p.T(l.Order)
	}
	if l.Count > 0 {
		all = append(all, p.T(tMatching, Count(l.Count), Plus(l.More)))
	}
	return all
}

// reached is how far back was looked; 0 = as far as the list goes.
func (l List) reached() (text.Text, int64) {
	if l.Reached == 0 && l.Older == "" {
		return tWindowEnds, l.Window.From
	}
	return tReached, l.Reached
}
