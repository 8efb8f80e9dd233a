package dispute

import "backstop/internal/notify"

// View is the dispute as merchants see it in notifications, and operators in answers (contract
// §8). Fields without a value are null.
type View struct {
	DisputeNo string  `json:"dispute_no"`
	OrderNo   *string `json:"order_no"`
	Merchant  *string `json:"merchant"`
	Amount    int64   `json:"amount"`
	Currency  string  `json:"currency"`
	Reason    *string `json:"reason"`
	DueBy     *string `json:"due_by"`
	Status    string  `json:"status"`
	Version   int64   `json:"version"`
}

// ViewOf returns the view of a dispute.
func (m *Machine) ViewOf(d *Dispute) View {
	v := View{
		DisputeNo: d.DisputeNo, OrderNo: notify.OrNull(d.OrderNo), Amount: d.Amount, Currency: d.Currency, Reason: notify.OrNull(d.Reason),
		DueBy: notify.StampOr(d.DueBy), Status: string(d.Status), Version: d.Version,
	}
	if d.MerchantID != 0 {
		if code, err := m.MerchantCode(m.DB.Read, d.MerchantID); err == nil {
			v.Merchant = &code
		}
	}
	return v
}

// AdminView is the dispute with the fields that only operators see.
type AdminView struct {
	View
	Supplier          *string `json:"supplier"`
	SupplierDisputeNo string  `json:"supplier_dispute_no"`
	SupplierTradeNo   *string `json:"supplier_trade_no"`
	Fee               int64   `json:"fee"`
	FeeReturned       int64   `json:"fee_returned"`
	Withdrawn         bool    `json:"withdrawn"`
	Reinstated        int64   `json:"reinstated"`
	Reserved          int64   `json:"reserved"`
	Exceeds           int64   `json:"exceeds"`
	OpenedAt          string  `json:"opened_at"`
	ClosedAt          *string `json:"closed_at"`
}

// AdminViewOf returns the view of a dispute for operators.
func (m *Machine) AdminViewOf(d *Dispute) AdminView {
	v := AdminView{
		View: m.ViewOf(d), SupplierDisputeNo: d.SupplierDisputeNo, SupplierTradeNo: notify.OrNull(d.TradeNo), Fee: d.Fee,
		FeeReturned: d.FeeBack,
		Withdrawn:   d.Withdrawn, Reinstated: d.Reinstated, Reserved: d.reserved(), Exceeds: d.Exceeds, OpenedAt: notify.Stamp(d.OpenedAt),
		ClosedAt: notify.StampOr(d.ClosedAt),
	}
	if code, err := m.SupplierCode(m.DB.Read, d.SupplierID); err == nil {
		v.Supplier = &code
	}
	return v
}
