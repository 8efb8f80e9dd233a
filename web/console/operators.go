package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/operator"
	"backstop/views/operators"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// operatorsPage lists the operators.
func (s *handlers) operatorsPage(c *fiber.Ctx) error { return s.sendOperators(c, nil) }

func (s *handlers) sendOperators(c *fiber.Ctx, link *operators.InviteLink) error {
	ctx := c.UserContext()
	all, err := s.Operators.List(ctx)
	if err != nil {
		return err
	}
	sessions, err := s.Sessions.Counts(ctx)
	if err != nil {
		return err
	}
	running, err := access.RunningTokens(ctx, s.DB, 0)
	if err != nil {
		return err
	}
	tokens := map[int64]int64{}
	for _, t := range running {
		tokens[t.OperatorID]++
	}
	x := operators.PeopleData{
		Key: act.NewKey(), Link: link, Mails: s.Mail != nil, First: c.Query("first") == "1", NoPasswords: s.Config.Passwords == "off",
		Roles: s.roles(),
	}
	for _, op := range all {
		x.People = append(x.People, operators.Person{Operator: op, Sessions: sessions[op.ID], Tokens: tokens[op.ID]})
	}
	if x.Did, err = s.done(c, operator.Object, ""); err != nil {
		return err
	}
	return s.Render(c, http.StatusOK, operators.People(s.Page(c), x))
}

// operatorPage shows one operator.
func (s *handlers) operatorPage(c *fiber.Ctx) error { return s.sendOperator(c, nil) }

func (s *handlers) sendOperator(c *fiber.Ctx, link *operators.InviteLink) error {
	ctx := c.UserContext()
	name, err := operatorName(c)
	if err != nil {
		return err
	}
	op, err := access.Named(ctx, s.DB.Read, name)
	if errors.Is(err, access.ErrNotFound) {
		return act.ErrNotFound
	}
	if err != nil {
		return err
	}
	if op.Issuer, err = access.IssuerOf(ctx, s.DB.Read, op.ID); err != nil {
		return err
	}
	x := operators.PersonData{
		Person: operators.Person{Operator: *op}, All: s.roles(), Key: act.NewKey(), Link: link, Self: op.ID == web.Operator(c).ID,
	}
	if x.Sessions, err = s.Sessions.List(ctx, op.ID, c.Cookies(s.CookieName())); err != nil {
		return err
	}
	if x.Tokens, err = access.RunningTokens(ctx, s.DB, op.ID); err != nil {
		return err
	}
	if x.Did, err = s.done(c, operator.Object, name); err != nil {
		return err
	}
	return s.Render(c, http.StatusOK, operators.PersonPage(s.Page(c), x))
}

// operatorName returns the name in the path.
func operatorName(c *fiber.Ctx) (string, error) {
	name, err := url.PathUnescape(c.Params("operator"))
	if err != nil || len(name) > web.MaxFilter {
		return "", act.ErrNotFound
	}
	return name, nil
}

// errPasswordsOff refuses an invitation that could not be accepted.
var errPasswordsOff = &web.Error{
	Status: http.StatusConflict, Code: "passwords_off", Message: "sign-in by password is off: people sign in at the provider",
}

// invitee refers to whom the form invites. The mail address is checked before anything is done.
func (s *handlers) invitee(c *fiber.Ctx) (act.Ref, error) {
	name := web.Field(c, "name")
	if !s.Config.ByPassword(name) {
		return act.Ref{}, errPasswordsOff
	}
	_, err := s.mailAddress(c)
	return act.Ref{ID: name}, err
}

func ofOperator(of act.Ref) string { return "/operators/" + url.PathEscape(of.ID) }

// showInvitation shows a link, which is stored nowhere; of a form that is sent twice, what it did.
func (s *handlers) showInvitation(page func(*fiber.Ctx, *operators.InviteLink) error) func(*fiber.Ctx, web.Acted) error {
	return func(c *fiber.Ctx, done web.Acted) error {
		in, ok := done.Result.(*access.Invitation)
		if !ok {
			return showDone(c, ofOperator(done.Ref))
		}
		link := &operators.InviteLink{Name: in.Name, URL: s.Config.AdminURL + "/invite/" + in.Token, Until: in.Until}
		s.mailInvitation(c, link)
		return page(c, link)
	}
}

// rolesPage shows what each role may do.
func (s *handlers) rolesPage(c *fiber.Ctx) error {
	return s.Render(c, http.StatusOK, operators.Roles(s.Page(c), s.roles()))
}

// roles returns the roles that there are: the built-in ones first.
func (s *handlers) roles() (all []operators.Role) {
	for _, name := range s.Policy.Roles() {
		all = append(all, operators.Role{Name: name, May: s.Policy.Of(name)})
	}
	return all
}

// invitationPage is where whom a link invites sets a password.
func (s *handlers) invitationPage(c *fiber.Ctx) error {
	s.keepLanguage(c)
	return s.sendInvitation(c, http.StatusOK, "")
}

func (s *handlers) sendInvitation(c *fiber.Ctx, status int, problem operators.Problem) error {
	w := operators.Invited{Token: c.Params("token"), Problem: problem}
	op, err := s.Operators.Invited(c.UserContext(), w.Token)
	switch {
	case err == nil && !s.Config.ByPassword(op.Name):
		return s.sendLogin(c, http.StatusGone, operators.Login{Next: "/", Problem: operators.PasswordsOff})
	case errors.Is(err, access.ErrInvitation):
		status = http.StatusGone
	case err != nil:
		return err
	default:
		w.Name, w.Roles = op.Name, op.Roles
	}
	return s.Render(c, status, operators.Welcome(s.Page(c), w))
}

// acceptInvitation sets the password and signs in.
func (s *handlers) acceptInvitation(c *fiber.Ctx) error {
	if web.Field(c, "new") != web.Field(c, "again") {
		return s.sendInvitation(c, http.StatusUnprocessableEntity, operators.NotSame)
	}
	if invited, err := s.Operators.Invited(c.UserContext(), c.Params("token")); err == nil && !s.Config.ByPassword(invited.Name) {
		return s.sendInvitation(c, http.StatusGone, "")
	}
	op, err := s.Operators.Accept(c.UserContext(), c.Params("token"), web.Field(c, "new"),
		func(ctx context.Context, tx db.Tx, op *access.Operator) error {
			return s.keepIn(ctx, tx, c, ownAct(op, "operator.accept"))
		})
	switch {
	case errors.Is(err, access.ErrInvitation):
		return s.sendInvitation(c, http.StatusGone, "")
	case errors.Is(err, access.ErrPassword):
		return s.sendInvitation(c, http.StatusUnprocessableEntity, passwordProblem(err))
	case err != nil:
		return err
	}
	if err := s.breakGlass(c, op); err != nil {
		return err
	}
	if err := s.startSession(c, op); err != nil {
		return err
	}
	if op.TOTPSince != nil {
		return c.Redirect("/second", http.StatusSeeOther)
	}
	return c.Redirect(s.landing(op), http.StatusSeeOther)
}
