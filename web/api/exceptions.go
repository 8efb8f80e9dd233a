package api

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/audit"
	"backstop/internal/console"
	"backstop/internal/decision"
	"backstop/internal/exception"
	"backstop/internal/list"
	"backstop/internal/notify"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// exceptionsPath is the prefix of the paths of exceptions.
const exceptionsPath = "/api/v1/admin/exceptions"

func (s *handlers) exceptionRoutes() []web.Route {
	shown := func(c *fiber.Ctx, _ web.Acted) error { return s.getException(c) }
	return []web.Route{
		reads(exceptionsPath, access.ViewExceptions, s.listExceptions, exceptionsQuery{}, page[exceptionView]{}),
		reads(exceptionsPath+"/:id", access.ViewExceptions, s.getException, nil, oneExceptionView{}),
		s.onAct(web.ActRoute{
			Path: exceptionsPath + "/:id/assign", Kind: exception.AssignAct, Ref: rowRef, Then: shown, Answer: oneExceptionView{},
		}),
		s.onAct(web.ActRoute{
			Path: exceptionsPath + "/:id/comment", Kind: exception.NoteAct, Ref: rowRef, Request: commentRequest{}, Read: readComment,
			Run: s.comment, Then: shown, Answer: oneExceptionView{},
		}),
	}
}

// exceptionView is an exception in the admin API. Missing values are null.
type exceptionView struct {
	ID       string          `json:"id"`
	Kind     string          `json:"kind"`
	OrderNo  *string         `json:"order_no"`
	State    string          `json:"state"`
	Amount   *int64          `json:"amount"`
	Currency *string         `json:"currency"`
	OpenedAt string          `json:"opened_at"`
	Detail   json.RawMessage `json:"detail"`
}

func viewException(x exception.Item) exceptionView {
	v := exceptionView{
		ID: strconv.FormatInt(x.ID, 10), Kind: x.Kind, OrderNo: orNull(x.OrderNo), State: string(x.State),
		Currency: orNull(x.Currency), OpenedAt: notify.Stamp(x.OpenedAt), Detail: inWords(x.Detail),
	}
	if x.Currency != "" {
		v.Amount = &x.Amount
	}
	return v
}

type exceptionsQuery struct {
	OrderNo  string `query:"order_no" filter:"no" doc:"The order's number, or the reference of a callback without an order."`
	Kind     string `query:"kind" doc:"The exception's kind."`
	State    string `query:"state" doc:"The exception's state."`
	Assignee string `query:"assignee" doc:"The operator to whom it is assigned."`
	codes
	span
	paging
}

func (exceptionsQuery) choices() map[string][]string {
	return map[string][]string{"kind": exception.Kinds, "state": exception.Moves.Words()}
}

func (s *handlers) listExceptions(c *fiber.Ctx) error {
	return listed(s, c, console.ExceptionList, s.Console.Exceptions, viewException)
}

// inWords removes the code of a reason from an exception's detail, which also has the reason in
// English.
func inWords(detail json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(detail, &fields) != nil || fields["said"] == nil {
		return detail
	}
	delete(fields, "said")
	plain, err := json.Marshal(fields)
	if err != nil {
		return detail
	}
	return plain
}

// commentView is a comment on an exception.
type commentView struct {
	At   string `json:"at"`
	By   string `json:"by"`
	Text string `json:"text"`
}

// oneExceptionView adds what is returned only for a single exception. Missing values are null.
type oneExceptionView struct {
	exceptionView
	Supplier      *string            `json:"supplier"`
	Merchant      *string            `json:"merchant"`
	Assignee      *string            `json:"assignee"`
	Version       int64              `json:"version"`
	Outcome       *string            `json:"outcome"`
	Reference     *string            `json:"reference"`
	ResolvedAt    *string            `json:"resolved_at"`
	Actions       []approval.Offer   `json:"actions"`
	Comments      []commentView      `json:"comments"`
	Approvals     []approvalView     `json:"approvals"`
	Compensations []compensationView `json:"compensations"`
}

// shownRows bounds the proposals and compensations returned with one exception.
const shownRows = 50

