package console

import (
	"cmp"
	"context"
	"fmt"

	"backstop/internal/approval"
	"backstop/internal/exception"
	"backstop/internal/order"
)

// Decision is one link in the chain from a proposal to its effect.
type Decision struct {
	approval.Approval
	MakerName, CheckerName string // "" = a command, or not decided yet
}

// waitingAbout returns the proposal about an exception that waits for a second person; nil = none.
func (s *Story) waitingAbout(x *exception.Item) *Decision {
	for _, i := range s.Items {
		if d := i.Proposal; d != nil && d.State == approval.Waiting && d.Object == ExceptionObject && d.ObjectID == ExceptionID(x.ID) {
			return d
		}
	}
	return nil
}

// Decision returns the item's link of a decision; nil = none.
func (i Item) Decision() *Decision { return cmp.Or(i.Proposal, i.Verdict, i.Ran) }

// addDecisions adds what was proposed and decided about the order and its exceptions: the
// proposal, the verdict and the run, each at its time.
func (b *Reader) addDecisions(ctx context.Context, s *Story) error {
	rows, err := events[approval.Approval]{
		kind: ItemProposal, key: "ap.id", keyOf: func(a *approval.Approval) int64 { return a.ID },
		from: b.db.Read.NewSelect().Model((*approval.Approval)(nil)).Where("ap.order_no = ? AND ap.order_no <> '' OR ap.id IN ("+
			"SELECT oh.source_id FROM order_history AS oh WHERE oh.order_id = ? AND oh.source_kind = ?)", s.Order.OrderNo, s.Order.ID,
			order.SourceApproval),
	}.read(ctx, b, s)
	if err != nil || len(rows) == 0 {
		return err
	}
	all := make([]*approval.Approval, len(rows))
	for i := range rows {
		all[i] = &rows[i]
	}
	names, err := approval.Names(ctx, b.db.Read, all...)
	if err != nil {
		return fmt.Errorf("read the names of makers and checkers: %w", err)
	}
	for _, a := range rows {
		a.Reason, a.CheckerReason, a.Evidence, a.Error = MaskText(a.Reason), MaskText(a.CheckerReason), MaskText(a.Evidence), MaskText(a.Error)
		d := &Decision{Approval: a, MakerName: names[a.Maker]}
		if a.Checker != nil {
			d.CheckerName = names[*a.Checker]
		}
		s.Items = append(s.Items, Item{At: a.MadeAt, Phase: PeoplePhase, Proposal: d})
		if a.DecidedAt != nil {
			s.Items = append(s.Items, Item{At: *a.DecidedAt, Phase: PeoplePhase, Verdict: d})
		}
		if a.DoneAt != nil && a.StartedAt != nil {
			s.Items = append(s.Items, Item{At: *a.DoneAt, Phase: PeoplePhase, Ran: d})
		}
	}
	return nil
}

// said returns what the evidence contains about each link; the hash binds them together.
func (d *Decision) said() map[string]any {
	event := map[string]any{
		"approval": d.No(), "action": d.Action, "object": d.Object, "object_id": d.ObjectID, "object_version": d.Version,
		"maker": d.MakerName, "checker": d.CheckerName, "alone": d.SinglePerson, "hash": d.Hash, "state": string(d.State),
	}
	if d.Currency != "" {
		event["amount"], event["currency"] = number(d.Amount), d.Currency
	}
	return event
}

func (d *Decision) with(more map[string]any) map[string]any {
	event := d.said()
	for name, value := range more {
		event[name] = value
	}
	return event
}
