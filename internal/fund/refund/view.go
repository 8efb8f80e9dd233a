package refund

import (
	"backstop/internal/notify"
)

// View is the refund as merchants and operators see it, in answers and notifications
// (contract §8). Fields without a value are null.
type View struct {
	RefundNo         string  `json:"refund_no"`
	OutRefundNo      *string `json:"out_refund_no"`
	OrderNo          *string `json:"order_no"`
	Merchant         *string `json:"merchant"`
	Amount           int64   `json:"amount"`
	Currency         string  `json:"currency"`
	FeeReturned      int64   `json:"fee_returned"`
	Status           string  `json:"status"`
	SupplierRefundNo *string `json:"supplier_refund_no"`
	Reason           *string `json:"reason"`
	CreatedAt        string  `json:"created_at"`
	FinishedAt       *string `json:"finished_at"`
	Version          int64   `json:"version"`
}

// ViewOf returns the view of a refund.
func (m *Machine) ViewOf(r *Refund) View {
	v := View{
		RefundNo: r.RefundNo, OutRefundNo: notify.OrNull(r.OutRefundNo), OrderNo: notify.OrNull(r.OrderNo), Amount: r.Amount,
		Currency:    r.Currency,
		FeeReturned: r.FeeReturned, Status: string(r.Status), SupplierRefundNo: notify.OrNull(r.SupplierRefundNo),
		Reason:    notify.OrNull(r.Reason),
		CreatedAt: notify.Stamp(r.CreatedAt), FinishedAt: notify.StampOr(r.FinishedAt), Version: r.Version,
	}
	if r.MerchantID != 0 {
		code, err := m.MerchantCode(m.DB.Read, r.MerchantID)
		if err == nil {
			v.Merchant = &code
		}
	}
	return v
}
