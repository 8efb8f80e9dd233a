package payout

import (
	"backstop/internal/notify"
)

// View is the payout as merchants and operators see it, in answers and notifications
// (contract §8). Fields without a value are null.
type View struct {
	PayoutNo         string      `json:"payout_no"`
	OutPayoutNo      string      `json:"out_payout_no"`
	Merchant         *string     `json:"merchant"`
	Supplier         *string     `json:"supplier"`
	Amount           int64       `json:"amount"`
	FeeAmount        int64       `json:"fee_amount"`
	Currency         string      `json:"currency"`
	Account          AccountView `json:"account"`
	Status           string      `json:"status"`
	Debit            *StepState  `json:"debit"`
	Credit           *StepState  `json:"credit"`
	Reversal         *StepState  `json:"reversal"`
	Failure          *string     `json:"failure"`
	SupplierPayoutNo *string     `json:"supplier_payout_no"`
	CreatedAt        string      `json:"created_at"`
	FinishedAt       *string     `json:"finished_at"`
	Version          int64       `json:"version"`
}

// AccountView is where a payout goes, with its number masked.
type AccountView struct {
	Code   string  `json:"code"`
	Kind   string  `json:"kind"`
	Holder string  `json:"holder"`
	Number string  `json:"number"`
	Bank   *string `json:"bank"`
}

func accountView(a Shown) AccountView {
	return AccountView{Code: a.Code, Kind: a.Kind, Holder: a.Holder, Number: a.Number, Bank: notify.OrNull(a.Bank)}
}

// ViewOf returns the view of a payout with its steps.
func (m *Machine) ViewOf(p *Payout) View {
	v := View{
		PayoutNo: p.PayoutNo, OutPayoutNo: p.OutPayoutNo, Amount: p.Amount, FeeAmount: p.FeeAmount, Currency: p.Currency,
		Account: accountView(p.Account),
		Status:  string(p.Status), Debit: notify.OrNull(p.Debit), Credit: notify.OrNull(p.Credit), Reversal: notify.OrNull(p.Reversal),
		Failure:          notify.OrNull(p.Failure),
		SupplierPayoutNo: notify.OrNull(p.SupplierPayoutNo), CreatedAt: notify.Stamp(p.CreatedAt), FinishedAt: notify.StampOr(p.FinishedAt),
		Version: p.Version,
	}
	if code, err := m.MerchantCode(m.DB.Read, p.MerchantID); err == nil {
		v.Merchant = &code
	}
	if code, err := m.SupplierCode(m.DB.Read, p.SupplierID); err == nil {
		v.Supplier = &code
	}
	return v
}
