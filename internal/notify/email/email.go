// Package email sends notifications by mail: one mail per event or digest, with the fields as
// text and the frozen bodies attached. It is meant for human readers: a delivered mail does not
// prove that a program has processed it.
//
// Credentials: "server" (smtp://host[:587] with STARTTLS, smtps://host[:465]), "from", and
// "username" and "password" if the server requires them. Nothing is sent before the connection
// is encrypted.
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

// Send sends one mail to the server. Success means that the server has accepted it for every
// recipient.
func (c *Channel) Send(ctx context.Context, m notify.Message) notify.Result {
	secrets := map[string]string{"u": m.Credentials["username"], "p": m.Credentials["password"]}
	return outcome.Send(ctx, m, secrets, func(ctx context.Context) notify.Result { return c.attempt(ctx, m) })
}

func (c *Channel) attempt(ctx context.Context, m notify.Message) notify.Result {
	recipients, err := parse(m.URL)
	if err != nil {
		return outcome.Unusable(err)
	}
	via, err := serverOf(m.Credentials)
	if err != nil {
		return outcome.Internal(err)
	}
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
	if dial.err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		result.RemoteAddr = outcome.Dialled(dial.err)
		err = dial.err
	}
	result.Class, result.Error = classify(ctx, err)
	return result
}

// deliver sends a mail. Errors after the server has accepted it are ignored.
func deliver(ctx context.Context, dial *dialer, credentials map[string]string, msg *mail.Msg) error {
	options := []mail.Option{
		mail.WithPort(dial.via.port), mail.WithDialContextFunc(dial.connect),
		mail.WithTLSConfig(dial.out.TLSConfig(dial.via.host, dial.certificate)),
		mail.WithHELO(dial.via.domain), mail.WithoutNoop(), mail.WithTLSPolicy(mail.TLSMandatory),
	}
	if dial.via.scheme == "smtps" {
		// Our own dialer has done the handshake. With WithSSL the library would assume a plain
		// connection from a custom dialer and offer no login.
		options = append(options, mail.WithTLSPolicy(mail.TLSOpportunistic))
	}
	if end, ok := ctx.Deadline(); ok {
		// ctx ends it; the library's own timeout comes later, so that only one of them
		// determines the class.
		options = append(options, mail.WithTimeout(max(time.Until(end), 0)+time.Second))
	}
	if user := credentials["username"]; user != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(user),
			mail.WithPassword(credentials["password"]))
	}
	client, err := mail.NewClient(dial.via.host, options...)
	if err != nil {
		return err
	}
	// The library does not use the context once it is connected.
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

func classify(ctx context.Context, err error) (notify.Class, string) {
	var reply *textproto.Error
	var send *mail.SendError
	switch {
	case ctx.Err() != nil:
	case errors.As(err, &reply):
		return notify.Refused, outcome.OneLine(fmt.Sprintf("the server says: %d %s", reply.Code, reply.Msg))
	case errors.As(err, &send) && send.ErrorCode() > 0:
		return notify.Refused, outcome.OneLine("the server says: " + send.Error())
	}
	return outcome.Of(ctx, false, err)
}
