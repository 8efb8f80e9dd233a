package api

import (
	"net/http"
	"strconv"

	"backstop/internal/notify"
	"backstop/internal/sweep"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// sweepView is a sweep in the admin API. Missing values are null.
type sweepView struct {
	ID          string            `json:"id"`
	BeganAt     string            `json:"began_at"`
	EndedAt     *string           `json:"ended_at"`
	WindowFrom  string            `json:"window_from"`
	By          string            `json:"by"`
	Node        *string           `json:"node"`
	State       string            `json:"state"`
	LookedAt    int64             `json:"looked_at"`
	Pushed      []sweep.Pushed    `json:"pushed"`
	Differences []sweepDifference `json:"differences"`
	P99MS       *int64            `json:"p99_ms"`
}

type sweepDifference struct {
	What   string `json:"what"`
	Detail string `json:"detail"`
}

func viewSweep(s *sweep.Sweep) sweepView {
	differences := []sweepDifference{}
	for _, d := range s.Differences() {
		differences = append(differences, sweepDifference{d.What, d.Detail})
	}
	return sweepView{
		ID: strconv.FormatInt(s.ID, 10), BeganAt: notify.Stamp(s.BeganAt), EndedAt: notify.StampOr(s.EndedAt),
		WindowFrom: notify.Stamp(s.WindowFrom),
		By:         s.By, Node: orNull(s.Node), State: string(s.State), LookedAt: s.LookedAt, Pushed: s.Pushed(),
		Differences: differences,
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

// showBegun responds with the sweep that was started, which a worker continues.
func (s *handlers) showBegun(c *fiber.Ctx, done web.Acted) error {
	return c.Status(http.StatusAccepted).JSON(begunView{sweep.Begun(done.Outcome)})
}
