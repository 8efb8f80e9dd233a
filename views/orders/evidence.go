package orders

import (
	"context"
	"strconv"

	"backstop/internal/base/text"
	"backstop/internal/console"
	"backstop/internal/evidence"
	"backstop/views/panel"
	"backstop/views/ui"
	"backstop/views/wording"
)

// EvidenceData is one order's story for a dispute.
type EvidenceData struct {
	StoryData
	Evidence *console.Evidence
	File     *evidence.File
	Text     string // the signed file itself
}

// seal says who exported the file and when, and what proves that it is whole.
func (d EvidenceData) seal(p *ui.Page) []ui.Fact {
	return []ui.Fact{
		ui.TextFact(tEvidenceBy, "", wording.Actor(p, d.Evidence.ExportedBy)),
		ui.TextFact(tEvidenceAt, "mono small", d.Evidence.ExportedAt+" · "+d.Evidence.Zone),
		ui.TextFact(tEvidenceSum, "mono small wrap", d.File.SHA256),
		ui.TextFact(tEvidenceSign, "mono small wrap", d.File.Signature.Algorithm+" "+d.File.Signature.Value),
		ui.TextFact(tEvidenceKey, "mono small wrap", d.File.Signature.KeyID+" · "+d.File.Signature.PublicKey),
		ui.TextFact(tEvidenceChain, "mono small wrap", strconv.FormatInt(d.Evidence.AuditRows, 10)+" · "+d.Evidence.AuditHead),
	}
}

// facts are the order and its entries.
func (d EvidenceData) facts() []ui.Fact {
	facts := []ui.Fact{
		ui.TextFact(text.Merchant, "", d.Merchant.Code+" · "+d.Merchant.Name),
		ui.TextFact(text.Supplier, "", d.Supplier.Code+" · "+d.Supplier.Name),
		ui.TextFact(text.OutTradeNo, "mono small wrap", d.Order.OutTradeNo),
		ui.TextFact(text.TradeNo, "mono small wrap", d.Order.SupplierTradeNo),
		ui.TextFact(text.Subject, "wrap", d.Order.Subject),
		ui.MoneyFact(text.Payable, d.Order.Amount, d.Order.Currency),
		ui.MoneyFact(text.PaidSum, d.Order.PaidAmount, d.Order.Currency),
	}
	for _, t := range d.Transfers {
		accounts, ref := ui.Styled("mono small", t.Debit+" → "+t.Credit), ui.Styled("mono small muted", t.Ref)
		facts = append(facts, ui.BodyFact(text.Ledger, panel.Spaced(accounts, ui.Money(t.Amount, t.Currency), ref)).As("wrap"))
	}
	return facts
}

// printed is the story for paper.
func printed(ctx context.Context, p *ui.Page, d EvidenceData) EvidenceData {
	d.Print = true
	d.StoryData = fitted(ctx, p, d.StoryData)
	return d
}

// Texts of this page.
var (
	tBigFile     = text.Text{ZH: "文件共 %s 字节，请下载查看。", EN: "The file has %s bytes; download it to read it."}
	tEvidenceHow = text.Text{
		ZH: "一笔订单的全部记录，已签名。导出已写入审计。",
		EN: "Everything recorded about one order, signed. The audit records this export.",
	}
	tEvidenceJSON  = text.Text{ZH: "下载签名文件 JSON", EN: "Download the signed file (JSON)"}
	tEvidenceSeal  = text.Text{ZH: "签名", EN: "Seal"}
	tEvidenceBy    = text.Text{ZH: "导出人", EN: "Exported by"}
	tEvidenceAt    = text.Text{ZH: "导出时间", EN: "Exported at"}
	tEvidenceSum   = text.Text{ZH: "SHA-256", EN: "SHA-256"}
	tEvidenceSign  = text.Text{ZH: "签名值", EN: "Signature"}
	tEvidenceKey   = text.Text{ZH: "公钥", EN: "Public key"}
	tEvidenceChain = text.Text{ZH: "审计链末端", EN: "Head of the audit chain"}
	tEvidenceFile  = text.Text{ZH: "签名文件", EN: "The signed file"}
	tEvidenceCheck = text.Text{
		ZH: "存成文件后，任何人都可以离线核对：backstop verify-evidence FILE。公钥在控制台地址的 /evidence-keys。",
		EN: "Anybody can check the saved file offline: backstop verify-evidence FILE. The public keys are at /evidence-keys on this console's address.",
	}
)

const fileRoom = 256 << 10 // of the signed file on its page
