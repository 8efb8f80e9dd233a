package alipay

import (
	"cmp"
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"

	"backstop/internal/base/money"
	"backstop/internal/base/textlimit"
	"backstop/internal/supplier"
)

// reference matches a valid out_trade_no: up to 64 letters, digits and underscores
// (alipay-sdk-java, AlipayTradePrecreateModel).
var reference = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)

const (
	maxAmount  = 10_000_000_000 // fen: total_amount is 0.01 to 100000000 yuan (same model)
	maxSubject = 256            // docs.open.alipay.com/api_1/alipay.trade.precreate
)

// precreate is the biz_content of alipay.trade.precreate.
type precreate struct {
	OutTradeNo  string `json:"out_trade_no"`
	TotalAmount string `json:"total_amount"` // yuan
	Subject     string `json:"subject"`
	SellerID    string `json:"seller_id,omitempty"`
	// TimeExpire is absolute: timeout_express would count again from each call, so that a
	// repeated start would let the code outlive its order. If both are given, this one counts
	// (same model).
	TimeExpire string `json:"time_expire,omitempty"`
}

// outTradeNo is the biz_content of query and close.
type outTradeNo struct {
	OutTradeNo string `json:"out_trade_no"`
}

// Start creates a QR code (alipay.trade.precreate). Alipay creates the trade only when a buyer
// scans the code; until then a query does not find it.
func (c *calls) Start(ctx context.Context, p supplier.Payment) (supplier.Started, error) {
	if err := expressible(p); err != nil {
		return supplier.Started{}, err
	}
	content := precreate{
		OutTradeNo: p.Reference, TotalAmount: money.Format(p.Amount, currency), Subject: subject(p), SellerID: c.sellerID,
	}
	if !p.ExpiresAt.IsZero() {
		content.TimeExpire = p.ExpiresAt.In(beijing).Format(time.DateTime)
	}
	n, x, class, err := c.call(ctx, "alipay.trade.precreate", p.NotifyURL, content)
	switch {
	case err != nil:
		return x.StartUnknown(class, err), nil
	case n.otherThan(p.Reference):
		return x.StartUnknown(supplier.ClassBadAnswer, otherOrder.Say(quoted(n.OutTradeNo))), nil
	case n.Code == codeSuccess && n.OutTradeNo != "" && n.QRCode != "":
		x.Class = supplier.ClassOK
		return supplier.Started{State: supplier.Accepted, Kind: supplier.ValueQR, Value: n.QRCode, Word: n.word(), Exchange: x}, nil
	case n.Code == codeSuccess:
		return x.StartUnknown(supplier.ClassBadAnswer, noCode.Say()), nil
	case n.Code == codeRefused && refusals[n.SubCode]:
		x.Class = supplier.ClassRefused
		return supplier.Started{State: supplier.StartRefused, Word: n.word(), Reason: refusedWith.Say(n.word()), Exchange: x}, nil
	default:
		return x.StartUnknown(supplier.ClassUnknown, unknownWord.Say(quoted(n.word()))), nil
	}
}

// refusals are the sub_codes that leave nothing behind that could be paid
// (open.alitrip.com/docs/doc.htm?articleId=104632). Those about an existing trade are not among
// them (TRADE_HAS_SUCCESS, TRADE_HAS_CLOSE, CONTEXT_INCONSISTENT, TRADE_BUYER_NOT_MATCH): an
// earlier start of this reference may have created it.
var refusals = map[string]bool{
	"ACQ.INVALID_PARAMETER":    true,
	"ACQ.ACCESS_FORBIDDEN":     true,
	"ACQ.EXIST_FORBIDDEN_WORD": true,
	"ACQ.PARTNER_ERROR":        true,
	"ACQ.TOTAL_FEE_EXCEED":     true,
}

func expressible(p supplier.Payment) error {
	switch {
	case p.Method != "" && p.Method != supplier.MethodQR:
		return &supplier.FieldError{Field: "method", Problem: "only qr can be started with Alipay"}
	case p.Currency != currency:
		return &supplier.FieldError{Field: "currency", Problem: "Alipay takes CNY only"}
	case p.Amount <= 0 || p.Amount > maxAmount:
		return &supplier.FieldError{Field: "amount", Problem: "Alipay takes 0.01 to 100000000 yuan"}
	}
	return queryable(p.Reference)
}

func queryable(ref string) error {
	if !reference.MatchString(ref) {
		return &supplier.FieldError{Field: "order_no", Problem: "Alipay takes at most 64 letters, digits and underscores"}
	}
	return nil
}

// subject removes the characters that Alipay refuses in a title ("/，=，& 等", same model); "&"
// and "=" would also make the signed notification ambiguous.
func subject(p supplier.Payment) string {
	plain := strings.NewReplacer("/", " ", "=", " ", "&", " ").Replace(cmp.Or(p.Subject, p.OrderNo))
	return textlimit.Cut(cmp.Or(strings.TrimSpace(plain), p.Reference), maxSubject)
}

