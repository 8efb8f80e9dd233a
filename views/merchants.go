package views

import (
	"strings"
	"time"

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
	Done                string
}

func merchantLink(code string) templ.SafeURL { return templ.SafeURL("/merchants/" + urlQuery(code)) }

// act is the address of an act on the merchant.
func (d MerchantData) act(path string) string { return string(merchantLink(d.Code)) + "/" + path }

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
		return state{"bad", "ban", tAddressDisabled}
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
