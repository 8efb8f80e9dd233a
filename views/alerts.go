package views

import (
	"net/url"
	"strconv"
	"time"

	"backstop/internal/alert"

	"github.com/a-h/templ"
)

// AlertsData is the page of alerts.
type AlertsData struct {
	Rules                 []alert.Rule
	Editing               *alert.Rule // open for a change
	Alerts                []alert.Alert
	Firing                int64           // how many fire now, whatever the filter says
	Messages              []alert.Message // the newest
	Targets               []string        // names, without secrets
	CanTest, CanConfigure bool
	FormKey               string
	Tested, Changed       bool // what the person has just done
	Wrong                 bool // the change of a rule was none that can be kept
	// Typed is what the form held then: nobody writes it twice.
	Typed func(field string) string
}

var alertStates = map[string]state{
	alert.Firing:   {"bad", "triangle-alert", tFiringNow},
	alert.Resolved: {"ok", "check", tOver},
	alert.Happened: {"warn", "zap-off", tHappened},
}

var alertStatesInOrder = []string{alert.Firing, alert.Resolved, alert.Happened}

var messageStates = map[string]state{
	alert.Waiting: {"info", "clock", tMsgWaiting},
	alert.Sent:    {"ok", "check", tMsgSent},
	alert.Failed:  {"bad", "x", tMsgFailed},
}

// typed is what a field of the rule's form shows: what the person wrote, where that
// was not kept, else what the rule has.
func (v AlertsData) typed(field, is string) string {
	if v.Wrong && v.Typed != nil {
		return v.Typed(field)
	}
	return is
}

// messageHow says how the first message is sent.
func (v AlertsData) messageHow() word {
	if len(v.Targets) == 0 {
		return tNoTargets
	}
	return tMsgNoneHow
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func ruleLink(name string) templ.SafeURL {
	return templ.URL("/alerts?rule=" + url.QueryEscape(name) + "#change")
}

func rulePath(name string) templ.SafeURL { return templ.URL("/alerts/rules/" + url.PathEscape(name)) }

// limitOf says at which level a rule fires; one about nothing to measure has none.
func (p *Page) limitOf(r alert.Rule) string {
	if !r.Watches() {
		return p.T(tNone)
	}
	if r.Clear < r.Fire {
		return p.T(tAbove, alert.Level(r.Name, r.Fire))
	}
	return p.T(tBelow, alert.Level(r.Name, r.Fire))
}

func (p *Page) clearOf(r alert.Rule) string {
	if !r.Watches() {
		return p.T(tNone)
	}
	return alert.Level(r.Name, r.Clear)
}

// span writes seconds, or nothing where there are none.
func (p *Page) span(seconds int64) string {
	if seconds == 0 {
		return p.T(tNone)
	}
	if seconds < 60 {
		return strconv.FormatInt(seconds, 10) + " s"
	}
	return p.took(time.Duration(seconds) * time.Second)
}

// alertOf is what an alert is about: a kind of exceptions, everything, or a name.
func (p *Page) alertOf(subject string) string {
	if w, ok := exceptionKinds[subject]; ok {
		return p.T(w)
	}
	if subject == "all" {
		return p.T(tAll)
	}
	return alert.Subject(subject, p.Language)
}

// levelOf is an alert's worst level; one that only happened has none.
func (p *Page) levelOf(a alert.Alert) string {
	if a.State == alert.Happened {
		return p.T(tNone)
	}
	level := alert.Level(a.Rule, a.Value)
	for _, m := range a.Sums {
		level += " · " + sum(m.Minor, m.Currency)
	}
	return level
}
