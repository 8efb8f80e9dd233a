package web

import (
	"context"

	"backstop/internal/act"

	"github.com/gofiber/fiber/v2"
)

// ActRoute is a route that runs an act. One handler of the console serves all of them, and one of
// the API: what a request holds is declared by the Kind.
type ActRoute struct {
	Path string
	Kind string
	// Ref reads what the act is about; nil = the Kind needs no Ref.
	Ref func(*fiber.Ctx) (act.Ref, error)
	// Request is the body of the API, if not the Kind's parameters and a reason; Read takes it over.
	Request any
	// Read reads what a request does not hold as the Kind declares it; nil = it does.
	Read func(*fiber.Ctx, *act.Call) error
	// Run runs the act; nil = the registry does.
	Run func(context.Context, act.Call) (act.Outcome, error)
	// Back is the page of the console that shows the result.
	Back func(act.Ref) string
	// Then answers instead of Back, in the API with Answer.
	Then   func(*fiber.Ctx, Acted) error
	Answer any
}

// Acted is an act that was run.
type Acted struct {
	act.Outcome
	Ref    act.Ref
	Result any // what was waited for after the commit, such as a supplier's answer; nil = nothing
}

// Run runs the act of a call whose form or body was read, and waits for its result.
func (s *Server) Run(c *fiber.Ctx, r ActRoute, call act.Call) (done Acted, err error) {
	ctx, run := c.UserContext(), s.Acts.Run
	if r.Run != nil {
		run = r.Run
	}
	call.Kind, call.By, done.Ref = r.Kind, s.Actor(c), call.Ref
	if done.Outcome, err = run(ctx, call); err == nil && done.After != nil {
		done.Result, err = done.After(ctx)
	}
	return done, err
}
