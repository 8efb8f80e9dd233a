package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"backstop/internal/app"
	"backstop/internal/base/money"
	"backstop/internal/callback"
	"backstop/internal/settings/apply"
	"backstop/internal/supplier"
)

type supplierCmd struct {
	Try tryCmd `cmd:"" help:"Say what a stored callback is and how it would be answered, with the suppliers that the apply file --config declares; exit 1 if it would be refused."`
}

type tryCmd struct {
	File     string    `arg:"" help:"The callback: an HTTP request as it was sent, or a curl line; - = standard input." type:"path"`
	Supplier string    `required:"" help:"Code of the supplier." placeholder:"CODE"`
	At       time.Time `help:"When it was received (default: now): signed times are checked against it." placeholder:"TIME"`
	JSON     bool      `help:"Write JSON."`
}

// maxStored bounds a stored callback in bytes: a body of the usual limit, escaped.
const maxStored = 1 << 20

// trial is what is found out about a callback.
type trial struct {
	Supplier string        `json:"supplier"`
	Kind     string        `json:"kind"`
	Taken    bool          `json:"taken"`
	Outcome  string        `json:"outcome,omitempty"` // why it is refused
	Status   int           `json:"status"`            // of the answer
	Steps    []trialStep   `json:"steps"`
	Content  *trialContent `json:"content"` // null = it is not authentic
}

type trialStep struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

type trialContent struct {
	OrderNo   string            `json:"order_no"`
	TradeNo   string            `json:"trade_no"`
	Status    supplier.Status   `json:"status"`
	RawStatus string            `json:"raw_status"`
	Amount    int64             `json:"amount"`
	Currency  string            `json:"currency"`
	Account   map[string]string `json:"account"`
	RefundNo  string            `json:"refund_no,omitempty"`
}

// Run needs no installation. --config, which other commands read their settings from, is the apply
// file here.
func (t *tryCmd) Run(g *globals, std streams) error {
	if g.Config == "" {
		return usageError{errors.New("--config is missing: give the apply file that declares the supplier")}
	}
	file, err := apply.ReadFile(g.Config)
	if err != nil {
		return usageError{err}
	}
	s, err := apply.Supplier(app.Kinds(), file, t.Supplier)
	if err != nil {
		return usageError{err}
	}
	req, err := t.read(std.in)
	if err != nil {
		return usageError{err}
	}
	if req.ReceivedAt = t.At; t.At.IsZero() {
		req.ReceivedAt = time.Now()
	}
	found := newTrial(s, callback.Try(s, req))
	if t.JSON {
		err = json.NewEncoder(std.out).Encode(found)
	} else {
		err = found.write(std.out)
	}
	if err == nil && !found.Taken {
		err = errViolations
	}
	return err
}

func (t *tryCmd) read(in io.Reader) (*supplier.Request, error) {
	from := in
	if t.File != "-" {
		f, err := os.Open(t.File)
		if err != nil {
			return nil, fmt.Errorf("read the callback: %w", err)
		}
		defer f.Close()
		from = f
	}
	text, err := io.ReadAll(io.LimitReader(from, maxStored+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the callback: %w", err)
	case len(text) > maxStored:
		return nil, fmt.Errorf("the callback is larger than %d KiB: is it the right file?", maxStored>>10)
	}
	return callback.ReadText(t.Supplier, string(text))
}

func newTrial(s supplier.Entry, f callback.Finding) trial {
	t := trial{
		Supplier: s.Code, Kind: s.Kind, Taken: f.Status/100 == 2, Outcome: f.Outcome, Status: f.Status, Steps: make([]trialStep, len(f.Steps)),
	}
	texts := app.Texts()
	for i, step := range f.Steps {
		t.Steps[i] = trialStep{step.Name, step.OK, step.Text(texts)}
	}
	if c := f.Content; c != nil {
		t.Content = &trialContent{
			OrderNo: c.OrderRef, TradeNo: c.TradeNo, Status: c.Status, RawStatus: c.RawStatus, Amount: c.Amount, Currency: c.Currency,
			Account: c.Identity, RefundNo: c.RefundNo,
		}
	}
	return t
}

func (t *trial) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, step := range t.Steps {
		mark := "ok"
		if !step.OK {
			mark = "FAILED"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", step.Name, mark, step.Detail)
	}
	if c := t.Content; c != nil {
		fmt.Fprintf(w, "it says\t%s\torder %s, trade %s, %s %s (%s)\n", c.Status, c.OrderNo, c.TradeNo, money.Format(c.Amount, c.Currency),
			c.Currency, c.RawStatus)
	}
	if t.Taken {
		fmt.Fprintf(w, "answer\t%d\ttaken: whether it fits an order, only a server can say\n", t.Status)
	} else {
		fmt.Fprintf(w, "answer\t%d\trefused: %s\n", t.Status, t.Outcome)
	}
	return w.Flush()
}
