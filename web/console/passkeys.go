package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/text"
	"backstop/internal/passkey"
	"backstop/views/operators"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

var (
	tWrongPasskey = text.Text{ZH: "通行密钥未被接受：请重试，或输入验证码。", EN: "The passkey was not accepted: try again, or type a code."}
	tNoPasskey    = text.Text{ZH: "没有这个通行密钥", EN: "there is no such passkey"}
)

// addPasskeys adds to the page of the second factor the passkeys of the operator, and the question
// for another one.
func (s *handlers) addPasskeys(c *fiber.Ctx, op *access.Operator, x *operators.Second) (err error) {
	if s.passkeys == nil || x.Recovery != nil {
		return nil
	}
	if x.Passkeys, err = s.passkeys.List(c.UserContext(), op.ID); err != nil {
		return err
	}
	if x.Question, err = s.passkeys.AskNew(c.UserContext(), op); errors.Is(err, passkey.ErrTooMany) {
		return nil
	}
	return err
}

// addPasskey stores a new passkey of the operator, who has a second factor and has given it lately.
func (s *handlers) addPasskey(c *fiber.Ctx) error {
	op := web.Operator(c)
	if op.TOTPSince == nil || s.passkeys == nil {
		return access.ErrNoSecond
	}
	if err := s.fresh(c); err != nil {
		return err
	}
	err := s.passkeys.Add(c.UserContext(), op, web.Field(c, "sealed"), web.Field(c, "answer"), access.DeviceOf(c.Get(fiber.HeaderUserAgent)),
		func(ctx context.Context, tx db.Tx) error {
			return s.keepIn(ctx, tx, c, ownAct(op, "second.add_passkey"))
		})
	if problem, ok := codeProblem(err); ok {
		return s.sendSetUp(c, http.StatusUnprocessableEntity, problem, nil)
	}
	if err != nil {
		return err
	}
	return c.Redirect("/me/second", http.StatusSeeOther)
}

// askPasskey asks for a passkey where a code is asked for again.
func (s *handlers) askPasskey(c *fiber.Ctx) error {
	if s.passkeys == nil {
		return act.ErrNotFound
	}
	q, err := s.passkeys.Ask(c.UserContext(), web.Operator(c))
	if err != nil {
		return err
	}
	if q == nil {
		return act.ErrNotFound
	}
	return c.JSON(map[string]any{"options": json.RawMessage(q.Options), "sealed": q.Sealed})
}

// loginByPasskey starts the session of whoever gives a passkey instead of the password and the code.
func (s *handlers) loginByPasskey(c *fiber.Ctx) error {
	form := operators.Login{Next: safeNext(web.Field(c, "next"))}
	if s.passkeys == nil {
		return c.Redirect("/login", http.StatusSeeOther)
	}
	try := access.SignIn{Address: web.SenderOf(s.Client(c))}
	if form.Wait = s.throttle.Try(try); form.Wait > 0 {
		return s.sendTooMany(c, form)
	}
	op, err := s.passkeys.SignIn(c.UserContext(), web.Field(c, "passkey_sealed"), web.Field(c, "passkey_answer"))
	switch {
	case errors.Is(err, passkey.ErrPasskey):
		form.Problem = operators.WrongPasskey
	case err != nil:
		return err
	case !s.Config.ByPassword(op.Name):
		form.Problem = operators.PasswordsOff
	}
	if form.Problem != "" {
		return s.sendLogin(c, http.StatusUnprocessableEntity, form)
	}
	s.throttle.Forgive(try)
	if err := s.breakGlass(c, op); err != nil {
		return err
	}
	return s.enter(c, op, form.Next, map[string]any{"by": "passkey"})
}

// removePasskey takes one of the operator's passkeys away.
func (s *handlers) removePasskey(c *fiber.Ctx) error {
	op := web.Operator(c)
	err := s.DB.Tx(c.UserContext(), func(ctx context.Context, tx db.Tx) error {
		if err := passkey.Remove(ctx, tx, op, web.Field(c, "passkey")); err != nil {
			return err
		}
		return s.keepIn(ctx, tx, c, ownAct(op, "second.remove_passkey"))
	})
	if errors.Is(err, passkey.ErrNotFound) {
		return web.Invalid("passkey", tNoPasskey)
	}
	if err != nil {
		return err
	}
	return c.Redirect("/me/second", http.StatusSeeOther)
}
