package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/console"
	"backstop/views"

	"github.com/gofiber/fiber/v2"
)

func (s *Server) accountPage(c *fiber.Ctx) error {
	problem := views.Problem("")
	switch {
	case operator(c).MustChange:
		problem = views.MustChange
	case c.Query("kept") == "1":
		problem = views.ChoicesKept
	case c.Query("ended") == "1":
		problem = views.OthersEnded
	}
	return s.sendAccount(c, http.StatusOK, problem)
}

func (s *Server) sendAccount(c *fiber.Ctx, status int, problem views.Problem) error {
	op := operator(c)
	ctx, cancel := work()
	defer cancel()
	sessions, err := s.o.Sessions.List(ctx, op.ID, c.Cookies(s.cookieName()))
	if err != nil {
		return err
	}
	return s.render(c, status, views.Me(s.page(c), views.Account{
		Language: op.Language, Theme: op.Theme, Zone: op.Zone, DefaultZone: s.o.Config.Timezone.String(), Rows: cmp.Or(op.PageRows, console.PageSize),
		Problem: problem, Forced: op.MustChange, Sessions: sessions,
	}))
}

// saveAccount keeps language, theme and zone; a field that the form does not have
// stays as it is, so that the top bar can change one of them.
func (s *Server) saveAccount(c *fiber.Ctx) error {
	op := operator(c)
	chosen := func(name, is string) string {
		if c.Request().PostArgs().Has(name) {
			return field(c, name)
		}
		return is
	}
	ctx, cancel := work()
	defer cancel()
	rows, err := strconv.Atoi(chosen("rows", strconv.Itoa(op.PageRows)))
	if err != nil {
		return s.sendAccount(c, http.StatusUnprocessableEntity, views.BadChoice)
	}
	err = s.o.Operators.Choose(ctx, op.ID, access.Choices{
		Language: chosen("language", op.Language), Theme: chosen("theme", op.Theme), Zone: chosen("zone", op.Zone), PageRows: rows,
	})
	if errors.Is(err, access.ErrChoice) {
		return s.sendAccount(c, http.StatusUnprocessableEntity, views.BadChoice)
	}
	if err != nil {
		return err
	}
	if back := field(c, "back"); back != "" {
		return c.Redirect(safeNext(back), http.StatusSeeOther)
	}
	return c.Redirect("/me?kept=1", http.StatusSeeOther)
}

// changePassword takes a new password, which ends every session of the operator,
// and starts a new one for whoever knew the old password.
func (s *Server) changePassword(c *fiber.Ctx) error {
	op := operator(c)
	if field(c, "new") != field(c, "again") {
		return s.sendAccount(c, http.StatusUnprocessableEntity, views.NotSame)
	}
	// A session that somebody left open must not serve to guess the password.
	// Only who has one counts here: a stranger cannot keep the owner from it.
	try := access.SignIn{Name: op.Name, Device: "a session of " + op.Name}
	if s.throttle.Try(try) > 0 {
		return errTooMany
	}
	ctx, cancel := work()
	defer cancel()
	err := s.o.Operators.ChangePassword(ctx, op.Name, field(c, "old"), field(c, "new"))
	switch {
	case errors.Is(err, access.ErrLogin):
		return s.sendAccount(c, http.StatusUnprocessableEntity, views.OldWrong)
	case errors.Is(err, access.ErrExpired):
		return s.sendAccount(c, http.StatusUnprocessableEntity, views.PasswordExpired)
	case errors.Is(err, access.ErrPassword):
		s.throttle.Forgive(try)
		return s.sendAccount(c, http.StatusUnprocessableEntity, views.NewBad)
	case errors.Is(err, db.ErrStale):
		return s.askToSignIn(c)
	case err != nil:
		return err
	}
	s.throttle.Forgive(try)
	if err := s.startSession(ctx, c, op); err != nil {
		return err
	}
	if err := s.keepAct(ctx, audit.Act{Actor: "operator:" + op.Name, Action: "password.change", Object: "operator", ObjectID: op.Name, Remote: s.client(c).String()}); err != nil {
		return err
	}
	s.o.Log.Info("password changed", "operator", op.Name, "request_id", localRequestID.text(c))
	return c.Redirect("/me?kept=1", http.StatusSeeOther)
}

// endSessions signs the operator out everywhere else.
func (s *Server) endSessions(c *fiber.Ctx) error {
	op := operator(c)
	ctx, cancel := work()
	defer cancel()
	err := s.o.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		ended, err := s.o.Sessions.EndOthers(ctx, tx, op.ID, c.Cookies(s.cookieName()))
		if err != nil {
			return err
		}
		return s.o.Audit.Write(ctx, tx, audit.Act{
			Actor: "operator:" + op.Name, Action: "session.end_others", Object: "operator", ObjectID: op.Name,
			Params: map[string]any{"ended": ended}, Remote: s.client(c).String(),
		})
	})
	if err != nil {
		return err
	}
	return c.Redirect("/me?ended=1", http.StatusSeeOther)
}
