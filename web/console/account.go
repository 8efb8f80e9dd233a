package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/list"
	"backstop/views/operators"
	"backstop/views/ui"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

func (s *handlers) accountPage(c *fiber.Ctx) error {
	problem := operators.Problem("")
	switch {
	case web.Operator(c).MustChange:
		problem = operators.MustChange
	case c.Query("kept") == "1":
		problem = operators.ChoicesKept
	case c.Query("ended") == "1":
		problem = operators.OthersEnded
	}
	return s.sendAccount(c, http.StatusOK, problem)
}

func (s *handlers) sendAccount(c *fiber.Ctx, status int, problem operators.Problem) error {
	op := web.Operator(c)
	sessions, err := s.Sessions.List(c.UserContext(), op.ID, c.Cookies(s.CookieName()))
	if err != nil {
		return err
	}
	return s.Render(c, status, operators.Me(s.Page(c), operators.Account{
		Language: op.Language, Theme: op.Theme, Zone: op.Zone, DefaultZone: s.Config.Timezone.String(),
		Rows:    cmp.Or(op.PageRows, list.PageSize),
		Problem: problem, Forced: op.MustChange, Sessions: sessions,
	}))
}

// saveAccount stores language, theme and time zone, and in the browser how high rows are; fields
// missing from the form keep their values, so that the top bar can change one of them.
func (s *handlers) saveAccount(c *fiber.Ctx) error {
	op := web.Operator(c)
	chosen := func(name, is string) string {
		if c.Request().PostArgs().Has(name) {
			return web.Field(c, name)
		}
		return is
	}
	density := chosen("density", "")
	if density != "" && density != ui.Comfortable && density != ui.Compact {
		return s.sendAccount(c, http.StatusUnprocessableEntity, operators.BadChoice)
	}
	rows, err := strconv.Atoi(chosen("rows", strconv.Itoa(op.PageRows)))
	if err != nil {
		rows = -1 // not a valid choice
	}
	err = s.Operators.Choose(c.UserContext(), op.ID, access.Choices{
		Language: chosen("language", op.Language), Theme: chosen("theme", op.Theme), Zone: chosen("zone", op.Zone), PageRows: rows,
	})
	if errors.Is(err, access.ErrChoice) {
		return s.sendAccount(c, http.StatusUnprocessableEntity, operators.BadChoice)
	}
	if err != nil {
		return err
	}
	if density != "" {
		s.SetCookie(c, web.DensityCookie, density, keptChoice)
	}
	if back := web.Field(c, "back"); back != "" {
		return c.Redirect(safeNext(back), http.StatusSeeOther)
	}
	return c.Redirect("/me?kept=1", http.StatusSeeOther)
}

// changePassword sets a new password, which ends every session of the operator, and starts a
// new session.
func (s *handlers) changePassword(c *fiber.Ctx) error {
	op := web.Operator(c)
	if web.Field(c, "new") != web.Field(c, "again") {
		return s.sendAccount(c, http.StatusUnprocessableEntity, operators.NotSame)
	}
	// An open session must not serve to guess the password. Attempts without a session are
	// counted separately, so that a stranger cannot lock the owner out.
	try := access.SignIn{Name: op.Name, Device: "a session of " + op.Name}
	if s.throttle.Try(try) > 0 {
		return web.ErrTooMany
	}
	err := s.Operators.ChangePassword(c.UserContext(), op.Name, web.Field(c, "old"), web.Field(c, "new"))
	switch {
	case errors.Is(err, access.ErrLogin):
		return s.sendAccount(c, http.StatusUnprocessableEntity, operators.OldWrong)
	case errors.Is(err, access.ErrExpired):
		return s.sendAccount(c, http.StatusUnprocessableEntity, operators.PasswordExpired)
	case errors.Is(err, access.ErrPassword):
		s.throttle.Forgive(try)
		return s.sendAccount(c, http.StatusUnprocessableEntity, passwordProblem(err))
	case errors.Is(err, db.ErrStale):
		return s.AskToSignIn(c)
	case err != nil:
		return err
	}
	s.throttle.Forgive(try)
	if err := s.startSession(c, op); err != nil {
		return err
	}
	if err := s.keepAct(c, audit.Act{
		Actor: "operator:" + op.Name, Action: "password.change", Object: "operator",
		ObjectID: op.Name,
	}); err != nil {
		return err
	}
	s.Log.Info("password changed", "operator", op.Name, "request_id", web.RequestID(c))
	if op.MustChange {
		return s.firstVisit(c, op)
	}
	return c.Redirect("/me?kept=1", http.StatusSeeOther)
}

// firstVisit leads whoever is alone here to where colleagues are added, and others to the overview,
// which begins with the guide.
func (s *handlers) firstVisit(c *fiber.Ctx, op *access.Operator) error {
	all, err := s.Operators.List(c.UserContext())
	if err != nil {
		return err
	}
	if len(all) == 1 && s.Policy.Allows(op.Roles, access.ManageOperators) {
		return c.Redirect("/operators?first=1", http.StatusSeeOther)
	}
	return c.Redirect("/", http.StatusSeeOther)
}

// passwordProblem says why a new password is refused.
func passwordProblem(err error) operators.Problem {
	if errors.Is(err, access.ErrCommon) {
		return operators.NewCommon
	}
	return operators.NewBad
}

// endSessions ends all other sessions of the operator, or the one that is named.
func (s *handlers) endSessions(c *fiber.Ctx) error {
	op, one := web.Operator(c), web.Field(c, "session")
	err := s.DB.Tx(c.UserContext(), func(ctx context.Context, tx db.Tx) error {
		if one != "" {
			if err := s.Sessions.EndOne(ctx, tx, op.ID, one); err != nil {
				return err
			}
			return s.keepIn(ctx, tx, c, ownAct(op, "session.end"))
		}
		ended, err := s.Sessions.EndOthers(ctx, tx, op.ID, c.Cookies(s.CookieName()))
		if err != nil {
			return err
		}
		return s.Audit.Write(ctx, tx, audit.Act{
			Actor: "operator:" + op.Name, Action: "session.end_others", Object: "operator", ObjectID: op.Name,
			Params: map[string]any{"ended": ended}, Remote: s.Client(c).String(),
		})
	})
	if err != nil {
		return err
	}
	return c.Redirect("/me?ended=1", http.StatusSeeOther)
}
