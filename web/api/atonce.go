package api

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/compensation"
	"backstop/internal/console"
	"backstop/internal/decision"
	"backstop/internal/notify"
	"backstop/internal/orderquery"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// atOnce returns the acts that apply to the exception and need no approval.
func (s *handlers) atOnce(subject act.Subject, items []console.Compensation, may func(access.Permission) bool) []approval.Offer {
	about := subject.Value.(*decision.Subject)
	askable := false
	if about.Order != nil {
		to, ok := s.Settings.Current().Suppliers.ByID(about.Order.SupplierID)
		askable = ok && to.Can().Querier != nil
	}
	return decision.AtOnce(about.Exception, askable, func(kind string) int { return len(runnable(items, kind)) }, may)
}

// runnable returns the compensations that can be run now, of one kind or ("") of all.
func runnable(items []console.Compensation, kind string) (all []console.Compensation) {
	for _, i := range items {
		if compensation.Moves.Can(i.State, compensation.Waiting) && i.State != compensation.Running && (kind == "" || i.Kind == kind) {
			all = append(all, i)
		}
	}
	return all
}

// onceView is the response to an act that was done at once. It has the fields of an approval,
// but there is none: nobody has to approve it, and the audit has the act.
type onceView struct {
	approvalView
	ID        *string `json:"id"`
	Hash      *string `json:"hash"`
	ExpiresAt *string `json:"expires_at"`
}

// doAtOnce does what was proposed about an exception and needs no second person.
func (s *handlers) doAtOnce(c *fiber.Ctx, p approval.Proposal) error {
	ctx := c.UserContext()
	id, err := strconv.ParseInt(p.ObjectID, 10, 64)
	if err != nil {
		return err
	}
	x, err := s.Console.Exception(ctx, id)
	if err != nil {
		return err
	}
	subject, err := decision.LoadException(ctx, s.DB.Read, p.ObjectID)
	if err != nil {
		return err
	}
	items, err := s.compensationsOf(c, x)
	if err != nil {
		return err
	}
	offers := s.atOnce(subject, items, func(access.Permission) bool { return true })
	switch {
	case !x.State.Open():
		return approval.ErrEnded
	case !slices.ContainsFunc(offers, func(o approval.Offer) bool { return o.Action == p.Action }):
		return web.InvalidField("action", "this action does not apply in the current state")
	case p.Version != 0 && p.Version != subject.Version:
		return act.ErrChanged
	}
	var params map[string]json.RawMessage
	if len(p.Params) > 0 && json.Unmarshal(p.Params, &params) != nil {
		return web.InvalidField("params", "not a JSON object")
	}
	for _, name := range slices.Sorted(maps.Keys(params)) {
		return web.InvalidField("params."+name, "there is no such field")
	}
	result, err := s.runAtOnce(c, p, x, items)
	if err != nil {
		return err
	}
	now := notify.Stamp(s.DB.Now())
	v := onceView{approvalView: approvalView{
		Action: p.Action, Object: p.Object, ObjectID: p.ObjectID, Version: subject.Version, Currency: orNull(x.Currency),
		Params: json.RawMessage("{}"),
		Reason: p.Reason, Maker: strings.TrimPrefix(p.By.Name, "operator:"), State: string(approval.Done), MadeAt: now, DecidedAt: &now,
		DoneAt: &now,
	}}
	if x.Currency != "" {
		v.Amount = &x.Amount
	}
	if v.Result, err = json.Marshal(result); err != nil {
		return err
	}
	return c.JSON(proposedView{v})
}

// runAtOnce runs the acts behind one of decision.OneByOne, which check the permission and the
// reason, and returns what they did.
func (s *handlers) runAtOnce(c *fiber.Ctx, p approval.Proposal, x *console.Exception, items []console.Compensation) (map[string]any,
	error,
) {
	ctx := c.UserContext()
	run := func(kind string, ref act.Ref) (act.Outcome, error) {
		return s.Acts.Run(ctx, act.Call{Kind: kind, By: p.By, Ref: ref, Reason: p.Reason})
	}
	var rows []int64
	kind := compensation.RunAct
	switch p.Action {
	case decision.Query:
		out, err := run(orderquery.QueryAct, act.Ref{ID: x.OrderNo})
		if err != nil {
			return nil, err
		}
		answer, err := out.After(ctx)
		if err != nil {
			return nil, err
		}
		a := answer.(orderquery.Answer)
		return map[string]any{"answer": a.State, "call": a.CallText()}, nil
	case decision.Resend:
		kind = notify.ResendAct
		deliveries, err := notify.ExhaustedOf(ctx, s.DB.Read, []int64{x.OrderID})
		if err != nil {
			return nil, err
		}
		for id, subject := range deliveries {
			if subject == x.Subject {
				rows = append(rows, id)
			}
		}
	case decision.Rerun:
		for _, i := range runnable(items, compensation.Rerun) {
			rows = append(rows, i.ID)
		}
	case decision.RetryNow:
		for _, i := range runnable(items, "") {
			if i.Kind != compensation.Rerun {
				rows = append(rows, i.ID)
			}
		}
	}
	if len(rows) == 0 {
		return nil, approval.ErrEnded // it already goes on by itself
	}
	slices.Sort(rows)
	ids := make([]string, len(rows))
	for i, row := range rows {
		if _, err := run(kind, act.Ref{Row: row}); err != nil {
			return nil, err
		}
		ids[i] = strconv.FormatInt(row, 10)
	}
	return map[string]any{"run": ids}, nil
}
