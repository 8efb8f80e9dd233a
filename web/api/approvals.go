package api

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/notify"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// approvalsPath is the prefix of the paths of approvals.
const approvalsPath = "/api/v1/admin/approvals"

// approvalView is an approval in the admin API. Missing values are null.
type approvalView struct {
	ID        string          `json:"id"`
	Action    string          `json:"action"`
	Object    string          `json:"object"`
	ObjectID  string          `json:"object_id"`
	Version   int64           `json:"version"`
	Amount    *int64          `json:"amount"`
	Currency  *string         `json:"currency"`
	Params    json.RawMessage `json:"params"`
	Reason    string          `json:"reason"`
	Evidence  *string         `json:"evidence"`
	Hash      string          `json:"hash"`
	Maker     string          `json:"maker"`
	Checker   *string         `json:"checker"`
	Alone     bool            `json:"alone"`
	State     string          `json:"state"`
	MadeAt    string          `json:"made_at"`
	ExpiresAt string          `json:"expires_at"`
	DecidedAt *string         `json:"decided_at"`
	DoneAt    *string         `json:"done_at"`
	Error     *string         `json:"error"`
	Result    json.RawMessage `json:"result"`
}

// viewApprovals are approvals with the names of their people.
func (s *handlers) viewApprovals(ctx context.Context, all ...*approval.Approval) ([]approvalView, error) {
	names, err := approval.Names(ctx, s.DB.Read, all...)
	if err != nil {
		return nil, err
	}
	views := make([]approvalView, len(all))
	for i, a := range all {
		v := approvalView{
			ID: a.No(), Action: a.Action, Object: a.Object, ObjectID: a.ObjectID, Version: a.Version, Currency: orNull(a.Currency),
			Params: a.Params, Reason: a.Reason, Evidence: orNull(a.Evidence), Hash: a.Hash, Maker: names[a.Maker], Alone: a.SinglePerson,
			State: string(a.State), MadeAt: notify.Stamp(a.MadeAt), ExpiresAt: notify.Stamp(a.ExpiresAt),
			DecidedAt: notify.StampOr(a.DecidedAt),
			DoneAt:    notify.StampOr(a.DoneAt), Error: orNull(a.Error), Result: json.RawMessage("null"),
		}
		if a.Currency != "" {
			v.Amount = &a.Amount
		}
		if a.Checker != nil {
			v.Checker = orNull(names[*a.Checker])
		}
		if a.Result != "" {
			v.Result = json.RawMessage(a.Result)
		}
		views[i] = v
	}
	return views, nil
}

// answerApproval responds with an approval.
func (s *handlers) answerApproval(c *fiber.Ctx, a *approval.Approval) error {
	views, err := s.viewApprovals(c.UserContext(), a)
	if err != nil {
		return err
	}
	return c.JSON(views[0])
}

type approvalsQuery struct {
	State string `query:"state" doc:"The approval's state."`
	Maker string `query:"maker" doc:"Who proposed it."`
	Kind  string `query:"kind" doc:"The action that is proposed."`
	paging
}

func (approvalsQuery) choices() map[string][]string {
	return map[string][]string{"state": approval.Moves.Words()}
}

func (s *handlers) listApprovals(c *fiber.Ctx) error {
	r := requestOf[approvalsQuery](c)
	if all := s.Approvals.Names(); r.Kind != "" && !slices.Contains(all, r.Kind) {
		return web.InvalidField("kind", "use one of "+strings.Join(all, ", "))
	}
	q := approval.Query{
		State: approval.State(r.State), Action: r.Kind, Below: r.Cursor, Limit: int(r.Limit) + 1, Merchants: s.Actor(c).Merchants,
	}
	if r.Maker != "" {
		m, err := approval.MakerOf(c.UserContext(), s.DB.Read, r.Maker)
		if err != nil || m == nil {
			return orInvalid(err, "maker")
		}
		q.Maker = m
	}
	all, err := approval.List(c.UserContext(), s.DB.Read, q)
	if err != nil {
		return err
	}
	var next int64
	if len(all) == q.Limit {
		all = all[:q.Limit-1]
		next = all[len(all)-1].ID
	}
	views, err := s.viewApprovals(c.UserContext(), all...)
	if err != nil {
		return err
	}
	return c.JSON(page[approvalView]{Items: views, Next: orNull(cursorText(next))})
}

func (s *handlers) getApproval(c *fiber.Ctx) error {
	id, err := approval.ParseNo(c.Params("id"))
	if err != nil {
		return err
	}
	a, err := s.Approvals.Find(c.UserContext(), id, s.Actor(c))
	if err != nil {
		return err
	}
	return s.answerApproval(c, a)
}

// verdictRequest is a verdict that takes effect: its hash is that of what was seen.
type verdictRequest struct {
	reasonRequest
	Hash       string `json:"hash" max:"64"`
	Unverified bool   `json:"unverified"`
}

