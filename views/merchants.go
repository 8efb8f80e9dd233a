package views

import (
	"strconv"
	"strings"
	"time"

	"backstop/internal/audit"
	"backstop/internal/breaker"
	"backstop/internal/console"
	"backstop/internal/notify"

	"github.com/a-h/templ"
)

// MerchantData is the page of one merchant.
type MerchantData struct {
	*console.Merchant
	CanControl, CanPing bool
	FormKey             string
	Did                 *audit.Row // by the form that led here
}

func merchantLink(code string) templ.SafeURL { return templ.SafeURL("/merchants/" + urlQuery(code)) }

// act is the address of an act on the merchant.
func (d MerchantData) act(path string) string { return string(merchantLink(d.Code)) + "/" + path }

// says is how the breaker stands and what comes next.
func (d MerchantData) says(p *Page) string {
	switch d.state() {
	case breaker.Open:
		next := p.T(tBreakerIdle)
		if d.Breaker.ByHand {
			next = p.T(tBreakerHand)
		} else if d.Held {
			next = p.T(tBreakerUntil, p.short(d.Breaker.OpenUntil))
		}
		return p.sentences(p.T(tBreakerWhy, breakerCause(p, d.Breaker.Cause, d.Breaker.Failures)), next)
	case breaker.HalfOpen:
		return p.T(tBreakerProbing)
	}
	return p.T(tBreakerWell)
}

// sentences puts them after each other; Chinese has no space between.
func (p *Page) sentences(all ...string) string {
	if p.Language == "en" {
		return strings.Join(all, " ")
	}
	return strings.Join(all, "")
}

// orNone is a text, or what stands for none.
func (p *Page) orNone(text string) string {
	if text == "" {
		return p.T(tNone)
	}
	return text
}

// schedule is the preset's name, or the waits themselves.
func (d MerchantData) schedule() string {
	if d.Settings.Schedule != "list" {
		return d.Settings.Schedule
	}
	waits := make([]string, len(d.Settings.WaitsMS))
	for i, ms := range d.Settings.WaitsMS {
		waits[i] = noZeros.Replace((time.Duration(ms) * time.Millisecond).String() + " ")
	}
	return strings.TrimSpace(strings.Join(waits, ""))
}

// noZeros writes a wait as people declare it: 10m, not 10m0s.
var noZeros = strings.NewReplacer("h0m0s ", "h ", "m0s ", "m ")

// rate is how many attempts all nodes may make, which may be less than one a second.
func (d MerchantData) rate() string {
	return strconv.FormatFloat(d.Settings.RatePerSecond, 'f', -1, 64) + "/s"
}

// state is the breaker's state; a merchant that never failed has none and is well.
func (d MerchantData) state() breaker.State {
	if d.Breaker == nil {
		return breaker.Closed
	}
	return d.Breaker.State
}

// eventsOf are the types of events that an address takes.
func eventsOf(p *Page, a console.Address) string {
	if len(a.Events) == 0 {
		return p.T(tAllEvents)
	}
	return strings.Join(a.Events, ", ")
}

func addressState(a console.Address) state {
	switch {
	case a.DisabledAt != nil:
		return state{"bad", "ban", tDisabledWord}
	case a.Failures > 0:
		return state{"warn", "activity", tAddressFailing}
	case a.OKAt != nil:
		return state{"ok", "check", tHealthy}
	}
	return state{"idle", "clock", tQuiet}
}

func millis(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

func pingState(a *notify.Attempt) state {
	if a.Class == "ok" {
		return state{"ok", "check", classWord(a.Class)}
	}
	return state{"bad", "x", classWord(a.Class)}
}
