package console

import (
	"net/url"
	"strings"

	"backstop/internal/alert"
)

// Viewer is who looks at what needs an operator.
type Viewer struct {
	Alerts  bool                 // they may read alerts
	Decides func(*Approval) bool // they may decide a proposal now; nil = none
}

// Todo leaves out the proposals that another person has to decide. Those that wait for the viewer come
// first.
func (v Viewer) Todo(all []Todo) []Todo {
	var shown []Todo
	for _, t := range all {
		if t.Matter != MatterApprovals {
			shown = append(shown, t)
		} else if t = t.Proposals.For(v.Decides); t.Count > 0 {
			shown = append([]Todo{t}, shown...)
		}
	}
	return shown
}

// AttentionFilter chooses lines of Attention. The zero filter chooses all.
type AttentionFilter struct {
	Text   string // contained in the title, the subject or the name
	Matter string // one of AttentionMatters
	Who    string // one of AttentionWho
	Viewer string // the operator's name, which Mine means
}

// Values of AttentionFilter.Who.
const (
	Mine       = "me"
	Unassigned = "nobody"
)

// AttentionWho are all of them.
var AttentionWho = []string{Mine, Unassigned}

// AttentionMatters are what lines of Attention are about.
var AttentionMatters = []string{string(MatterIncident), string(MatterExceptions), string(MatterApprovals), string(MatterBreaker)}

// Values are the filter's parameters in an address.
func (f AttentionFilter) Values() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{"text": f.Text, "matter": f.Matter, "who": f.Who} {
		if value != "" {
			v.Set(name, value)
		}
	}
	return v
}

// Any reports whether anything is filtered.
func (f AttentionFilter) Any() bool { return f.Text+f.Matter+f.Who != "" }

// keeps reports whether the filter chooses a line; title is how the line is called.
func (f AttentionFilter) keeps(t Todo, title func(Todo) string) bool {
	assignee := t.Assignee()
	switch {
	case f.Matter != "" && f.Matter != string(t.Matter) && !(f.Matter == string(MatterBreaker) && t.opened()):
		return false
	case f.Who == Mine && assignee != f.Viewer, f.Who == Unassigned && assignee != "":
		return false
	}
	if f.Text == "" {
		return true
	}
	wanted := strings.ToLower(f.Text)
	for _, text := range []string{title(t), t.Code, t.Name, assignee} {
		if strings.Contains(strings.ToLower(text), wanted) {
			return true
		}
	}
	return false
}

// AttentionParts are the lines of Attention by what is done about them.
type AttentionParts struct {
	Now, InHand, Snoozed, Ended []Todo
	Hidden                      int // lines that the filter leaves out
}

// All are the parts in the order in which they are shown.
func (a AttentionParts) All() [][]Todo { return [][]Todo{a.Now, a.InHand, a.Snoozed, a.Ended} }

// Parts are the lines that the viewer may see and the filter chooses; title is how a line is called in the
// viewer's language.
func (a Attention) Parts(v Viewer, f AttentionFilter, title func(Todo) string) (parts AttentionParts) {
	add := func(to *[]Todo, t Todo) {
		if f.keeps(t, title) {
			*to = append(*to, t)
		} else {
			parts.Hidden++
		}
	}
	for _, t := range v.Todo(a.Lines) {
		switch i := t.Incident; {
		case i == nil:
			add(&parts.Now, t)
		case !v.Alerts:
			// Open breakers are on the pages of merchants too; one that is calm has closed.
			if i.Rule == alert.BreakerOpened && i.ClearedAt == nil {
				t.Incident, t.Matter, t.Count = nil, MatterBreaker, t.Waits
				add(&parts.Now, t)
			}
		case i.State == alert.Acknowledged:
			add(&parts.InHand, t)
		case i.State == alert.Snoozed:
			add(&parts.Snoozed, t)
		default:
			add(&parts.Now, t)
		}
	}
	if v.Alerts {
		for n := range a.Ended {
			i := &a.Ended[n]
			add(&parts.Ended, Todo{
				Matter: MatterIncident, Kind: i.Rule, Code: i.Subject, Count: i.Firings, Oldest: i.OpenedAt, Incident: i,
			})
		}
	}
	return parts
}

// Assignee is who works on it; "" = nobody, or it is no incident.
func (t Todo) Assignee() string {
	if t.Incident == nil {
		return ""
	}
	return t.Incident.Assignee
}

// opened reports whether the line is about an open breaker.
func (t Todo) opened() bool {
	return t.Matter == MatterUnreached ||
		t.Incident != nil && (t.Incident.Rule == alert.BreakerOpened || t.Incident.Rule == alert.SupplierUnreachable)
}
