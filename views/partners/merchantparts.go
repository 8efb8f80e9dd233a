package partners

import (
	"strconv"
	"time"

	"backstop/internal/base/text"
	"backstop/internal/breaker"
	"backstop/internal/notify"
	"backstop/internal/testmode"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// Merchants is the list of merchants by their code.
func Merchants(p *ui.Page, l ui.List) templ.Component {
	l = l.As(MerchantTexts)
	rows := ui.Nothing(p, l)
	if !l.Empty {
		rows = templ.Join(ui.Rows(p, l, text.Merchants), ui.If(l.Older != "" || !l.First, ui.Pager(p, l)))
	}
	return panel.Page(p, p.T(text.Merchants),
		panel.ListHead(
			p.T(text.Merchants),
			settingsButton(p, link.NewObject("merchants"), tAddMerchant), ui.DisplayMenu(p, l), ui.ExportMenu(p, l),
		),
		panel.Labelled(p.T(text.Merchants), "", ui.FilterBar(p, l), rows),
	)
}

func merchantName(_ *ui.Page, m merchantRow) templ.Component {
	name := panel.Anchor(link.Merchant(m.Code), wording.MerchantName(m.Name, m.Code, m.ID))
	return panel.Spaced(name, ui.Styled("mono muted small", m.Code))
}

// figures are those of the merchant's last hour, and of what waits for it.
func (d MerchantData) figures(p *ui.Page) []ui.Fact {
	atRisk := panel.Text(p.T(text.None))
	if main, _ := ui.LeadSum(d.AtRisk); main.Orders > 0 {
		atRisk = leadSums(d.AtRisk)
	}
	rate := panel.Spaced(panel.Text(ui.RateText(p, d.Point, 1)), panel.Spark(panel.Trend(d.MerchantHealth), panel.TrendKind(d.MerchantHealth)))
	return []ui.Fact{
		ui.BodyFact(text.RateHour, rate).As("with-spark"),
		ui.BodyFact(text.P95, panel.Text(ui.P95Text(p, d.Took))),
		ui.BodyFact(text.Unnotified, panel.RowCount(p, d.Waiting, false, link.Unnotified(d.Code))),
		ui.BodyFact(text.RiskColumn, atRisk),
		ui.BodyFact(tLastOK, ui.WhenOr(p, ui.MomentOr(d.LastOK))).As("moment"),
		ui.BodyFact(tLastFailed, ui.WhenOr(p, ui.MomentOr(d.LastFailed))).As("moment"),
	}
}

// dialog asks for the reason of an act on the merchant.
type dialog struct {
	name, icon, path, key string
	label, title, how     text.Text
	about                 templ.Component // the endpoint that it is about; nil = none
}

// openers are the buttons that open dialogs.
func openers(p *ui.Page, all []dialog) (buttons []templ.Component) {
	for _, x := range all {
		buttons = append(buttons, panel.OpenDialog(p, x.name, x.icon, x.label))
	}
	return buttons
}

func dialogs(p *ui.Page, d MerchantData, all []dialog) (asked []templ.Component) {
	for _, x := range all {
		asked = append(asked, askFor(p, d, x))
	}
	return asked
}

// breakerActs are what the reader may do with the breaker.
func (d MerchantData) breakerActs() []dialog {
	probe := dialog{"probe", "flask-conical", "breaker/probe", d.FormKey, tProbeBreaker, tProbeBreakerT, tProbeBreakerHow, nil}
	closeIt := dialog{"close", "check", "breaker/close", d.FormKey, tCloseBreaker, text.CloseBreakerT, tCloseBreakerHow, nil}
	openIt := dialog{"open", "zap-off", "breaker/open", d.FormKey, tOpenBreaker, tOpenBreakerT, tOpenBreakerHow, nil}
	switch {
	case !d.CanControl:
		return nil
	case d.state() == breaker.Open:
		return []dialog{probe, closeIt}
	case d.state() == breaker.Closed:
		return []dialog{openIt}
	}
	return []dialog{closeIt}
}

func breakerPanel(p *ui.Page, d MerchantData) templ.Component {
	acts := d.breakerActs()
	parked := panel.Anchor(link.Parked(d.Code), p.T(tParkedCount, ui.Count(d.Parked.Count)))
	body := panel.Box("body stack-tight",
		ui.Say(d.says(p)),
		ui.If(d.Parked.Count > 0, panel.Line("strong", parked)),
		ui.If(d.CanControl, panel.Line("row", openers(p, acts)...)),
	)
	return panel.Section("breaker-title", p.T(tBreakerTitle), "", ui.Pill(p, ui.StateOf(ui.BreakerStates, string(d.state()))),
		append([]templ.Component{body}, dialogs(p, d, acts)...)...)
}

func addressList(p *ui.Page, d MerchantData) templ.Component {
	var parts []templ.Component
	if len(d.Addresses) == 0 {
		parts = append(parts, ui.Empty(p, "send", p.T(tAddressesNone), p.T(tAddressesHow)))
	} else {
		parts = append(parts, ui.PlainRows(p, ui.Beside(p, d.addressColumns(), d.addresses()), tAddresses))
	}
	for _, a := range d.addresses() {
		parts = append(parts, dialogs(p, d, d.addressActs(a))...)
	}
	return panel.Section("addresses-title", p.T(tAddresses), "", nil, parts...)
}

// addressActs are what the reader may do with an endpoint. Their forms name it, as there may be several.
func (d MerchantData) addressActs(a addressRow) (all []dialog) {
	about := templ.Join(panel.Paragraph("mono small wrap", a.URL), ui.Hidden("endpoint", a.Key))
	if d.CanPing {
		all = append(all, dialog{"ping-" + a.at, "send", "ping", d.FormKey + a.at, tPing, tPingT, tPingHow, about})
	}
	if d.CanEnable && a.DisabledAt != nil {
		all = append(all, dialog{"enable-" + a.at, "check", "enable", d.FormKey + "e" + a.at, tEnable, tEnableT, tEnableHow, about})
	}
	return all
}

func addressName(p *ui.Page, a addressRow) templ.Component {
	fails := a.LastError != "" && (a.Failures > 0 || a.DisabledAt != nil)
	return panel.Spaced(
		ui.Styled("mono small", a.URL),
		ui.If(a.Name != a.URL, ui.Styled("muted small", a.Name)),
		ui.If(fails, panel.Box("muted small", panel.Text(wording.AttemptError(p, a.LastError)))),
	)
}

func addressChannel(p *ui.Page, a addressRow) templ.Component {
	return panel.Spaced(ui.Styled("mono small", a.Channel), ui.Styled("muted small", eventsOf(p, a.Address)))
}

// SecretRotated shows a merchant's new signing secret, once.
func SecretRotated(p *ui.Page, code, secret string) templ.Component {
	return panel.Page(p, p.T(tRotated),
		ui.Crumb(p, string(link.Merchant(code)), text.Merchant), panel.Head(p.T(tRotated), ""),
		ui.Notice(p, "ok", p.T(tRotateHow)), made(p, ui.Copied(p, secret)))
}

// TestKeyMade shows a merchant's new key of test mode, once.
func TestKeyMade(p *ui.Page, code string, given testmode.Issued) templ.Component {
	return panel.Page(p, p.T(tTestKeyMade),
		ui.Crumb(p, string(link.Merchant(code)), text.Merchant), panel.ListHead(p.T(tTestKeyMade)),
		made(p, ui.Copied(p, given.APIKey), ui.If(given.SigningSecret != "", ui.Copied(p, given.SigningSecret))))
}

// pingAnswer is how an endpoint answered a ping just now; nil = none was sent.
func pingAnswer(p *ui.Page, a *notify.Attempt) templ.Component {
	if a == nil {
		return templ.NopComponent
	}
	how := "· " + p.Took(time.Duration(a.TookUS)*time.Microsecond)
	if a.HTTPStatus > 0 {
		how += " · HTTP " + strconv.Itoa(a.HTTPStatus)
	}
	return panel.Section("pinged-title", p.T(tPinged), "", ui.Pill(p, wording.AttemptState(*a)), panel.Box("body",
		panel.Line("", ui.Styled("mono", a.URL), panel.Text(how)),
		ui.If(a.Error != "", ui.Say(wording.AttemptError(p, a.Error))),
		ui.If(a.ResponseHeader != "" || len(a.ResponseBody) > 0, ui.Code(a.ResponseHeader+"\n\n"+string(a.ResponseBody))),
	))
}
