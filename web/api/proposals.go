package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/decision"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// proposalRoutes returns, for each object that decisions are registered for, the route that lists
// what its caller may propose about it, and the one that proposes it. The Desk checks who may propose
// what, because that depends on the object.
func (s *handlers) proposalRoutes() (all []web.Route) {
	for _, o := range web.Objects {
		if s.Proposes(o.Kind) == "" {
			continue
		}
		path := proposePath(o)
		all = append(all, reads(path, o.View, s.offers(o), nil, offersView{}), web.Route{
			Method: http.MethodPost, Path: path, Audience: web.ForMonitor, Permission: o.View, Person: true, Handler: s.propose(o),
			Request: proposalRequest{}, Answer: proposedView{},
		})
	}
	return all
}

// proposePath is the path of proposals about an object.
func proposePath(o web.Object) string { return "/api/v1/admin" + o.Path + "/propose" }

// offersView is what may be proposed about an object in its current state.
type offersView struct {
	subjectView
	Actions []approval.Offer `json:"actions"`
}

func (s *handlers) offers(o web.Object) fiber.Handler {
	return func(c *fiber.Ctx) error {
		no, err := o.No(c)
		if err != nil {
			return err
		}
		about, offers, err := s.Approvals.OffersOf(c.UserContext(), s.Actor(c), o.Kind, no)
		if err != nil {
			return err
		}
		return c.JSON(offersView{viewSubject(o.Kind, about), offers})
	}
}

// proposedView is the response to a proposal.
type proposedView struct {
	Approval any `json:"approval"`
}

// proposalRequest is a proposal.
type proposalRequest struct {
	mayBeEmpty
	Action  string          `json:"action" max:"64" required:"true"`
	Params  json.RawMessage `json:"params" kind:"raw" doc:"Those of the action, which checks them."`
	Reason  string          `json:"reason" max:"10000"`
	Amount  string          `json:"amount" max:"64"` // as typed
	Version int64           `json:"version" min:"1" max:"9007199254740992"`
}

// propose makes a proposal: 201 if it waits for a second person, 200 if it is done.
func (s *handlers) propose(o web.Object) fiber.Handler {
	return func(c *fiber.Ctx) error {
		no, err := o.No(c)
		if err != nil {
			return err
		}
		r := requestOf[proposalRequest](c)
		p := approval.Proposal{
			Object: o.Kind, ObjectID: no, Action: r.Action, Params: r.Params, Reason: r.Reason, Amount: r.Amount, Version: r.Version,
			By: s.Actor(c),
		}
		send := s.sendProposal
		if o.Kind == decision.OfException && slices.Contains(decision.OneByOne, p.Action) {
			send = s.doAtOnce
		}
		if err = send(c, p); !errors.Is(err, act.ErrChanged) {
			return err
		}
		about, _, missing := s.Approvals.OffersOf(c.UserContext(), p.By, o.Kind, no)
		if missing != nil {
			return missing
		}
		return s.changed(c, err, o.Kind, about)
	}
}

// changedView is the refusal of an outdated request, with the current object.
type changedView struct {
	web.ErrorBody
	Object any `json:"object"`
}

// changed refuses an outdated request. A subject without an id no longer exists.
func (s *handlers) changed(c *fiber.Ctx, why error, object string, about act.Subject) (err error) {
	v := changedView{}
	v.Error.Code, v.Error.Message = "changed", why.Error()
	switch x := about.Value.(type) {
	case *decision.Subject:
		if x.Exception != nil {
			v.Object, err = s.exceptionOf(c, x.Exception.ID)
		} else {
			v.Object, err = s.orderOf(c.UserContext(), x.Order)
		}
	default:
		if about.ID != "" {
			v.Object = viewSubject(object, about)
		}
	}
	if err != nil {
		return err
	}
	return c.Status(http.StatusConflict).JSON(v)
}

// subjectView is what an approval is about if the API has no object of its own for it.
type subjectView struct {
	Object   string  `json:"object"`
	ID       string  `json:"id"`
	Version  int64   `json:"version"`
	Amount   *int64  `json:"amount"`
	Currency *string `json:"currency"`
}

func viewSubject(object string, about act.Subject) subjectView {
	v := subjectView{Object: object, ID: about.ID, Version: about.Version, Currency: orNull(about.Currency)}
	if about.Currency != "" {
		v.Amount = &about.Amount
	}
	return v
}
