// Package email tells people of merchants by mail: one mail for each event, with
// its fields as text and the frozen body attached. It is for those who want to
// read; a mail that was handed over is no proof that a program has acted.
//
// Credentials: "server" (smtp://host[:587] with STARTTLS, smtps://host[:465]),
// "from", and where the server wants them "username" and "password". Nothing is
// said before the connection is encrypted.
package email

import (
	"context"
	"errors"
	"fmt"
	"net/textproto"
	"time"

	"backstop/internal/base/egress"
	"backstop/internal/notify"
	"backstop/internal/notify/outcome"

	"github.com/wneessen/go-mail"
)

// Channel sends mails. It holds no connections and is safe for concurrent use.
type Channel struct{ client *egress.Client }

var _ notify.Channel = (*Channel)(nil)

// New returns a channel that calls out through client.
func New(client *egress.Client) *Channel { return &Channel{client: client} }

// Send hands one mail to the server. Success means that the server has taken it
// for every recipient.
func (c *Channel) Send(parent context.Context, m notify.Message) notify.Result {
	start := time.Now()
	result := c.attempt(parent, m)
	result.Error = outcome.Hide(result.Error, map[string]string{"u": m.Credentials["username"], "p": m.Credentials["password"]})
	result.Took = time.Since(start)
	return result
}

func (c *Channel) attempt(parent context.Context, m notify.Message) notify.Result {
	if problem := outcome.Unsendable(m); problem != "" {
		return notify.Result{Class: notify.Internal, Error: problem}
	}
	recipients, err := parse(m.URL)
	if err != nil {
		class, text := outcome.Unusable(err)
		return notify.Result{Class: class, Error: text}
	}
	via, err := serverOf(m.Credentials)
	if err != nil {
		return notify.Result{Class: notify.Internal, Error: outcome.OneLine(err.Error())}
	}
	ctx, cancel := context.WithTimeout(parent, m.Timeout)
	defer cancel()
	msg, shown, err := compose(m, via.from, recipients)
	result := notify.Result{RequestHeader: shown}
	if err != nil {
		result.Class, result.Error = notify.Internal, outcome.OneLine(err.Error())
		return result
	}
	dial := &dialer{out: c.client, via: via, certificate: m.ClientCert}
	err = deliver(ctx, dial, m.Credentials, msg)
	result.RemoteAddr = dial.remote
	if err == nil {
		result.Class = notify.OK
		return result
	}
	if dial.err != nil && parent.Err() == nil {
		result.RemoteAddr = outcome.Dialled(dial.err)
		err = dial.err
	}
	result.Class, result.Error = classify(parent, ctx, err)
	return result
}

// deliver speaks to the server. What the server says after it has taken the mail
// changes nothing any more.
func deliver(ctx context.Context, dial *dialer, credentials map[string]string, msg *mail.Msg) error {
	options := []mail.Option{
		mail.WithPort(dial.via.port), mail.WithDialContextFunc(dial.connect), mail.WithTLSConfig(dial.out.TLSConfig(dial.via.host, dial.certificate)),
		mail.WithHELO(dial.via.domain), mail.WithoutNoop(), mail.WithTLSPolicy(mail.TLSMandatory),
	}
	if dial.via.scheme == "smtps" {
		// Our own dial has shaken hands already. By WithSSL the library would believe
		// that a dialer of ours did not, and offer no login.
		options = append(options, mail.WithTLSPolicy(mail.TLSOpportunistic))
	}
	if end, ok := ctx.Deadline(); ok {
		// The context ends it; the library's own bound comes later, so that there is
		// one who says that the time is over.
		options = append(options, mail.WithTimeout(max(time.Until(end), 0)+time.Second))
	}
	if user := credentials["username"]; user != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(user), mail.WithPassword(credentials["password"]))
	}
	client, err := mail.NewClient(dial.via.host, options...)
	if err != nil {
		return err
	}
	// The library asks no context once it is connected.
	stop := context.AfterFunc(ctx, dial.cut)
	defer stop()
	defer dial.cut()
	if err := client.DialWithContext(ctx); err != nil {
		return err
	}
	if err := client.Send(msg); err != nil {
		return err
	}
	_ = client.Close()
	return nil
}

func classify(parent, ctx context.Context, err error) (notify.Class, string) {
	var said *textproto.Error
	var send *mail.SendError
	switch {
	case parent.Err() != nil, ctx.Err() != nil:
	case errors.As(err, &said):
		return notify.Refused, outcome.OneLine(fmt.Sprintf("the server says: %d %s", said.Code, said.Msg))
	case errors.As(err, &send) && send.ErrorCode() > 0:
		return notify.Refused, outcome.OneLine("the server says: " + send.Error())
	}
	return outcome.Of(parent, ctx, false, err)
}
