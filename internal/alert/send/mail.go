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
	msg := mail.NewMsg()
	if err := msg.FromFormat(c.FromName, c.FromAddress); err != nil {
		return fmt.Errorf("from: %w", err)
	}
	if err := msg.To(c.ToAddresses...); err != nil {
		return fmt.Errorf("to: %w", err)
	}
	msg.Subject(title)
	msg.SetMessageIDWithValue("backstop-" + strconv.FormatInt(id, 10) + c.FromAddress[strings.LastIndex(c.FromAddress, "@"):])
	msg.SetDate()
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: prevents automatic replies
	msg.SetBodyString(mail.TypeTextPlain, body)
	msg.AddAlternativeString(mail.TypeTextHTML, html)
	client, err := mail.NewClient(c.Host, t.options()...)
	if err != nil {
		return err
	}
	return client.DialAndSendWithContext(ctx, msg)
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