// Query queries the trade of a reference (alipay.trade.query).
func (c *calls) Query(ctx context.Context, r supplier.Ref) (supplier.Answer, error) {
	if err := queryable(r.Reference); err != nil {
		return supplier.Answer{}, err
	}
	n, x, class, err := c.call(ctx, "alipay.trade.query", "", outTradeNo{r.Reference})
	switch {
	case err != nil:
		return x.Unknown(class, err), nil
	case n.Code == codeRefused && n.SubCode == notExist:
		return x.Judge(r, supplier.Meaning{Answer: supplier.AnswerNotFound}, c.says(r, n)), nil
	case n.Code != codeSuccess:
		return x.Unknown(supplier.ClassUnknown, unknownWord.Say(quoted(n.word()))), nil
	case n.OutTradeNo == "":
		return x.Unknown(supplier.ClassBadAnswer, otherOrder.Say(`""`)), nil
	}
	m, says := words.Of(n.TradeStatus), c.says(r, n)
	if m.Reverses && n.SendPayDate != "" { // it must have been paid once, so all of it was refunded
		m, says.RefundTotal = supplier.Meaning{Status: supplier.Paid}, says.Amount
	} else if minor, err := money.ParseMajor(n.RefundFee, says.Currency); err == nil && m.Status == supplier.Paid {
		says.RefundTotal = minor
	}
	if m.State() == supplier.AnswerPaid {
		if n.TradeNo == "" {
			return x.Unknown(supplier.ClassBadAnswer, noTradeNo.Say()), nil
		}
		if _, err := money.ParseMajor(n.TotalAmount, says.Currency); err != nil {
			return x.Unknown(supplier.ClassBadAnswer, noAmount.Say("total_amount", err)), nil
		}
	}
	return x.Judge(r, m, says), nil
}

// notExist is also the answer for a code that nobody has scanned
// (github.com/fzlee/alipay/issues/9, cloud.tencent.com/developer/article/1096089).
const notExist = "ACQ.TRADE_NOT_EXIST"

// notClosable are refusals to close a trade that is no longer unpaid, or is being paid
// (zhifubao.apifox.cn/api-126371943, 业务错误码 of alipay.trade.close).
var notClosable = map[string]bool{
	"ACQ.TRADE_STATUS_ERROR":          true,
	"ACQ.REASON_TRADE_STATUS_INVALID": true,
	"ACQ.REASON_ILLEGAL_STATUS":       true,
}

// Close closes the trade of a reference (alipay.trade.close). A trade that does not exist
// counts as closed: nobody has scanned its code, which expires at its time_expire.
func (c *calls) Close(ctx context.Context, r supplier.Ref) (supplier.Answer, error) {
	if err := queryable(r.Reference); err != nil {
		return supplier.Answer{}, err
	}
	n, x, class, err := c.call(ctx, "alipay.trade.close", "", outTradeNo{r.Reference})
	switch {
	case err != nil:
		return x.Unknown(class, err), nil
	// The node's name is not signed: the answer to a query or a start must not pass for one to
	// a close.
	case n.Code == codeSuccess && n.OutTradeNo != "" && n.TradeStatus == "" && n.QRCode == "",
		n.Code == codeRefused && n.SubCode == notExist:
		return x.Judge(r, supplier.Meaning{Status: supplier.Closed}, c.says(r, n)), nil
	case n.Code == codeRefused && notClosable[n.SubCode]:
		return x.Unknown(supplier.ClassRefused, notClosed.Say(n.word())), nil
	default:
		return x.Unknown(supplier.ClassUnknown, unknownWord.Say(quoted(n.word()))), nil
	}
}

// otherThan reports whether the answer contains another reference. A refusal may contain none
// (fzlee/alipay issue 83); it still answers this call.
func (n node) otherThan(ref string) bool { return n.OutTradeNo != "" && n.OutTradeNo != ref }

// says returns what a notification with the same content would say. An answer contains neither
// app_id nor seller_id: it concerns the application that asked.
func (c *calls) says(r supplier.Ref, n node) supplier.Callback {
	word := cmp.Or(n.TradeStatus, n.SubCode, n.Code)
	says := supplier.Callback{
		EventKey: cmp.Or(n.TradeNo, r.Reference) + ":" + word, OrderRef: cmp.Or(n.OutTradeNo, r.Reference), TradeNo: n.TradeNo,
		RawStatus: word, Currency: cmp.Or(n.TransCurrency, currency), Identity: c.Identity(), OccurredAt: readTime(n.SendPayDate),
	}
	if minor, err := money.ParseMajor(n.TotalAmount, says.Currency); err == nil {
		says.Amount = minor
	}
	return says
}

// quoted quotes a text from outside for use in a reason.
func quoted(s string) string { return strconv.Quote(textlimit.Clip(s, 80)) }