// exceptionOf returns an exception with what the caller may see and decide. Errors:
// act.ErrNotFound.
func (s *handlers) exceptionOf(c *fiber.Ctx, id int64) (*oneExceptionView, error) {
	ctx, by := c.UserContext(), s.Actor(c)
	x, err := s.Console.Exception(ctx, id)
	if err != nil {
		return nil, err
	}
	subject, err := decision.LoadException(ctx, s.DB.Read, strconv.FormatInt(id, 10))
	if err != nil {
		return nil, err
	}
	x.Mask()
	v := &oneExceptionView{
		exceptionView: viewException(x.Item), Supplier: orNull(x.Supplier), Merchant: orNull(x.Merchant), Assignee: orNull(x.Assignee),
		Version: subject.Version,
		Outcome: orNull(string(x.Outcome)), Reference: orNull(x.Reference), ResolvedAt: notify.StampOr(x.ResolvedAt),
		Actions: s.Approvals.Offers(by, decision.OfException, subject), Comments: []commentView{}, Compensations: []compensationView{},
	}
	for _, a := range x.Acts {
		if a.Action == exception.NoteAct {
			v.Comments = append(v.Comments, commentView{At: notify.Stamp(a.At), By: a.Actor, Text: commentIn(a)})
		}
	}
	all, err := approval.List(ctx, s.DB.Read, approval.Query{Object: decision.OfException, ObjectID: v.ID, Limit: shownRows})
	if err != nil {
		return nil, err
	}
	if v.Approvals, err = s.viewApprovals(ctx, all...); err != nil {
		return nil, err
	}
	items, err := s.compensationsOf(c, x)
	if err != nil {
		return nil, err
	}
	for _, i := range items {
		v.Compensations = append(v.Compensations, viewCompensation(i))
	}
	if by.Token == nil {
		v.Actions = append(v.Actions, s.atOnce(subject, items, func(p access.Permission) bool { return s.Policy.Allows(by.Roles, p) })...)
	}
	return v, nil
}

// commentIn returns the text of a comment from the audit.
func commentIn(a audit.Row) string {
	var kept struct {
		Reason string `json:"reason"`
	}
	_ = json.Unmarshal([]byte(a.Params), &kept)
	return console.MaskText(kept.Reason)
}

// compensationsOf returns the newest compensations of the exception's order, or the one that it
// is about.
func (s *handlers) compensationsOf(c *fiber.Ctx, x *console.Exception) ([]console.Compensation, error) {
	if x.Kind == exception.CompensationDead {
		id, err := strconv.ParseInt(x.Subject, 10, 64)
		if err != nil {
			return nil, nil
		}
		one, err := s.Console.CompensationDetail(c.UserContext(), id)
		if errors.Is(err, act.ErrNotFound) { // past its retention
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return []console.Compensation{one.Compensation}, nil
	}
	if x.OrderNo == "" {
		return nil, nil
	}
	q := list.Query{Spec: console.CompensationList, Scope: list.All()}.With("no", x.OrderNo)
	found, err := s.Console.Compensations(c.UserContext(), q, list.Slice{Rows: shownRows, Uncounted: true})
	return found.Rows, err
}

func (s *handlers) getException(c *fiber.Ctx) error {
	id, err := rowID(c)
	if err != nil {
		return err
	}
	v, err := s.exceptionOf(c, id)
	if err != nil {
		return err
	}
	return c.JSON(v)
}

// rowID reads an id from the path. Errors: act.ErrNotFound.
func rowID(c *fiber.Ctx) (int64, error) {
	id, err := strconv.ParseInt(c.Params("id"), 10, 64)
	if err != nil || id < 1 {
		return 0, act.ErrNotFound
	}
	return id, nil
}

// commentRequest is the body of a comment. Its text is the reason of its act.
type commentRequest struct {
	mayBeEmpty
	Text string `json:"text" max:"10000" required:"true"`
}

func readComment(c *fiber.Ctx, call *act.Call) error {
	call.Reason = requestOf[commentRequest](c).Text
	return nil
}

// comment names the field of a comment where its act names the reason.
func (s *handlers) comment(ctx context.Context, call act.Call) (act.Outcome, error) {
	out, err := s.Acts.Run(ctx, call)
	if wrong, ok := errors.AsType[*act.FieldError](err); ok && wrong.Field == "reason" {
		err = web.InvalidField("text", wrong.Problem)
	}
	return out, err
}
