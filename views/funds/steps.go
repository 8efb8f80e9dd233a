package funds

import (
	"slices"
	"strconv"
	"time"

	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/fund/booking"
	"backstop/internal/ledger"
	"backstop/internal/ledger/fact"
	"backstop/views/link"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"

	"github.com/a-h/templ"
)

// fundStep is one step of money on its way: when it was made, by whom, with which entries and by
// which call or callback.
type fundStep struct {
	name     text.Text
	icon     string
	state    ui.State
	at       int64  // Unix µs; 0 = not yet
	next     int64  // when it is tried again; 0 = it is not
	who      string // actor; "" = the program
	note     string // from outside
	refs     []string
	call     *console.Call
	callback *console.Callback
	approval *console.Approval
	link     string // page of what the state is of
}

// Looks of steps that need no look of their own.
var (
	done         = ui.State{Kind: "ok", Icon: "check", Label: text.Text{ZH: "已完成", EN: "Done"}}
	pending      = ui.State{Kind: "idle", Icon: "clock", Label: text.Text{ZH: "未开始", EN: "Not yet"}}
	ifItFails    = ui.State{Kind: "idle", Icon: "clock", Label: text.Text{ZH: "失败时执行", EN: "Only if it fails"}}
	withinLimits = ui.State{Kind: "ok", Icon: "check", Label: text.Text{ZH: "限额内，无需复核", EN: "Within the limits"}}
	notNeeded    = ui.State{Kind: "idle", Icon: "ban", Label: text.Text{ZH: "不需要", EN: "Not needed"}}
)

// fundState is the field of their state, which has a word for all that have not ended.
func fundState(states map[string]ui.State) ui.Field {
	f := ui.States(states)
	look := f.Value
	f.Value = func(state string) text.Text {
		if state == console.NotEnded {
			return tRefundsOpen
		}
		return look(state)
	}
	return f
}

// changeColumns are those of the changes of its state; messages are the callbacks that are kept of them, by id.
func changeColumns(states map[string]ui.State, messages map[int64]*console.Callback) []ui.Column[booking.Change] {
	return []ui.Column[booking.Change]{
		ui.TimeCol("at", text.Time, func(h booking.Change) *int64 { return &h.CreatedAt }),
		ui.StateCol("state", text.State, func(h booking.Change) ui.State { return ui.StateOf(states, h.To) }),
		ui.WordCol("actor", text.Actor, func(p *ui.Page, h booking.Change) string { return wording.Actor(p, h.Actor) }),
		ui.TextCol("detail", text.Detail, func(h booking.Change) string { return h.Detail }).As("small wrap").
			With(func(p *ui.Page, h booking.Change) templ.Component { return changeDetail(p, h, messages[h.SourceID]) }),
	}
}

// fundChanges are the changes of its state.
func fundChanges(p *ui.Page, history []booking.Change, states map[string]ui.State, messages map[int64]*console.Callback) templ.Component {
	return panel.Of(p, "history-title", tHistory, ui.PlainRows(p, ui.Rowed(p, changeColumns(states, messages), history), tHistory))
}

func changeDetail(p *ui.Page, h booking.Change, message *console.Callback) templ.Component {
	said := panel.Text(wording.SupplierWord(p, h.Detail))
	if message == nil {
		return said
	}
	return panel.Spaced(panel.Anchor(link.Callback(message.ID), p.T(text.Callback)), said)
}

// callFacts are what a call was answered, how long it took, and which node made it.
func callFacts(p *ui.Page, c console.Call) []templ.Component {
	all := []templ.Component{ui.Styled("tag", p.T(wording.CallResult(&c)))}
	if c.HTTPStatus != 0 {
		all = append(all, ui.Styled("mono small", "HTTP "+strconv.Itoa(c.HTTPStatus)))
	}
	if c.TookUS != nil {
		all = append(all, ui.Styled("mono small", p.Took(time.Duration(*c.TookUS)*time.Microsecond)))
	}
	return append(all, ui.Styled("muted small", p.T(text.Node, c.Node)))
}

// entriesPanel lists entries in the ledger, both sides of each, and their sum.
func entriesPanel(p *ui.Page, entries []ledger.Line) templ.Component {
	return ui.TablePanel(p, "entries", entryTexts, entryColumns, entrySides(entries))
}

var entryTexts = ui.ListTexts{Title: text.Ledger, Icon: "landmark", None: tEntriesNone, NoneHow: tEntriesNoneHow}

// entrySide is one side of an entry in the ledger, or the sum of all in one currency.
type entrySide struct {
	at  *int64 // nil = it is below the other side
	ref string
	panel.AccountSum
}

// entrySides are both sides of each entry, and then the sums of each currency.
func entrySides(entries []ledger.Line) (all []entrySide) {
	var sums []entrySide
	for _, e := range entries {
		all = append(
			all, entrySide{&e.CreatedAt, e.Ref, panel.AccountSum{Account: e.Debit, Debit: e.Amount, Currency: e.Currency}},
			entrySide{AccountSum: panel.AccountSum{Account: e.Credit, Credit: e.Amount, Currency: e.Currency}},
		)
		i := slices.IndexFunc(sums, func(s entrySide) bool { return s.Currency == e.Currency })
		if i < 0 {
			i, sums = len(sums), append(sums, entrySide{AccountSum: panel.AccountSum{Currency: e.Currency}})
		}
		sums[i].Debit += e.Amount
		sums[i].Credit += e.Amount
	}
	return append(all, sums...)
}

