package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"backstop/internal/act"
	"backstop/internal/breaker"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// changeView is one change of a breaker, kept for people.
type changeView struct {
	At       string `json:"at"`
	From     string `json:"from"`
	To       string `json:"to"`
	Cause    string `json:"cause"`
	Failures int64  `json:"failures"`
	Actor    string `json:"actor"`
	Reason   string `json:"reason"`
}

// breakerView is one merchant's breaker. A merchant without one is well.
type breakerView struct {
	Merchant  string  `json:"merchant"`
	State     string  `json:"state"`
	Cause     string  `json:"cause"`
	ByHand    bool    `json:"by_hand"`
	Failures  int64   `json:"failures"` // in a row
	ChangedAt *string `json:"changed_at"`
	OpenUntil *string `json:"open_until"` // then one notification is tried; null where a person has to close it
	// History is the newest changes, given where one merchant is asked for.
	History []changeView `json:"history,omitempty"`
}

// historyShown is how many changes of one breaker are given.
const historyShown = 20

func (s *handlers) viewBreaker(code string, r breaker.Row) breakerView {
	return breakerView{
		Merchant: code, State: string(r.State), Cause: r.Cause, ByHand: r.ByHand, Failures: r.Failures,
		ChangedAt: stampOr(r.ChangedAt), OpenUntil: stampOr(r.OpenUntil),
	}
}

// breakers lists the breakers of merchants that ever failed, or one merchant's
// with what happened to it.
func (s *handlers) breakers(c *fiber.Ctx) error {
	f := web.ReadFilter(c)
	code, after, limit := f.Text("merchant"), f.Cursor(), f.Limit()
	if f.Err != nil {
		return f.Err
	}
	ctx, cancel := web.Work()
	defer cancel()
	if code != "" {
		return s.oneBreaker(ctx, c, code)
	}
	rows, err := breaker.List(ctx, s.DB, after, limit+1)
	if err != nil {
		return err
	}
	out := page[breakerView]{Items: []breakerView{}}
	if len(rows) > limit {
		rows = rows[:limit]
		out.Next = cursorText(rows[limit-1].OwnerID)
	}
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.OwnerID
	}
	codes, err := s.Console.MerchantCodes(ctx, ids)
	if err != nil {
		return err
	}
	for _, r := range rows {
		out.Items = append(out.Items, s.viewBreaker(codes[r.OwnerID], r))
	}
	return c.JSON(out)
}

func (s *handlers) oneBreaker(ctx context.Context, c *fiber.Ctx, code string) error {
	id, err := s.told(ctx, code)
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
			At: *stampOr(x.At), From: string(x.From), To: string(x.To), Cause: x.Cause, Failures: x.Failures, Actor: x.Actor, Reason: x.Reason,
		})
	}
	return c.JSON(page[breakerView]{Items: []breakerView{v}})
}

// breakerNow reads a merchant's breaker from its row; one without a row is well.
func (s *handlers) breakerNow(ctx context.Context, id int64, code string) (breakerView, error) {
	r, err := breaker.Read(ctx, s.DB.Read, s.Settings.Merchants().RecipientOf(id))
	if err != nil {
		return breakerView{}, err
	}
	if r == nil {
		r = &breaker.Row{State: breaker.Closed}
	}
	return s.viewBreaker(code, *r), nil
}

// moveBreaker opens, closes or probes a merchant's breaker, on the record. One that
// is in that state already stays so: asking twice is no error.
func (s *handlers) moveBreaker(move breaker.Act) fiber.Handler {
	return func(c *fiber.Ctx) error {
		code, err := web.MerchantCode(c)
		if err != nil {
			return err
		}
		reason, err := reasonOf(c)
		if err != nil {
			return err
		}
		ctx, cancel := web.Work()
		defer cancel()
		_, err = s.Acts.Run(ctx, act.Call{Kind: breaker.MoveAct(move), By: s.Actor(c), Ref: act.Ref{ID: code}, Reason: reason})
		if err != nil && !errors.Is(err, breaker.ErrAlready) {
			return err
		}
		id, err := s.Console.MerchantID(ctx, code)
		if err != nil {
			return err
		}
		v, err := s.breakerNow(ctx, id, code)
		if err != nil {
			return err
		}
		return c.Status(http.StatusOK).JSON(v)
	}
}

// noReason stands for a reason that a program did not give.
const noReason = "through the API, without a reason"

// reasonOf reads {"reason": "…"} from the body. A call without a body is a
// program's: what it has to say stands in its own log.
func reasonOf(c *fiber.Ctx) (string, error) {
	if len(bytes.TrimSpace(c.Body())) == 0 {
		return noReason, nil
	}
	var body struct {
		Reason string `json:"reason"`
	}
	if err := json.Unmarshal(c.Body(), &body); err != nil {
		return "", web.BadRequest(`send {"reason": "…"} as JSON`)
	}
	return body.Reason, nil
}
