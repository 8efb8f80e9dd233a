package console

import (
	"net/http"
	"slices"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/console"
	"backstop/internal/pause"
	"backstop/views/overview"

	"github.com/gofiber/fiber/v2"
)

// queuesPage shows the queues. It needs neither Redis nor Asynqmon.
func (s *handlers) queuesPage(c *fiber.Ctx) error {
	p := s.Page(c)
	d, err := s.readQueues(c)
	if err != nil {
		return err
	}
	return s.Render(c, http.StatusOK, overview.QueuesPage(p, d, s.system(p)))
}

func (s *handlers) readQueues(c *fiber.Ctx) (d overview.QueuesData, err error) {
	ctx := c.UserContext()
	if d.Queues, err = s.Console.Queues(ctx, s.Queues); err != nil {
		return d, err
	}
	if d.Flows, err = s.Console.QueueFlows(ctx, d.Queues); err != nil {
		return d, err
	}
	d.Paused, err = pause.Read(ctx, s.DB.Read)
	return d, err
}

// queuePage shows work that can be paused.
func (s *handlers) queuePage(c *fiber.Ctx) error {
	name, err := queueName(c)
	if err != nil {
		return err
	}
	d, err := s.readQueues(c)
	if err != nil {
		return err
	}
	did, err := s.done(c, pause.ActObject, name)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(d.Flows, func(f console.QueueFlow) bool { return f.Queue == name })
	q := overview.QueueData{QueuesData: d, Flow: d.Flows[at], Key: act.NewKey(), Done: did != nil}
	p := s.Page(c)
	q.CanControl = s.Policy.Allows(p.Roles, access.ControlQueues)
	return s.Render(c, http.StatusOK, overview.QueuePage(p, q))
}

// queueName returns the name in the path. Errors: act.ErrNotFound.
func queueName(c *fiber.Ctx) (string, error) {
	if i := slices.Index(pause.Names, c.Params("queue")); i >= 0 {
		return pause.Names[i], nil
	}
	return "", act.ErrNotFound
}
