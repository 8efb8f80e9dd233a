package api

import (
	"context"
	"time"

	"backstop/internal/alert"
	"backstop/internal/notify"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

type nodeView struct {
	Node      string `json:"node"`
	Alive     bool   `json:"alive"`
	StartedAt string `json:"started_at"`
	SeenAt    string `json:"seen_at"`
}

// clockView is how far this node's clock is ahead of others, in ms; null = currently unknown.
type clockView struct {
	Database *float64 `json:"database_ms"`
	Redis    *float64 `json:"redis_ms"`
}

type healthView struct {
	Status       string            `json:"status"` // ok or degraded
	Version      string            `json:"version"`
	Node         string            `json:"node"` // the responding node
	Database     string            `json:"database"`
	QueueEngine  string            `json:"queue_engine"`
	Checks       []web.CheckResult `json:"checks"` // of this node, as in /readyz
	ClockSkew    clockView         `json:"clock_skew"`
	Nodes        []nodeView        `json:"nodes"`
	FiringAlerts int64             `json:"firing_alerts"`
}

// skewTime bounds the request for Redis's time.
const skewTime = 500 * time.Millisecond

// health reports whether this node and its dependencies are healthy. The status is 200 as long
// as it can report; if the database is unavailable, nodes cannot be listed.
func (s *handlers) health(c *fiber.Ctx) error {
	ctx := c.UserContext()
	v := healthView{
		Status: "ok", Version: s.Version, Node: s.DB.NodeName(), Database: s.DB.Engine(), QueueEngine: s.QueueEngine,
		Checks: s.Ready.Ask(), ClockSkew: s.clockSkew(ctx), Nodes: []nodeView{},
	}
	for _, check := range v.Checks {
		if !check.OK {
			v.Status = "degraded"
		}
	}
	nodes, err := s.Console.Nodes(ctx)
	if err != nil {
		return err
	}
	now := s.DB.Now()
	for _, n := range nodes {
		v.Nodes = append(v.Nodes, nodeView{n.Name, n.Alive(now), notify.Stamp(n.StartedAt), notify.Stamp(n.SeenAt)})
	}
	if v.FiringAlerts, err = alert.CountFiring(ctx, s.DB.Read); err != nil {
		return err
	}
	return c.JSON(v)
}

func (s *handlers) clockSkew(ctx context.Context) clockView {
	v := clockView{Database: milliseconds(s.DB.Skew())}
	ctx, cancel := context.WithTimeout(ctx, skewTime)
	defer cancel()
	if skew, err := s.RedisSkew(ctx); err == nil {
		v.Redis = milliseconds(skew)
	}
	return v
}
