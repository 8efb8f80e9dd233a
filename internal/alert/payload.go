package alert

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// JSONPrefix begins the names of targets that are programs: what they are sent is a Payload.
const JSONPrefix = "json+"

// Payload is a message for programs.
type Payload struct {
	Alerts []PayloadAlert `json:"alerts"`
	// Title and Text are those of a message that is about no alert, such as a test.
	Title string `json:"title,omitempty"`
	Text  string `json:"text,omitempty"`
}

// PayloadAlert is one alert of a Payload.
type PayloadAlert struct {
	Alert      string      `json:"alert"`   // the rule
	Subject    string      `json:"subject"` // what it is about: a queue, a merchant, a kind of exception, …
	State      string      `json:"state"`   // Firing, Resolved or Happened
	Since      string      `json:"since"`   // RFC 3339, UTC
	Count      int64       `json:"count"`   // how often it happened
	Text       PayloadText `json:"text"`
	URL        string      `json:"url"` // the page of the console with its rows
	RunbookURL string      `json:"runbook_url"`
}

// PayloadText is a sentence in both languages.
type PayloadText struct {
	EN string `json:"en"`
	ZH string `json:"zh"`
}

// JSON returns what is sent.
func (p Payload) JSON() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("alert: %v", err)) // texts and numbers only
	}
	return string(text)
}

// message writes a message about the alerts of one rule for a target.
func (s Style) message(target string, rule Rule, alerts []Alert) (title, body string) {
	title, body = s.compose(rule, alerts)
	if strings.HasPrefix(target, JSONPrefix) {
		body = s.payload(rule, alerts).JSON()
	}
	return title, body
}

func (s Style) payload(rule Rule, alerts []Alert) (p Payload) {
	for _, a := range alerts {
		p.Alerts = append(p.Alerts, PayloadAlert{
			Alert: a.Rule, Subject: a.Subject, State: a.State, Since: time.UnixMicro(a.OpenedAt).UTC().Format(time.RFC3339), Count: a.Count,
			Text: PayloadText{EN: s.sentence("en", rule, a), ZH: s.sentence("zh", rule, a)},
			URL:  s.link(rule.Name), RunbookURL: s.runbook(rule.Name),
		})
	}
	return p
}

// sentence describes one alert in a language, after its rule's title.
func (s Style) sentence(language string, rule Rule, a Alert) string {
	s.Language = language
	says := s.line(rule, a)
	if slices.Contains(byKind, rule.Name) {
		says = s.kinds([]Alert{a})
	}
	return Title(rule.Name, language) + tColon.In(language) + says
}
