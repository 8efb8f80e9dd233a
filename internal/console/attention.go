package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"backstop/internal/act"
	"backstop/internal/alert"
	"backstop/internal/breaker"
	"backstop/internal/report"

	"github.com/uptrace/bun"
)

// Attention is what needs an operator, and what needed one a while ago.
type Attention struct {
	// Lines are running incidents, what is open in the lists of exceptions and proposals, and
	// open breakers and silent suppliers without an incident, in the order of byMoney.
	Lines []Todo
	More  bool             // there are more incidents than were read
	Ended []alert.Incident // the latest first
}

const (
	// incidentsRead bounds the running incidents of one page, incidentsEnded those that are over.
	incidentsRead, incidentsEnded = 500, 20
	// endedFor is how long an incident that is over is shown.
	endedFor = 24 * time.Hour
)

// Attention reads what needs an operator.
func (b *Reader) Attention(ctx context.Context) (a Attention, err error) {
	for _, read := range []func(context.Context) ([]Todo, error){b.todoApprovals, b.todoExceptions} {
		some, err := read(ctx)
		if err != nil {
			return a, err
		}
		a.Lines = append(a.Lines, some...)
	}
	running, err := alert.Running(ctx, b.db.Read, incidentsRead+1)
	if err != nil {
		return a, err
	}
	if a.More = len(running) > incidentsRead; a.More {
		running = running[:incidentsRead]
	}
	risk, err := report.AtRisk(ctx, b.db)
	if err != nil {
		return a, err
	}
	h, err := b.heldUp(ctx, running)
	if err != nil {
		return a, err
	}
	for i := range running {
		a.Lines = append(a.Lines, h.line(&running[i], risk))
	}
	without, err := b.withoutIncident(ctx, a.Lines, risk)
	if err != nil {
		return a, err
	}
	a.Lines = append(a.Lines, without...)
	byMoney(a.Lines)
	a.Ended, err = alert.Ended(ctx, b.db.Read, b.db.Now()-endedFor.Microseconds(), incidentsEnded)
	return a, err
}

// heldUp is what incidents about breakers hold up, read for all of them together.
type heldUp struct {
	recipients map[string]Named // by code
	suppliers  map[string]int64
	awaited    map[int64]report.Standing
}

func (b *Reader) heldUp(ctx context.Context, incidents []alert.Incident) (*heldUp, error) {
	h := &heldUp{recipients: map[string]Named{}, suppliers: map[string]int64{}}
	codes := map[string][]string{}
	for _, i := range incidents {
		codes[i.Rule] = append(codes[i.Rule], i.Subject)
	}
	if of := codes[alert.BreakerOpened]; len(of) > 0 {
		var rows []struct {
			Named    `bun:",extend"`
			Merchant bool `bun:"merchant"`
		}
		if err := b.db.Read.NewRaw("SELECT id, code, name, TRUE AS merchant FROM merchants WHERE code IN (?)"+
			" UNION ALL SELECT id, code, name, FALSE FROM subscriptions WHERE code IN (?)", bun.List(of), bun.List(of)).Scan(ctx,
			&rows); err != nil {
			return nil, fmt.Errorf("read the merchants of incidents: %w", err)
		}
		for _, r := range rows {
			if _, both := h.recipients[r.Code]; r.Merchant || !both {
				h.recipients[r.Code] = r.Named
			}
		}
	}
	of := codes[alert.SupplierUnreachable]
	if len(of) == 0 {
		return h, nil
	}
	var rows []Named
	if err := b.db.Read.NewRaw("SELECT id, code FROM suppliers WHERE code IN (?)", bun.List(of)).Scan(ctx, &rows); err != nil {
		return nil, fmt.Errorf("read the suppliers of incidents: %w", err)
	}
	for _, r := range rows {
		h.suppliers[r.Code] = r.ID
	}
	var err error
	h.awaited, err = report.Awaiting(ctx, b.db)
	return h, err
}

// line returns the line of a running incident, with the money that it holds up now if that is
// counted, else with that of its last alert.
func (h *heldUp) line(i *alert.Incident, risk *report.Risk) Todo {
	t := Todo{Matter: MatterIncident, Kind: i.Rule, Code: i.Subject, Count: i.Firings, Oldest: i.OpenedAt, Incident: i}
	switch i.Rule {
	case alert.BreakerOpened:
		of := h.recipients[i.Subject]
		t.ID, t.Name = of.ID, of.Name
		t.Sums, t.Waits = slices.Clone(risk.Waiting[t.ID].Sums), risk.Waiting[t.ID].Orders()
		return t
	case alert.SupplierUnreachable:
		if t.ID = h.suppliers[i.Subject]; t.ID == 0 {
			return t
		}
		waiting := h.awaited[t.ID]
		i.Sums, t.More = nil, waiting.Cut
		for _, s := range waiting.Sums {
			i.Sums.Add(s.Minor, s.Currency)
		}
	}
	t.addSums(i)
	return t
}