// verdictOf returns the verdict of a request; one that ends a proposal has no hash.
func verdictOf(c *fiber.Ctx) (v approval.Verdict) {
	switch r := c.Locals(localRequest{}).(*request).to.Interface().(type) {
	case *reasonRequest:
		v.Reason = r.Reason
	case *verdictRequest:
		v.Reason, v.Hash, v.Unverified = r.Reason, r.Hash, r.Unverified
	}
	return v
}

// onApproval takes a verdict, and responds with the resulting approval.
func (s *handlers) onApproval(decide func(context.Context, approval.Verdict) (*approval.Approval, error)) fiber.Handler {
	return func(c *fiber.Ctx) error {
		id, err := approval.ParseNo(c.Params("id"))
		if err != nil {
			return err
		}
		v := verdictOf(c)
		v.ID, v.By = id, s.Actor(c)
		a, err := decide(c.UserContext(), v)
		switch {
		case errors.Is(err, act.ErrChanged):
			object, about, missing := s.decidedOn(c, v)
			if missing != nil {
				return missing
			}
			return s.changed(c, err, object, about)
		case errors.Is(err, approval.ErrEnded), errors.Is(err, approval.ErrExpired):
			return s.late(c, err, v)
		case err != nil:
			return err
		}
		return s.answerApproval(c, a)
	}
}

// lateView is the answer to a verdict that came too late: what has become of the approval.
type lateView struct {
	web.ErrorBody

	Approval approvalView `json:"approval"`
}

func (s *handlers) late(c *fiber.Ctx, why error, v approval.Verdict) error {
	a, err := s.Approvals.Find(c.UserContext(), v.ID, v.By)
	if err != nil {
		return err
	}
	views, err := s.viewApprovals(c.UserContext(), a)
	if err != nil {
		return err
	}
	body := lateView{Approval: views[0]}
	body.Error.Code, body.Error.Message = "over", why.Error()
	if errors.Is(why, approval.ErrExpired) {
		body.Error.Code = "expired"
	}
	return c.Status(fiber.StatusConflict).JSON(body)
}

// decidedOn returns what an approval is about in its present state, and its kind; zero = it no longer
// exists.
func (s *handlers) decidedOn(c *fiber.Ctx, v approval.Verdict) (string, act.Subject, error) {
	a, about, err := s.Approvals.Subject(c.UserContext(), v.ID, v.By)
	if errors.Is(err, act.ErrNotFound) {
		return "", act.Subject{}, nil
	}
	if err != nil {
		return "", about, err
	}
	return a.Object, about, nil
}

// approvalRoutes returns the routes of approvals. The Desk checks who may decide what, because
// that depends on the approval.
func (s *handlers) approvalRoutes() []web.Route {
	decide := func(verb string, request any, h fiber.Handler) web.Route {
		return web.Route{
			Method: fiber.MethodPost, Path: approvalsPath + "/:id/" + verb, Audience: web.ForMonitor,
			Permission: access.ViewExceptions, Person: true, Handler: h, Request: request, Answer: approvalView{},
		}
	}
	return []web.Route{
		reads(approvalsPath, access.ViewExceptions, s.listApprovals, approvalsQuery{}, page[approvalView]{}),
		reads(approvalsPath+"/:id", access.ViewExceptions, s.getApproval, nil, approvalView{}),
		decide("approve", verdictRequest{}, s.onApproval(s.approve)),
		decide("reject", reasonRequest{}, s.onApproval(s.reject)),
		decide("withdraw", reasonRequest{}, s.onApproval(s.withdraw)),
		decide("again", verdictRequest{}, s.onApproval(s.again)),
	}
}

// The Desk exists once the server serves, but not yet when its routes are listed. approve also
// answers whoever might have approved what another one has: it is approved, and nothing runs twice.
func (s *handlers) approve(ctx context.Context, v approval.Verdict) (*approval.Approval, error) {
	a, err := s.Approvals.Approve(ctx, v)
	if !errors.Is(err, approval.ErrEnded) {
		return a, err
	}
	if a, err = s.Approvals.Find(ctx, v.ID, v.By); err == nil && !(a.IsApproved() && a.Hash == v.Hash) {
		err = approval.ErrEnded
	}
	return a, err
}

func (s *handlers) reject(ctx context.Context, v approval.Verdict) (*approval.Approval, error) {
	return s.Approvals.Reject(ctx, v)
}

func (s *handlers) again(ctx context.Context, v approval.Verdict) (*approval.Approval, error) {
	return s.Approvals.Retry(ctx, v)
}

func (s *handlers) withdraw(ctx context.Context, v approval.Verdict) (*approval.Approval, error) {
	return s.Approvals.Withdraw(ctx, v)
}
