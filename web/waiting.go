package web

import (
	"context"
	"sync"
	"time"

	"backstop/internal/access"
	"backstop/internal/base/db"
	"backstop/internal/console"
	"backstop/views/link"

	"github.com/gofiber/fiber/v2"
)

const (
	// waitingAge is how old the counts of the navigation may be.
	waitingAge = 5 * time.Second
	// waitingTime bounds the time to read them: no page waits for its navigation.
	waitingTime = time.Second
)

// waitingRows is where the rows are that are counted, by the paths of the pages that the navigation
// leads to.
var waitingRows = map[string]string{
	"/exceptions": "/exceptions?state=needs", "/compensations": "/compensations?state=dead", "/approvals": string(link.YourApprovals),
	"/": "/?matter=incident#now-title",
}

// waiting keeps what waits for operators: one query serves the pages of all of them.
type waiting struct {
	s  *Server
	mu sync.Mutex
	at time.Time
	console.AtWork
}

// of returns the counts of what an operator may act on, by the paths of its pages. Pages without
// counts are better than no pages: what cannot be read is only logged.
func (w *waiting) of(c *fiber.Ctx, op *access.Operator) map[string]console.Waits {
	if w.s.Ready.failed("database") != nil || op.Gate != "" || w.s.Actor(c).Merchants != nil {
		return nil
	}
	w.mu.Lock()
	if time.Since(w.at) >= waitingAge {
		ctx, cancel := context.WithTimeout(c.UserContext(), waitingTime)
		now, err := w.s.Console.AtWork(ctx)
		cancel()
		if err != nil {
			w.s.Log.Warn("count what waits for operators", "error", db.ErrorText(err))
		}
		w.at, w.AtWork = time.Now(), now
	}
	now := w.AtWork
	w.mu.Unlock()
	mine := now.Proposals.For(func(a *console.Approval) bool {
		return w.s.Approvals.May(w.s.actorOf(op), &a.Approval, a.MakerNow).Approve
	})
	counts := map[string]console.Waits{"/approvals": {N: mine.Count, More: mine.More}}
	for _, x := range []struct {
		path  string
		waits console.Waits
		acts  access.Permission
	}{
		{"/", now.Incidents, access.HandleAlerts},
		{"/exceptions", now.Exceptions, access.AssignExceptions},
		{"/compensations", now.Dead, access.RunCompensations},
	} {
		if w.s.Policy.Allows(op.Roles, x.acts) {
			counts[x.path] = x.waits
		}
	}
	return counts
}