func (t *Todo) addSums(i *alert.Incident) {
	for _, s := range i.Sums {
		t.Sums = append(t.Sums, report.Sum{Currency: s.Currency, Minor: s.Minor})
	}
}

// withoutIncident returns the lines of open breakers and silent suppliers that have no incident,
// such as when their alert is off.
func (b *Reader) withoutIncident(ctx context.Context, incidents []Todo, risk *report.Risk) ([]Todo, error) {
	has := func(rule string, id int64, code string) bool {
		return slices.ContainsFunc(incidents, func(i Todo) bool {
			return i.Matter == MatterIncident && i.Kind == rule && (id != 0 && i.ID == id || code != "" && i.Code == code)
		})
	}
	all, err := b.openBreakers(ctx, risk, func(id int64) bool { return has(alert.BreakerOpened, id, "") })
	if err != nil {
		return nil, err
	}
	unreached, err := b.unreached(ctx)
	if err != nil {
		return nil, err
	}
	silent, err := b.silentSuppliers(ctx)
	unreached = slices.DeleteFunc(unreached, func(t Todo) bool { return has(alert.SupplierUnreachable, t.ID, "") })
	silent = slices.DeleteFunc(silent, func(t Todo) bool { return has(alert.SupplierSilent, 0, t.Code) })
	return slices.Concat(all, unreached, silent), err
}

// openBreakers returns the open breakers of recipients, without some, those with the most money
// first.
func (b *Reader) openBreakers(ctx context.Context, risk *report.Risk, without func(id int64) bool) (all []Todo, err error) {
	var open []*breaker.Row
	for _, r := range b.breakers.All() {
		if r.Tripped() && !without(r.OwnerID) {
			open = append(open, r)
		}
	}
	since, err := breaker.OpenSince(ctx, b.db, open)
	if err != nil {
		return nil, err
	}
	for _, r := range open {
		waits := risk.Waiting[r.OwnerID]
		all = append(all, Todo{
			Matter: MatterBreaker, ID: r.OwnerID, Count: waits.Orders(),
			Sums: slices.Clone(waits.Sums), Oldest: since[r.Owner()],
		})
	}
	slices.SortFunc(all, func(x, y Todo) int { return cmp.Compare(x.ID, y.ID) })
	byMoney(all)
	all = all[:min(len(all), incidentsRead)]
	ids := make([]int64, len(all))
	for i, t := range all {
		ids[i] = t.ID
	}
	named, err := b.named(ctx, ids)
	for i := range all {
		all[i].Code, all[i].Name = named[all[i].ID].Code, named[all[i].ID].Name
	}
	return all, err
}

// IncidentDetail is one incident with what happened to it.
type IncidentDetail struct {
	*alert.Incident
	Line     Todo
	Rule     alert.Rule
	Timeline []alert.IncidentEvent
	Cut      bool // there is more than the timeline shows
}

// Incident reads one incident. Errors: act.ErrNotFound.
func (b *Reader) Incident(ctx context.Context, id int64) (*IncidentDetail, error) {
	i, err := alert.FindIncident(ctx, b.db.Read, id)
	if err != nil {
		return nil, err
	}
	if i == nil {
		return nil, act.ErrNotFound
	}
	x := &IncidentDetail{Incident: i}
	if x.Timeline, x.Cut, err = alert.Timeline(ctx, b.db.Read, id); err != nil {
		return nil, err
	}
	rules, err := alert.Rules(ctx, b.db.Read)
	if err != nil {
		return nil, err
	}
	for _, r := range rules {
		if r.Name == i.Rule {
			x.Rule = r
		}
	}
	if !i.Runs() {
		x.Line = Todo{Matter: MatterIncident, Kind: i.Rule, Code: i.Subject, Incident: i}
		x.Line.addSums(i)
		return x, nil
	}
	risk, err := report.AtRisk(ctx, b.db)
	if err != nil {
		return nil, err
	}
	h, err := b.heldUp(ctx, []alert.Incident{*i})
	if err != nil {
		return nil, err
	}
	x.Line = h.line(i, risk)
	return x, nil
}
