package api

import (
	"bytes"
	"context"
	"errors"

	"backstop/internal/act"
	"backstop/internal/breaker"
	"backstop/internal/notify"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// changeView is one change of a breaker.
type changeView struct {
	At       string  `json:"at"`
	From     string  `json:"from"`
	To       string  `json:"to"`
	Cause    *string `json:"cause"`
	Failures int64   `json:"failures"`
	Actor    *string `json:"actor"`
	Reason   *string `json:"reason"`
}

// breakerView is one merchant's breaker; without a row it is closed.
type breakerView struct {
	Merchant  string  `json:"merchant"`
	State     string  `json:"state"`
	Cause     *string `json:"cause"`
	ByHand    bool    `json:"by_hand"`
	Failures  int64   `json:"failures"` // in a row
	ChangedAt *string `json:"changed_at"`
	OpenUntil *string `json:"open_until"` // when one notification is tried as a probe; null if an operator has to close it
	// History holds the newest changes, in the response for one merchant.
	History []changeView `json:"history,omitempty"`
}

// historyShown is the number of changes returned for one breaker.
const historyShown = 20

func viewBreaker(code string, r breaker.Row) breakerView {
	return breakerView{
		Merchant: code, State: string(r.State), Cause: orNull(r.Cause), ByHand: r.ByHand, Failures: r.Failures,
		ChangedAt: stampOr(r.ChangedAt), OpenUntil: stampOr(r.OpenUntil),
	}
}

// breakers lists the breakers of merchants that have ever failed, or one merchant's with its
// history.
func (s *handlers) breakers(c *fiber.Ctx) error {
	r := requestOf[merchantQuery](c)
	if r.Merchant != "" {
		return s.oneBreaker(c, r.Merchant)
	}
	ctx, limit := c.UserContext(), int(r.Limit)
	rows, err := breaker.List(ctx, s.DB, r.Cursor, limit+1)
	if err != nil {
		return err
	}
	next := int64(0)
	if len(rows) > limit {
		rows = rows[:limit]
		next = rows[limit-1].OwnerID
	}
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.OwnerID
	}
	codes, err := s.Console.MerchantCodes(ctx, ids)
	if err != nil {
		return err
	}
	return c.JSON(pageOf(rows, next, func(r breaker.Row) breakerView { return viewBreaker(codes[r.OwnerID], r) }))
}

func (s *handlers) oneBreaker(c *fiber.Ctx, code string) error {
	ctx := c.UserContext()
	id, err := s.recipientID(ctx, code)
	if err != nil {
		return err
	}
	v, err := s.breakerNow(ctx, id, code)
	if err != nil {
		return err
	}
	changes, err := breaker.History(ctx, s.DB, s.Settings.Merchants().RecipientOf(id), historyShown)
	if err != nil {
		return err
	}
	for _, x := range changes {
		v.History = append(v.History, changeView{
			At: notify.Stamp(x.At), From: string(x.From), To: string(x.To), Cause: orNull(x.Cause), Failures: x.Failures,
			Actor: orNull(x.Actor), Reason: orNull(x.Reason),
		})
	}
	return c.JSON(page[breakerView]{Items: []breakerView{v}})
}

// breakerNow reads a merchant's breaker from its row; without a row it is closed.
func (s *handlers) breakerNow(ctx context.Context, id int64, code string) (breakerView, error) {
	r, err := breaker.Read(ctx, s.DB.Read, s.Settings.Merchants().RecipientOf(id))
	if err != nil {
		return breakerView{}, err
	}
	if r == nil {
		r = &breaker.Row{State: breaker.Closed}
	}
	return viewBreaker(code, *r), nil
}

// moveBreaker is the route that opens, closes or probes a merchant's breaker. Repeating the request
// is not an error: a breaker already in that state stays as it is.
func (s *handlers) moveBreaker(verb string, move breaker.Act) web.Route {
	return s.onAct(web.ActRoute{
		Path: monitoringPath + "breakers/:merchant/" + verb, Kind: breaker.MoveAct(move), Ref: byID(web.MerchantCode),
		Request: moveRequest{}, Read: readMove, Answer: breakerView{},
		Run: func(ctx context.Context, call act.Call) (act.Outcome, error) {
			out, err := s.Acts.Run(ctx, call)
			if errors.Is(err, breaker.ErrAlready) {
				err = nil
			}
			return out, err
		},
		Then: func(c *fiber.Ctx, done web.Acted) error {
			id, err := s.Console.MerchantID(c.UserContext(), done.Ref.ID)
			if err != nil {
				return err
			}
			v, err := s.breakerNow(c.UserContext(), id, done.Ref.ID)
			if err != nil {
				return err
			}
			return c.JSON(v)
		},
	})
}

// moveRequest is the body of a change of a breaker, which a program may omit.
type moveRequest struct {
	Reason string `json:"reason" max:"10000"`
}

func (moveRequest) ignoresOthers() {}

func readMove(c *fiber.Ctx, call *act.Call) error {
	if call.Reason = noReason; len(bytes.TrimSpace(c.Body())) > 0 {
		call.Reason = requestOf[moveRequest](c).Reason
	}
	return nil
}
