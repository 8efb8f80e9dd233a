package send

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"backstop/internal/alert"

	"github.com/nicholas-fedor/shoutrrr/pkg/services/email/smtp"
	"github.com/wneessen/go-mail"
)

// mailTarget is a target that is a mailbox. Texts are sent as to every target; a mail with HTML is
// written here, since the library has no HTML with a text beside it and no stable Message-ID.
type mailTarget struct {
	*target
	config smtp.Config
}

// mailTimeout bounds each wait for the server.
const mailTimeout = 10 * time.Second

func newMailTarget(t *target, u *url.URL) (*mailTarget, error) {
	m := &mailTarget{target: t, config: smtp.Config{
		Port: 25, UseStartTLS: true, ClientHost: "localhost", Auth: smtp.AuthTypes.Unknown, Encryption: smtp.EncMethods.Auto,
	}}
	if err := m.config.SetURL(u); err != nil {
		return nil, err
	}
	m.config.FixEmailTags()
	return m, nil
}

// SendMail implements alert.MailTarget.
func (t *mailTarget) SendMail(ctx context.Context, id int64, title, body, html string) error {
	err := t.send(ctx, id, title, body, html)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return errLate
	}
	return errors.New(t.clean(err.Error()))
}

func (t *mailTarget) send(ctx context.Context, id int64, title, body, html string) error {
	c := &t.config
	msg, err := t.message(c.ToAddresses, title, body)
	if err != nil {
		return err
	}
	msg.SetMessageIDWithValue("backstop-" + strconv.FormatInt(id, 10) + c.FromAddress[strings.LastIndex(c.FromAddress, "@"):])
	msg.AddAlternativeString(mail.TypeTextHTML, html)
	return t.deliver(ctx, msg)
}

// message returns a mail with a text.
func (t *mailTarget) message(to []string, title, body string) (*mail.Msg, error) {
	msg := mail.NewMsg()
	if err := msg.FromFormat(t.config.FromName, t.config.FromAddress); err != nil {
		return nil, fmt.Errorf("from: %w", err)
	}
	if err := msg.To(to...); err != nil {
		return nil, fmt.Errorf("to: %w", err)
	}
	msg.Subject(title)
	msg.SetMessageID()
	msg.SetDate()
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: prevents automatic replies
	msg.SetBodyString(mail.TypeTextPlain, body)
	return msg, nil
}

func (t *mailTarget) deliver(ctx context.Context, msg *mail.Msg) error {
	client, err := mail.NewClient(t.config.Host, t.options()...)
	if err != nil {
		return err
	}
	return client.DialAndSendWithContext(ctx, msg)
}

// Mailer sends one text to one address, once. Its error is one line without the URL.
type Mailer func(ctx context.Context, to, title, body string) error

// NewMailer returns a Mailer that uses the server of the first mailbox; nil = there is none.
func NewMailer(targets []alert.Target) Mailer {
	for _, target := range targets {
		t, ok := target.(*mailTarget)
		if !ok {
			continue
		}
		return func(ctx context.Context, to, title, body string) error {
			msg, err := t.message([]string{to}, title, body)
			if err == nil {
				err = t.deliver(ctx, msg)
			}
			if err != nil && ctx.Err() != nil {
				return errLate
			}
			if err != nil {
				return errors.New(t.clean(err.Error()))
			}
			return nil
		}
	}
	return nil
}

// options are those of the URL, as the library understands them for texts.
func (t *mailTarget) options() []mail.Option {
	c := &t.config
	policy := mail.TLSOpportunistic
	switch {
	case !c.UseStartTLS || c.Encryption == smtp.EncMethods.None:
		policy = mail.NoTLS
	case c.RequireStartTLS || c.Encryption == smtp.EncMethods.ExplicitTLS:
		policy = mail.TLSMandatory
	}
	options := []mail.Option{
		mail.WithPort(int(c.Port)), mail.WithHELO(c.ClientHost), mail.WithTimeout(mailTimeout), mail.WithTLSPolicy(policy),
		mail.WithoutNoop(),
		mail.WithTLSConfig(&tls.Config{
			ServerName: c.Host, MinVersion: tls.VersionTLS12,
			InsecureSkipVerify: c.SkipTLSVerify,
		}), //nolint:gosec // only if the URL says so
	}
	const wrapped = 465
	if c.Encryption == smtp.EncMethods.ImplicitTLS || c.Encryption == smtp.EncMethods.Auto && c.Port == wrapped {
		options = append(options, mail.WithSSL())
	}
	if c.Username != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(c.Username),
			mail.WithPassword(c.Password))
	}
	return options
}