// entryColumns are those of entries in the ledger.
var entryColumns = slices.Concat(
	[]ui.Column[entrySide]{ui.Col("at", text.Time, ui.TimeKind, func(_ *ui.Page, e entrySide) ui.Cell {
		if e.at == nil {
			return ui.Cell{Body: templ.NopComponent}
		}
		return ui.Cell{At: e.at}
	})},
	panel.SumColumns(text.Total, func(e entrySide) panel.AccountSum { return e.AccountSum }),
	[]ui.Column[entrySide]{ui.Col("reference", text.Reference, ui.TextKind, func(_ *ui.Page, e entrySide) ui.Cell {
		if e.ref == "" {
			return ui.Cell{Body: templ.NopComponent}
		}
		return ui.Cell{Text: e.ref}
	}).As("mono small")},
)

// openExceptions lead to the open exceptions about it.
func openExceptions(b console.Behind) (links []ui.Link) {
	for _, x := range b.Exceptions {
		if x.State.Open() {
			links = append(links, ui.Link{Href: string(link.Exception(x.ID)), Label: ui.KindText(x.Kind)})
		}
	}
	return links
}

// nextTry is when its calls go on; nil = they do not.
func nextTry(b console.Behind) *int64 {
	if b.Item == nil {
		return nil
	}
	return b.Item.NextAt
}

// compensationFact is the state of the compensation that makes its calls, if there is one, and leads to it.
func compensationFact(p *ui.Page, item *console.Compensation) (f ui.Fact) {
	if item != nil {
		f.Label = text.Compensation
		f.Body = panel.Linked(link.Compensation(item.ID), nil, ui.Pill(p, ui.StateOf(ui.CompensationStates, item.State)))
	}
	return f
}

// became returns the first change to a status; nil = there was none.
func became[S ~string](history []booking.Change, to S) *booking.Change {
	if i := slices.IndexFunc(history, func(h booking.Change) bool { return h.To == string(to) }); i >= 0 {
		return &history[i]
	}
	return nil
}

// entriesOf returns the references of the entries that book one of the facts.
func entriesOf(b console.Behind, facts ...fact.Name) (refs []string) {
	for _, e := range b.Entries {
		if row, _, ok := fact.Of(e.Ref, false); ok && slices.Contains(facts, row.Fact) {
			refs = append(refs, e.Ref)
		}
	}
	return refs
}

// notifiedStep is the notification of the merchant; wanted = there will be one.
func notifiedStep(b console.Behind, wanted bool) fundStep {
	s := fundStep{name: text.MerchantNotified, icon: "bell-ring", state: pending}
	for _, n := range b.Deliveries {
		if !n.ToSubscriber {
			s.state, s.at, s.link = wording.DeliveryState(n.Status, false), n.CreatedAt, "/notifications/"+n.PublicID
			if n.FinishedAt != nil {
				s.at = *n.FinishedAt
			}
		}
	}
	if s.link == "" && !wanted {
		s.state = notNeeded
	}
	return s
}

// pill is the state of a step, and leads to what it is of.
func (s fundStep) pill(p *ui.Page) templ.Component {
	if s.link == "" {
		return ui.Pill(p, s.state)
	}
	return panel.Linked(templ.SafeURL(s.link), nil, ui.Pill(p, s.state))
}

// details are how a step was made, what is noted about it, and its entries.
func (s fundStep) details(p *ui.Page) (all []templ.Component) {
	if s.at > 0 || s.who != "" || s.next > 0 || s.approval != nil {
		all = append(all, panel.Box("facts-line small", panel.Spaced(s.facts(p)...)))
	}
	if s.note != "" {
		all = append(all, panel.Box("small wrap", panel.Text(wording.SupplierWord(p, s.note))))
	}
	if len(s.refs) > 0 {
		ids := make([]templ.Component, len(s.refs))
		for i, ref := range s.refs {
			ids[i] = ui.ID(p, ref, ref, "#entries")
		}
		all = append(all, panel.Box("small", panel.Spaced(ids...)))
	}
	return all
}

// facts are when a step was made, by whom, by which call or callback, and when it is tried again.
func (s fundStep) facts(p *ui.Page) (all []templ.Component) {
	if s.at > 0 {
		all = append(all, panel.Span("mono", ui.When(p, s.at)))
	}
	if s.approval != nil {
		all = append(all, panel.Anchor(link.Approval(s.approval.ID), wording.MakerAndChecker(p, s.approval)))
	} else if s.who != "" {
		all = append(all, panel.Span("", panel.Text(p.T(text.ByActor, wording.Actor(p, s.who)))))
	}
	if c := s.call; c != nil {
		said := p.T(wording.CallOp(c.Op)) + " · " + p.T(wording.CallResult(c))
		all = append(all, panel.Anchor(templ.URL("#call-"+strconv.FormatInt(c.ID, 36)), said))
	}
	if s.callback != nil {
		all = append(all, panel.Anchor(link.Callback(s.callback.ID), p.T(text.Callback)))
	}
	if s.next > 0 {
		all = append(all, panel.Span("", panel.Text(p.T(tStepNext)+" "), panel.Span("mono", ui.When(p, s.next))))
	}
	return all
}

// tone is the colour of a step's icon.
func (s fundStep) tone() string {
	switch s.state.Kind {
	case "ok", "bad", "warn":
		return "t-" + s.state.Kind
	case "info", "comp":
		return "t-info"
	}
	return "muted"
}

// Texts of steps.
var (
	tStepNext = text.Text{ZH: "下次", EN: "next"}
)
