package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"backstop/internal/app"
	"backstop/internal/base/config"
	"backstop/internal/base/db"
	"backstop/internal/base/seal"
	"backstop/internal/order"
	"backstop/internal/settings"
	"backstop/internal/simulator"
	"backstop/internal/supplier"
)

type callbackCmd struct {
	Supplier string `arg:"" help:"Code of a configured supplier."`
	Order    string `required:"" help:"The order that it reports." placeholder:"NO"`
	Amount   int64  `help:"Amount in minor units (default: the order's)." placeholder:"N"`
	Status   string `enum:"paid,failed,closed" default:"paid" help:"What it reports: paid, failed or closed."`
	URL      string `help:"The server, on this machine (default: the one of BACKSTOP_LISTEN)." placeholder:"URL"`
}

// maxCallbackAnswer bounds what is printed of the answer in bytes.
const maxCallbackAnswer = 4 << 10

// Run sends a callback as the supplier would. It reaches a server on this machine only, and none
// of an installation for production: it makes money that nobody paid.
func (c *callbackCmd) Run(ctx context.Context, g *globals, std streams) error {
	conf, err := g.load()
	if err != nil {
		return err
	}
	if err := c.check(&conf); err != nil {
		return usageError{err}
	}
	req, err := c.sign(ctx, conf)
	if err != nil {
		return err
	}
	target := strings.TrimSuffix(c.URL, "/") + "/callback/" + c.Supplier
	if req.RawQuery != "" {
		target += "?" + req.RawQuery
	}
	out, err := http.NewRequestWithContext(ctx, req.Method, target, bytes.NewReader(req.Body))
	if err != nil {
		return fmt.Errorf("--url: %w", err)
	}
	out.Header = req.Header
	resp, err := simulator.LoopbackClient().Do(out)
	if err != nil {
		return fmt.Errorf("no server answers: start it first (backstop serve), or give --url: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxCallbackAnswer))
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	fmt.Fprintf(std.out, "%s\n%s\n", resp.Status, strings.TrimSpace(string(body)))
	if resp.StatusCode/100 != 2 {
		return errViolations // the answer says why
	}
	return nil
}

// check refuses what is not a trial, and fills in the server.
func (c *callbackCmd) check(conf *config.Config) (err error) {
	if conf.Environment == "production" {
		return errors.New("BACKSTOP_ENVIRONMENT is production: callbacks are made for trials only, since nobody has paid; " +
			"use another installation")
	}
	if c.Amount < 0 {
		return errors.New("--amount must not be negative")
	}
	if c.URL == "" {
		if c.URL, err = overLoopback(conf.Listen); err != nil {
			return err
		}
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || !onThisMachine(u.Hostname()) {
		return fmt.Errorf("--url %q: callbacks are sent to this machine only: write http://127.0.0.1:8080", c.URL)
	}
	return nil
}

// sign makes the callback with the stored settings.
func (c *callbackCmd) sign(ctx context.Context, conf config.Config) (*supplier.Request, error) {
	d, err := openReadOnly(ctx, conf)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	keys, err := app.KeysToRead(conf)
	if err != nil {
		return nil, err
	}
	row, err := settings.SupplierByCode(ctx, d.Read, c.Supplier)
	if err != nil {
		return nil, err
	}
	report, err := c.report(ctx, d)
	if err != nil {
		return nil, err
	}
	req, err := signAs(*row, keys, report)
	if errors.Is(err, supplier.ErrSupplierKey) {
		return nil, fmt.Errorf("supplier %s (%s): %w: try it with backstop simulate, whose suppliers have keys of their own", row.Code,
			row.Kind, err)
	}
	if err != nil {
		return nil, fmt.Errorf("supplier %s: %w", row.Code, err)
	}
	return req, nil
}

func signAs(row settings.SupplierRow, keys *seal.Keyring, r supplier.Report) (*supplier.Request, error) {
	kind, err := app.Kinds().Find(row.Kind)
	if err != nil {
		return nil, err
	}
	if kind.Sign == nil {
		return nil, supplier.ErrSupplierKey
	}
	plain, err := settings.OpenConfig(app.Kinds(), keys, row)
	if err != nil {
		return nil, err
	}
	return kind.Sign(plain, r)
}

// report is what the callback says: about an order, or with an amount about one that does not exist.
func (c *callbackCmd) report(ctx context.Context, d *db.DB) (supplier.Report, error) {
	r := supplier.Report{
		OrderRef: c.Order, TradeNo: "TRIAL" + c.Order, Amount: c.Amount, Currency: "CNY", Status: supplier.Status(c.Status), At: time.Now(),
	}
	o, err := order.ByNo(ctx, d.Read, c.Order)
	switch {
	case errors.Is(err, order.ErrNotFound) && c.Amount == 0:
		return r, fmt.Errorf("there is no order %s: give --amount to report one that does not exist", c.Order)
	case errors.Is(err, order.ErrNotFound):
		return r, nil
	case err != nil:
		return r, err
	}
	r.Currency = o.Currency
	if r.Amount == 0 {
		r.Amount = o.Amount
	}
	return r, nil
}
