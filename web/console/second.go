package console

import (
	"context"
	"errors"
	"net/http"

	"backstop/internal/access"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/text"
	"backstop/internal/passkey"
	"backstop/views/operators"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

// secondPage asks for the second factor after the password.
func (s *handlers) secondPage(c *fiber.Ctx) error {
	op, next := web.Operator(c), safeNext(c.Query("next"))
	if op.Gate != access.GiveCode {
		return c.Redirect(next, http.StatusSeeOther)
	}
	return s.sendGiveSecond(c, http.StatusOK, operators.Second{Next: next})
}

func (s *handlers) sendGiveSecond(c *fiber.Ctx, status int, x operators.Second) (err error) {
	if s.passkeys != nil {
		if x.Question, err = s.passkeys.Ask(c.UserContext(), web.Operator(c)); err != nil {
			return err
		}
	}
	return s.Render(c, status, operators.GiveSecond(s.Page(c), x))
}

// giveSecond checks the second factor.
func (s *handlers) giveSecond(c *fiber.Ctx) error {
	op, next := web.Operator(c), safeNext(web.Field(c, "next"))
	if op.Gate != access.GiveCode {
		return c.Redirect(next, http.StatusSeeOther)
	}
	err := s.giveCode(c, op)
	if problem, ok := codeProblem(err); ok {
		return s.sendGiveSecond(c, http.StatusUnprocessableEntity, operators.Second{Next: next, Problem: problem})
	}
	if err != nil {
		return err
	}
	if next == "/" {
		next = s.landing(op)
	}
	return c.Redirect(next, http.StatusSeeOther)
}

// giveCode checks the code of a form. Six digits must not be guessed: attempts are counted as those
// at a password. Errors: those of access.SecondFactors, web.ErrTooMany.
func (s *handlers) giveCode(c *fiber.Ctx, op *access.Operator) error {
	try := access.SignIn{Name: op.Name, Device: "codes of " + op.Name}
	if s.throttle.Try(try) > 0 {
		return web.ErrTooMany
	}
	var recovered bool
	var err error
	if answer := web.Field(c, "passkey_answer"); answer != "" && s.passkeys != nil {
		err = s.passkeys.Give(c.UserContext(), op, c.Cookies(s.CookieName()), web.Field(c, "passkey_sealed"), answer)
	} else {
		recovered, err = s.Second.Give(c.UserContext(), op, c.Cookies(s.CookieName()), web.Field(c, "code"))
	}
	if err != nil {
		return err
	}
	s.throttle.Forgive(try)
	now := s.DB.Now()
	op.SecondAt = &now
	if recovered {
		return s.keepAct(c, ownAct(op, "second.recover"))
	}
	return nil
}

func ownAct(op *access.Operator, action string) audit.Act {
	return audit.Act{Actor: "operator:" + op.Name, Action: action, Object: "operator", ObjectID: op.Name}
}

// codeProblem says what is wrong with a code.
func codeProblem(err error) (problem operators.CodeProblem, ok bool) {
	var clock *access.ClockError
	switch {
	case errors.As(err, &clock):
		return operators.CodeProblem{Text: tClockOff, Off: clock.Off.Abs()}, true
	case errors.Is(err, access.ErrCode):
		return operators.CodeProblem{Text: tWrongCode}, true
	case errors.Is(err, access.ErrCodeUsed):
		return operators.CodeProblem{Text: tUsedCode}, true
	case errors.Is(err, passkey.ErrPasskey):
		return operators.CodeProblem{Text: tWrongPasskey}, true
	}
	return problem, false
}

// Problems of codes.
var (
	tWrongCode = text.Text{
		ZH: "验证码不正确：请输入应用现在显示的六位数字，或一个恢复码。",
		EN: "Wrong code: type the six digits that the app shows now, or a recovery code.",
	}
	tUsedCode = text.Text{ZH: "这个验证码已用过：请等下一个。", EN: "This code was used already: wait for the next one."}
	tClockOff = text.Text{
		ZH: "验证码属于另一时刻：设备的时钟差了约 %d 分钟，请设为自动校时。",
		EN: "The code is right for another time: the clock of the device is off by about %d min. Set it by the network.",
	}
	tSecondRequired = text.Text{ZH: "您的角色必须有两步验证", EN: "your role requires a second factor"}
)

var tCodeNeeded = text.Text{ZH: "请输入验证码：上次两步验证已超过 10 分钟", EN: "type the code of your second factor, which was given more than 10 minutes ago"}

var tSignInAgain = text.Text{ZH: "请先重新登录：上次登录已超过 10 分钟", EN: "sign in again first: the last time was more than 10 minutes ago"}

// fresh checks that the second factor was given within the last 10 minutes, by the code or the passkey of
// the form if need be.
func (s *handlers) fresh(c *fiber.Ctx) error {
	op := web.Operator(c)
	if op.Fresh(s.DB.Now()) {
		return nil
	}
	if op.Issuer != "" {
		return web.Invalid("code", tSignInAgain)
	}
	if web.Field(c, "code") == "" && web.Field(c, "passkey_answer") == "" {
		return web.Invalid("code", tCodeNeeded)
	}
	err := s.giveCode(c, op)
	if problem, ok := codeProblem(err); ok {
		return web.Invalid("code", problem.Text, problem.Args()...)
	}
	return err
}

// afterCode is a handler of what asks for the second factor again.
func (s *handlers) afterCode(next fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if err := s.fresh(c); err != nil {
			return err
		}
		return next(c)
	}
}

