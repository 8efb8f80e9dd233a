// The commands of those who integrate: test mode, listen and trigger.

package cli

import (
	"context"
	"errors"
	"fmt"

	"backstop/internal/app"
	"backstop/internal/base/config"
	"backstop/internal/command/listen"
	"backstop/internal/command/trigger"
	"backstop/internal/merchant"
	"backstop/internal/testmode"
)

type testmodeCmd struct {
	Key struct {
		Merchant string `arg:"" help:"The code of a merchant."`
	} `cmd:"" help:"Give a merchant a key of test mode; it is printed once, and replaces the one before."`
}

func (t *testmodeCmd) Run(ctx context.Context, g *globals, std streams) error {
	c, err := g.load()
	if err != nil {
		return err
	}
	test, err := app.TestConfig(c)
	if err != nil {
		return err
	}
	name, err := merchantName(ctx, c, t.Key.Merchant)
	if err != nil {
		return err
	}
	env, done, err := applyEnv(ctx, test, std, keysToApply)
	if err != nil {
		return err
	}
	defer done()
	given, err := testmode.Issue(ctx, env, t.Key.Merchant, name, std.err)
	if given.APIKey == "" {
		return err
	}
	fmt.Fprintf(std.out, "API key: %s\n", given.APIKey)
	if given.SigningSecret != "" {
		fmt.Fprintf(std.out, "signing secret: %s\n", given.SigningSecret)
	}
	return err
}

// merchantName returns the name of a live merchant.
func merchantName(ctx context.Context, c config.Config, code string) (string, error) {
	d, err := openReadOnly(ctx, c)
	if err != nil {
		return "", err
	}
	defer d.Close()
	var names []string
	if err := d.Read.NewRaw("SELECT name FROM merchants WHERE code = ?", code).Scan(ctx, &names); err != nil {
		return "", fmt.Errorf("look for the merchant: %w", err)
	}
	if len(names) == 0 {
		return "", fmt.Errorf("there is no merchant %s", code)
	}
	return names[0], nil
}

// errLiveKey refuses the key of a live merchant, before anything is sent.
var errLiveKey = errors.New("--key must be a key of test mode, which begins with " + merchant.TestKeyPrefix +
	": make one by backstop testmode key")

type listenCmd struct {
	Key     string `required:"" help:"API key of test mode." placeholder:"KEY"`
	Forward string `required:"" help:"Where notifications are posted, on this machine." placeholder:"URL"`
	Secret  string `help:"Signing secret of the merchant, to sign what is posted." placeholder:"SECRET"`
	URL     string `default:"http://127.0.0.1:8080" help:"The server." placeholder:"URL"`
}

func (l *listenCmd) Run(ctx context.Context, std streams) error {
	if !merchant.IsTestKey(l.Key) {
		return usageError{errLiveKey}
	}
	err := listen.Run(ctx, listen.Options{URL: l.URL, Key: l.Key, Forward: l.Forward, Secret: l.Secret, Out: std.out})
	if errors.Is(err, listen.ErrForward) || errors.Is(err, listen.ErrSecret) || errors.Is(err, listen.ErrURL) {
		return usageError{err}
	}
	return err
}

type triggerCmd struct {
	Event    string `arg:"" help:"order.paid, order.failed, order.closed, refund.succeeded or refund.failed."`
	Key      string `required:"" help:"API key of test mode." placeholder:"KEY"`
	Amount   int64  `default:"1999" help:"In minor units."`
	Currency string `default:"CNY" help:"As in ISO 4217."`
	URL      string `default:"http://127.0.0.1:8080" help:"The server." placeholder:"URL"`
}

func (t *triggerCmd) Run(ctx context.Context, std streams) error {
	if !merchant.IsTestKey(t.Key) {
		return usageError{errLiveKey}
	}
	err := trigger.Run(ctx, trigger.Options{
		URL: t.URL, Key: t.Key, Event: t.Event, Amount: t.Amount, Currency: t.Currency, Out: std.out,
	})
	if errors.Is(err, trigger.ErrEvent) {
		return usageError{err}
	}
	return err
}
