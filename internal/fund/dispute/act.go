package dispute

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/invalid"
	"backstop/internal/base/text"

	"github.com/uptrace/bun"
)

// EvidenceAct is the audit name of recording evidence.
const EvidenceAct = "dispute.evidence"

// Limits of evidence.
const (
	maxEvidenceURL = 2048 // bytes
	maxEvidence    = 100  // per dispute
)

type evidence struct {
	Text string `json:"text" kind:"text" min:"8" max:"4000" required:"true" says:"must have 8 to 4000 characters" says_zh:"请填写 8 到 4000 个字"`
	URL  string `json:"url" max:"2048"`
}

// Acts records evidence about the dispute Ref.ID, which is answered from then on. Nothing is
// sent to the supplier: evidence reaches it through its own pages.
func (m *Machine) Acts() []act.Kind {
	return []act.Kind{{
		Name: EvidenceAct, Object: "dispute", Permission: access.NoteExceptions, NoReason: true,
		Params: act.ParamsOf(evidence.check), Load: loadDisputes,
		Do: m.addEvidence,
	}}
}

var (
	tEvidenceURL = text.Text{
		ZH: "请填不含密码的 http 或 https 地址，最多 %d 字节",
		EN: "must be an http or https address without a password, at most %d bytes",
	}
	tEvidenceFull = text.Text{
		ZH: "该争议已有 %d 条证据：其余的请放在一个地址上",
		EN: "the dispute has %d records already: put the rest behind one address",
	}
)

func (e evidence) check() error {
	if strings.ContainsFunc(e.Text, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) {
		return &act.FieldError{Field: "text", Problem: "use no control characters but line breaks"}
	}
	u, err := url.Parse(e.URL)
	if e.URL != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil ||
		len(e.URL) > maxEvidenceURL) {
		return invalid.Field("url", tEvidenceURL, maxEvidenceURL)
	}
	return nil
}

func loadDisputes(ctx context.Context, q bun.IDB, refs []act.Ref) (all []act.Subject, err error) {
	for _, r := range refs {
		d, err := ByNo(ctx, q, r.ID)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, act.Subject{
			Row: d.ID, ID: d.DisputeNo, Version: d.Version, MerchantID: d.MerchantID, SupplierID: d.SupplierID, OrderNo: d.OrderNo,
			Amount: d.Amount, Currency: d.Currency, Value: d,
		})
	}
	return all, nil
}

// addEvidence stores the evidence; the first of an open dispute answers it. Evidence about a
// dispute that has ended is stored too, for the record.
func (m *Machine) addEvidence(ctx context.Context, tx db.Tx, in act.Input, subjects []act.Subject) ([]act.Outcome, error) {
	outs := make([]act.Outcome, len(subjects))
	for i, s := range subjects {
		e := in.Params.(evidence)
		x := m.begin(tx)
		if err := x.lock(ctx, "dp.id = ?", s.Row); err != nil {
			return nil, err
		}
		it := x.items[0]
		var n int
		if err := tx.NewRaw("SELECT count(*) FROM dispute_evidence WHERE dispute_id = ?", s.Row).Scan(ctx, &n); err != nil {
			return nil, fmt.Errorf("count the evidence about a dispute: %w", err)
		}
		if n >= maxEvidence {
			outs[i].Err = invalid.Field("text", tEvidenceFull, maxEvidence)
			continue
		}
		it.cause.Actor = in.By.Name
		if Moves.Can(it.d.Status, Answered) {
			it.d.Status, it.passed = Answered, []Status{Answered}
		}
		x.W.Insert(&[]Evidence{{
			ID: m.DB.NewID(), DisputeID: it.d.ID, Actor: in.By.Name, Text: e.Text, URL: e.URL,
			CreatedAt: m.DB.Now(),
		}}, "")
		if err := x.book(); err != nil {
			return nil, err
		}
		if err := x.Send(ctx); err != nil {
			return nil, err
		}
		outs[i].Details = map[string]any{"text": e.Text, "url": e.URL, "status": it.d.Status}
	}
	return outs, nil
}
