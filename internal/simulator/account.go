package simulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// State of a payment at its supplier.
type State string

// States. StateRefunded exists for all kinds except sortedparams, which has no word for it.
const (
	StateUnpaid   State = "unpaid" // started; the buyer has done nothing
	StatePaying   State = "paying" // the buyer is about to pay
	StatePaid     State = "paid"
	StateFailed   State = "failed"
	StateClosed   State = "closed"
	StateNotFound State = "not_found"
	StateRefunded State = "refunded"
)

// Fact is a supplier's report about a payment.
type Fact struct {
	Ref      string // the merchant's number at the supplier
	TradeNo  string
	Amount   int64 // minor units of Currency
	Currency string
	State    State // "" = StatePaid
	At       time.Time
	Metadata map[string]string // Stripe: as given at the start; nil = only order_no
}

// Message is a callback, sent by POST.
type Message struct {
	Header http.Header
	Body   []byte
}

// Account is one merchant's account at one simulated supplier.
type Account struct {
	Code, Kind, Currency string
	// lazy: a started payment is unknown to queries until the buyer has scanned its code.
	lazy bool
	protocol
}

// protocol is the API of one kind of supplier.
type protocol interface {
	// config is the part of the settings used to verify callbacks; calls, the part used for
	// calls to a supplier served at base.
	config() map[string]any
	calls(base string) map[string]any
	// routes maps the patterns of the calls to their operation.
	routes() map[string]operation
	// read verifies and parses a request. On a refusal nothing is done.
	read(op operation, r *http.Request, body []byte) (call, *reply)
	// answer formats the result of a call.
	answer(c call, v view) (reply, error)
	// failed is the response of a supplier with an outage (HTTP 500).
	failed() reply
	// tradeNo returns the number of the nth payment of a reference.
	tradeNo(ref string, n int) string
	// Callback reports a fact; State is paid, failed or closed.
	Callback(f Fact) (Message, error)
	// answerRefund says what became of a call about a refund, and refundNo is its number.
	answerRefund(c call, v refundView) (reply, error)
	refundNo(no string) string
	// RefundCallback reports a refund; false = such a supplier tells nothing of it.
	RefundCallback(f RefundFact) (Message, bool, error)
}

// Disputer is a protocol with disputes.
type Disputer interface {
	// Dispute reports that the buyer demands the payment back.
	Dispute(f Fact) (Message, error)
	// DisputeEvent reports what happened to a dispute.
	DisputeEvent(f DisputeFact) (Message, error)
}

// Disputes returns the account's Disputer; nil = the kind has no disputes.
func (a *Account) Disputes() Disputer {
	d, _ := a.protocol.(Disputer)
	return d
}

// operation is a kind of call, named as in the contract (supplier-calls).
type operation string

const (
	opPay   operation = "pay"
	opQuery operation = "query"
	opClose operation = "close"
)

// call is one verified request.
type call struct {
	op        operation
	asked     string // the body, or the URL if there is none
	ref       string
	content   string // equal for calls with the same content
	variant   string // what else determines the form of the answer
	id        string // Stripe: the intent, instead of a reference
	amount    int64
	currency  string
	notifyURL string
	metadata  map[string]string
	search    mark   // Stripe: instead of a reference
	expand    bool   // Stripe: the charge is to be an object, not its id
	refund    string // our number of the refund
	payout    string // our number of the payout
	total     int64  // of a refund's payment, where the supplier is told; 0 = it is not
	again     bool   // Stripe: without a key each start makes a payment of its own
}

// outcome is how a call ended.
type outcome int

const (
	done         outcome = iota
	inconsistent         // started before with other content
	alreadyPaid
	alreadyClosed
	refused // the start; or the close, because the buyer is about to pay
	unknownRef
)

// view is the data for an answer.
type view struct {
	outcome
	Fact
	replayed bool   // Stripe: repeats the answer to the first call with this key
	since    int64  // Unix s of the start
	found    []Fact // Stripe: what a search finds
	forged   bool   // to be given a wrong signature
}

// reply is an HTTP answer.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func jsonReply(status int, value any) reply {
	body, err := json.Marshal(value)
	if err != nil {
		panic(err) // maps of texts and numbers only
	}
	return reply{status, http.Header{"Content-Type": {"application/json; charset=utf-8"}}, body}
}

// object is a JSON object.
type object = map[string]any

// newAccounts makes one account of each kind.
func newAccounts(s seed, codes map[string]string) ([]*Account, error) {
	pairs, err := keys()
	if err != nil {
		return nil, err
	}
	accounts := []*Account{
		{Code: "sim-wx", Kind: "wechatpay", Currency: "CNY", protocol: newWechat(s, pairs)},
		{Code: "sim-ali", Kind: "alipay", Currency: "CNY", lazy: true, protocol: newAlipay(s, pairs)},
		{Code: "sim-st", Kind: "stripe", Currency: "USD", protocol: newStripe(s)},
		{Code: "sim-till", Kind: "sortedparams", Currency: "CNY", protocol: newSorted(s)},
	}
	for kind, code := range codes {
		known := false
		for _, a := range accounts {
			if a.Kind == kind {
				a.Code, known = code, true
			}
		}
		if !known {
			return nil, fmt.Errorf("no supplier of kind %q is simulated", kind)
		}
	}
	return accounts, nil
}