// setUpPage shows the second factor of the operator, or how to set one up.
func (s *handlers) setUpPage(c *fiber.Ctx) error {
	return s.sendSetUp(c, http.StatusOK, operators.CodeProblem{}, nil)
}

func (s *handlers) sendSetUp(c *fiber.Ctx, status int, problem operators.CodeProblem, recovery []string) (err error) {
	op := web.Operator(c)
	if op.Issuer != "" {
		return access.ErrProvider
	}
	x := operators.Second{
		Problem: problem, Recovery: recovery, Required: op.Gate == access.SetSecond || s.requiresSecond(op), Since: op.TOTPSince,
	}
	if op.TOTPSince == nil && recovery == nil {
		offer, err := s.Second.Offer(op, web.Field(c, "sealed"))
		if err != nil {
			return err
		}
		x.Offer = offer
		if x.QR, err = operators.NewQR(offer.URL); err != nil {
			return err
		}
	} else if err = s.addPasskeys(c, op, &x); err != nil {
		return err
	} else if x.Left, err = s.Second.RecoveryLeft(c.UserContext(), op.ID); err != nil {
		return err
	}
	return s.Render(c, status, operators.SetUpSecond(s.Page(c), x))
}

func (s *handlers) requiresSecond(op *access.Operator) bool {
	return op.Roles.HasAny(s.Config.RequireTOTP...)
}

// setUpSecond sets the second factor up by its first code, and shows the recovery codes once.
func (s *handlers) setUpSecond(c *fiber.Ctx) error {
	op := web.Operator(c)
	if op.Issuer != "" {
		return access.ErrProvider
	}
	recovery, err := s.Second.SetUp(c.UserContext(), op, c.Cookies(s.CookieName()), web.Field(c, "sealed"), web.Field(c, "code"),
		func(ctx context.Context, tx db.Tx) error { return s.keepIn(ctx, tx, c, ownAct(op, "second.set_up")) })
	if problem, ok := codeProblem(err); ok {
		return s.sendSetUp(c, http.StatusUnprocessableEntity, problem, nil)
	}
	if err != nil {
		return err
	}
	now := s.DB.Now()
	op.TOTPSince, op.SecondAt, op.Gate = &now, &now, ""
	return s.sendSetUp(c, http.StatusOK, operators.CodeProblem{}, recovery)
}

// renewRecovery replaces the recovery codes.
func (s *handlers) renewRecovery(c *fiber.Ctx) error {
	op := web.Operator(c)
	err := s.codeOf(c, op)
	var recovery []string
	if err == nil {
		err = s.DB.Tx(c.UserContext(), func(ctx context.Context, tx db.Tx) (err error) {
			if recovery, err = s.Second.Renew(ctx, tx, op); err != nil {
				return err
			}
			return s.keepIn(ctx, tx, c, ownAct(op, "second.renew"))
		})
	}
	if problem, ok := codeProblem(err); ok {
		return s.sendSetUp(c, http.StatusUnprocessableEntity, problem, nil)
	}
	if err != nil {
		return err
	}
	return s.sendSetUp(c, http.StatusOK, operators.CodeProblem{}, recovery)
}

// removeSecond takes the second factor away, where the role does not require it.
func (s *handlers) removeSecond(c *fiber.Ctx) error {
	op := web.Operator(c)
	if s.requiresSecond(op) {
		return web.Invalid("code", tSecondRequired)
	}
	err := s.codeOf(c, op)
	if err == nil {
		err = s.DB.Tx(c.UserContext(), func(ctx context.Context, tx db.Tx) error {
			if err := access.RemoveSecond(ctx, tx, op); err != nil {
				return err
			}
			return s.keepIn(ctx, tx, c, ownAct(op, "second.remove"))
		})
	}
	if problem, ok := codeProblem(err); ok {
		return s.sendSetUp(c, http.StatusUnprocessableEntity, problem, nil)
	}
	if err != nil {
		return err
	}
	return c.Redirect("/me/second", http.StatusSeeOther)
}

// codeOf checks the code of a form about the second factor itself, however lately one was given.
func (s *handlers) codeOf(c *fiber.Ctx, op *access.Operator) error {
	if op.TOTPSince == nil {
		return access.ErrNoSecond
	}
	return s.giveCode(c, op)
}

// keepIn records what an operator did to their own access.
func (s *handlers) keepIn(ctx context.Context, tx db.Tx, c *fiber.Ctx, a audit.Act) error {
	a.Remote = s.Client(c).String()
	return s.Audit.Write(ctx, tx, a)
}
