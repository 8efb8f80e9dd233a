package console

import (
	"context"
	"net/mail"
	"strings"
	"time"

	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/text"
	"backstop/internal/base/textlimit"
	"backstop/internal/operator"
	"backstop/views/operators"
	"backstop/web"

	"github.com/gofiber/fiber/v2"
)

const (
	// mailTime bounds the mail, so that the link is shown within the time of a request.
	mailTime = 6 * time.Second
	// maxAddress is the length of an address (RFC 5321, 4.5.3.1.3, without its brackets).
	maxAddress = 254
)

var tNotAnAddress = text.Text{ZH: "请填一个邮箱地址，例如 li@example.com", EN: "use one mail address, such as li@example.com"}

// mailAddress returns the mail address of a form; "" = none.
func (s *handlers) mailAddress(c *fiber.Ctx) (string, error) {
	to := strings.TrimSpace(web.Field(c, "email"))
	if to == "" || s.Mail == nil {
		return "", nil
	}
	a, err := mail.ParseAddress(to)
	if err != nil || a.Address != to || len(to) > maxAddress || strings.ContainsAny(to, "\r\n") {
		return "", web.Invalid("email", tNotAnAddress)
	}
	return to, nil
}

// mailInvitation mails a link to whom it is for, if the form has an address, and notes in it what
// came of it. The link exists either way: a mail that fails is no error.
func (s *handlers) mailInvitation(c *fiber.Ctx, link *operators.InviteLink) {
	to, err := s.mailAddress(c)
	if err != nil || to == "" {
		return
	}
	link.To = to
	ctx, cancel := context.WithTimeout(c.UserContext(), mailTime)
	defer cancel()
	title, body := operators.InvitationMail(link, s.Config.Timezone)
	if err := s.Mail(ctx, to, title, body); err != nil {
		link.NotMailed = textlimit.Clip(err.Error(), 200)
		s.Log.Warn("an invitation was not mailed", "operator", link.Name, "error", link.NotMailed, "request_id", web.RequestID(c))
		return
	}
	err = s.DB.Tx(c.UserContext(), func(ctx context.Context, tx db.Tx) error {
		return s.keepIn(ctx, tx, c, audit.Act{
			Actor: s.Actor(c).Name, Action: "operator.mail_invitation", Object: operator.Object, ObjectID: link.Name,
			Params: map[string]any{"mailed_to": to},
		})
	})
	if err != nil {
		s.Log.Error("a mailed invitation is not in the audit", "operator", link.Name, "error", db.ErrorText(err))
	}
}
