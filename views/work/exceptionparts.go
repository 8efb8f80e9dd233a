package work

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"backstop/internal/audit"
	"backstop/internal/base/text"
	"backstop/internal/exception"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// ownIdentity stands for an account without a number: the one whose keys we have.
const ownIdentity = "own"

// message is the stored message in words; none = it is not known any more.
func (x ExceptionData) message(p *ui.Page) (all []ui.Fact) {
	var m struct {
		Reference string            `json:"reference"`
		TradeNo   string            `json:"trade_no"`
		Amount    int64             `json:"amount"`
		Currency  string            `json:"currency"`
		Status    string            `json:"status"`
		Identity  map[string]string `json:"identity"`
	}
	if json.Unmarshal([]byte(x.Payload), &m) != nil {
		return nil
	}
	var account []string
	for _, field := range slices.Sorted(maps.Keys(m.Identity)) {
		if m.Identity[field] == ownIdentity {
			account = append(account, p.T(tOurAccount))
			continue
		}
		account = append(account, field+" "+m.Identity[field])
	}
	const class = "mono small wrap"
	return ui.Given([]ui.Fact{
		ui.TextFact(tMsgReference, class, m.Reference),
		ui.TextFact(text.TradeNo, class, m.TradeNo),
		ui.TextFact(text.Amount, class, ui.MoneyText(m.Amount, m.Currency)).If(m.Currency != ""),
		ui.TextFact(text.State, class, p.T(ui.TextFor(paymentStates, m.Status))),
		ui.TextFact(tMsgIdentity, class, strings.Join(account, " · ")),
	})
}

// exceptionMessage is the message behind an exception: what it said, its checks, and the text where that is
// still kept.
func exceptionMessage(p *ui.Page, x ExceptionData) templ.Component {
	said, held := x.message(p), exception.IsHeld(x.Kind)
	if len(said) == 0 && x.Message == nil && !held {
		return templ.NopComponent
	}
	var parts []templ.Component
	if len(said) > 0 {
		parts = append(parts, ui.FactList(p, said...))
	} else if held {
		parts = append(parts, ui.Notice(p, "warn", p.T(goneText(x.Kind))))
	}
	if x.Message != nil {
		parts = append(parts, messageLine(p, &x.Message.Callback), rawMessage(p, x))
	} else if len(said) > 0 && x.CallbackID != 0 && len(x.Kept) == 0 {
		parts = append(parts, panel.Small(p.T(tMsgPast)))
	}
	message := panel.Body(p, "message-title", tSaidMessage, parts...)
	if x.Message == nil || len(x.Message.Steps) == 0 {
		return message
	}
	return templ.Join(message, panel.Checks(p, x.Message.Steps))
}

// rawMessage is the text of the message, folded away.
func rawMessage(p *ui.Page, x ExceptionData) templ.Component {
	title := p.T(text.Raw, x.Message.Size)
	if x.Unmask.Until == 0 {
		title += " · " + p.T(text.MaskedNote)
	}
	budget := ui.ByteBudget{Left: ui.RawBudget}
	shown, whole := budget.Text(panel.RawRequest(&x.Message.Callback), ui.RawBudget)
	return panel.Fold(
		p, "message-raw", title, ui.Code(shown),
		ui.If(!whole, panel.Small(p.T(text.TextCut, ui.Count(int64(len(shown)))))),
	)
}

// keptMessages are the first messages, where they are kept longer than others.
func keptMessages(p *ui.Page, x ExceptionData) templ.Component {
	if len(x.Kept) == 0 {
		return templ.NopComponent
	}
	how := p.T(tKeptHow)
	if x.Unmask.Until == 0 {
		how += " " + p.T(text.MaskedNote)
	}
	parts := []templ.Component{panel.Small(how)}
	for _, c := range x.Kept {
		cut := panel.Small(p.T(tKeptCut, ui.Count(exception.KeptBytes), ui.Count(c.Size)))
		parts = append(parts, keptLine(p, c), ui.Code(panel.RawRequest(&c)), ui.If(c.Size > exception.KeptBytes, cut))
	}
	return panel.Body(p, "kept-title", tKept, parts...)
}

// goneText says what follows where the message of an exception is not known any more.
func goneText(kind string) text.Text {
	if kind == exception.LatePayment || kind == exception.AmountMismatch {
		return tMsgGoneRow
	}
	return tMsgGone
}

// exceptionHistory is what people did about it and said of it.
func exceptionHistory(p *ui.Page, acts []audit.Row) templ.Component {
	if len(acts) == 0 {
		return panel.Of(p, "people-title", tPeopleSaid, ui.Empty(p, "users", p.T(tNoActivity), p.T(tNoActivityHow)))
	}
	all := make([]panel.Saying, len(acts))
	for i, a := range acts {
		all[i] = panel.Saying{At: a.At, Who: wording.Actor(p, a.Actor), More: []templ.Component{
			panel.Text(p.T(wording.Act(a.Action))), ui.Styled("muted", wording.ActParams(p, a)), panel.Paragraph("wrap", wording.ActReason(a)),
		}}
	}
	return panel.Of(p, "people-title", tPeopleSaid, panel.Sayings(p, all))
}

// exceptionForms is what the reader may do about the exception now.
func exceptionForms(p *ui.Page, x ExceptionData) []templ.Component {
	path, undecided := string(link.Exception(x.ID)), x.open() && x.State != "proposed"
	return []templ.Component{
		ui.If(p.Decisions == nil && undecided && exception.CarriesMoney(x.Kind), ui.Notice(p, "info", p.T(tOnlyRoles, p.RoleNames(x.MayDecide)))),
		ui.If(
			x.CanRun && x.open() && x.Kind == exception.CompensationDead,
			panel.ReasonPanel(p, "run", "/compensations/"+x.Subject+"/run", x.Key, tRunDead, tCompRunHow),
		),
		ui.If(x.open() && x.Kind == exception.NotifyExhausted && x.OrderID != 0, sendAgain(p, x.OrderNo)),
		panel.Body(p, "hand-title", text.Assignee, assignee(p, x.Assignee), ui.If(x.CanAssign && undecided, assignForm(p, x))),
		ui.If(x.CanReopen, panel.ReasonPanel(p, "reopen", path+"/reopen", x.Key, tReopen, tReopenHow)),
		ui.If(x.CanComment, panel.Note(p, path+"/comment", x.Key, x.Colleagues)),
	}
}

// people are those who may take it in hand; the reader where nobody has.
func (x ExceptionData) people(p *ui.Page) []panel.Choice {
	all := []panel.Choice{{Label: p.T(text.Unassigned)}}
	for _, name := range x.People {
		all = append(all, panel.Choice{Value: name, Label: name, Chosen: name == cmp.Or(x.Assignee, p.User)})
	}
	return all
}
