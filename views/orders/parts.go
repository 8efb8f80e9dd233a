package orders

import (
	"strconv"

	"backstop/internal/exception"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// parts are what a page shows one after the other.
type parts = []templ.Component

// strong is a text that stands out.
func strong(said string) templ.Component { return bold(panel.Text(said)) }

// what is the first line about an event.
func what(all ...templ.Component) templ.Component { return block("what", all...) }

// meta says more about an event.
func meta(said string) templ.Component { return block("meta wrap", panel.Text(said)) }

func tag(said string) templ.Component { return ui.Styled("tag", said) }

// moment are the attributes of a time.
func moment(p *ui.Page, us int64) templ.Attributes {
	return templ.Attributes{"datetime": ui.Machine(us), "title": p.Hover(us)}
}

// eventTag is the type of a notification.
func eventTag(p *ui.Page, eventType string) templ.Component {
	return titled("tag", eventType, p.T(wording.EventType(eventType)))
}

func exceptionLink(p *ui.Page, x exception.Item) templ.Component {
	return panel.Anchor(link.Exception(x.ID), p.T(ui.KindText(x.Kind)))
}

// smallLink are the attributes of a link below something.
var smallLink = templ.Attributes{"class": "small"}

// foldID is the id of what is folded away.
func foldID(kind string, id int64) string { return kind + "-" + strconv.FormatInt(id, 36) }

// answered begins a line with the HTTP status of an answer; "" = there was none.
func answered(status int) string {
	if status == 0 {
		return ""
	}
	return "HTTP " + strconv.Itoa(status) + " "
}

// titled is a text with what it shows where the pointer rests.
func titled(class, title, said string) templ.Component {
	more := templ.Attributes{"title": title}
	if class != "" {
		more["class"] = class
	}
	return span(said, more)
}
