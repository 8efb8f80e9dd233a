package api

import (
	"encoding/json"
	"net/http"
	"strconv"

	"backstop/internal/act"
	"backstop/internal/notify"
	"backstop/internal/sweep"

	"github.com/gofiber/fiber/v2"
)

// sweepView is a sweep in the admin API. Missing values are null.
type sweepView struct {
	ID          string             `json:"id"`
	BeganAt     string             `json:"began_at"`
	EndedAt     *string            `json:"ended_at"`
	WindowFrom  string             `json:"window_from"`
	By          string             `json:"by"`
	Node        *string            `json:"node"`
	State       string             `json:"state"`
	LookedAt    int64              `json:"looked_at"`
	Pushed      []sweep.Pushed     `json:"pushed"`
	Differences []sweep.Difference `json:"differences"`
	P99MS       *int64             `json:"p99_ms"`
}

func viewSweep(s *sweep.Sweep) sweepView {
	return sweepView{
		ID: strconv.FormatInt(s.ID, 10), BeganAt: notify.Stamp(s.BeganAt), EndedAt: notify.StampOr(s.EndedAt),
		WindowFrom: notify.Stamp(s.WindowFrom),
		By:         s.By, Node: orNull(s.Node), State: string(s.State), LookedAt: s.LookedAt, Pushed: s.Pushed(),
		Differences: s.Differences(),
		P99MS:       s.P99MS,
	}
}

func (s *handlers) listSweeps(c *fiber.Ctx) error {
	r := requestOf[paging](c)
	rows, err := sweep.List(c.UserContext(), s.DB.Read, r.Cursor, int(r.Limit)+1)
	if err != nil {
		return err
	}
	next := int64(0)
	if len(rows) > int(r.Limit) {
		rows = rows[:r.Limit]
		next = rows[r.Limit-1].ID
	}
	return c.JSON(pageOf(rows, next, viewSweep))
}

func (s *handlers) getSweep(c *fiber.Ctx) error {
	id, err := rowID(c)
	if err != nil {
		return err
	}
	found, err := sweep.Find(c.UserContext(), s.DB.Read, id)
	if err != nil {
		return err
	}
	return c.JSON(viewSweep(found))
}

type begunView struct {
	ID string `json:"id"`
}

// runSweep starts a sweep, which a worker continues.
func (s *handlers) runSweep(c *fiber.Ctx) error {
	f, err := readAct(c, "days", "reason")
	if err != nil {
		return err
	}
	reason := f.text("reason", false, maxReason)
	if f.err != nil {
		return f.err
	}
	params := map[string]json.RawMessage{}
	if _, given := f.raw("days", false); given {
		days := f.number("days", false, sweep.MinDays, sweep.MaxDays)
		if f.err != nil {
			return f.err
		}
		params["days"] = json.RawMessage(strconv.FormatInt(days, 10))
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	out, err := s.Acts.Run(c.UserContext(), act.Call{Kind: sweep.RunAct, By: s.Actor(c), Params: raw, Reason: reason})
	if err != nil {
		return err
	}
	return c.Status(http.StatusAccepted).JSON(begunView{sweep.Begun(out)})
}
