package ui

import "backstop/internal/base/text"

// bell says what the bell shows.
func (p *Page) bell(u Unread) string {
	if u.N == 0 {
		return p.T(text.Inbox)
	}
	return p.T(tInboxUnread, Count(int64(u.N)), Plus(u.More))
}

var tInboxUnread = text.Text{ZH: "收件箱，%s%s 条未读", EN: "Inbox, %s%s unread"}
