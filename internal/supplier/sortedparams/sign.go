package sortedparams

import (
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/base/money"
	"backstop/internal/supplier"
)

// sign makes a callback in the dialect of the settings. See supplier.Kind.
func sign(raw json.RawMessage, r supplier.Report) (*supplier.Request, error) {
	c, publicKey, err := readConfig(raw)
	switch {
	case err != nil:
		return nil, err
	case publicKey != nil:
		return nil, supplier.ErrSupplierKey
	}
	a := adapterOf("", c, nil)
	fields, err := a.report(r)
	if err != nil {
		return nil, err
	}
	signature := hex.EncodeToString(a.sum(a.signedText(fields, a.signedNames(fields))))
	if a.SignCase == "upper" {
		signature = strings.ToUpper(signature)
	}
	fields[a.SignField] = signature
	return message(a.Format, fields)
}

// report returns the parameters of a callback, unsigned.
func (a *adapter) report(r supplier.Report) (map[string]string, error) {
	amount := strconv.FormatInt(r.Amount, 10)
	if a.AmountUnit == "major" {
		amount = money.Format(r.Amount, r.Currency)
	}
	word, wrong := a.word(r.Status)
	if wrong != nil {
		return nil, wrong
	}
	fields := map[string]string{}
	for _, f := range []struct{ name, value string }{
		{a.TradeField, r.TradeNo},
		{a.AmountField, amount},
		{a.CurrencyField, r.Currency},
		{a.StatusField, word},
		{a.AccountField, a.config.Account},
		{a.OrderField, r.OrderRef},
	} {
		if f.name != "" {
			fields[f.name] = f.value
		}
	}
	return fields, nil
}

// word returns the supplier's word for a status; "" = it has none and reports payments only.
func (a *adapter) word(status supplier.Status) (string, *supplier.FieldError) {
	at := slices.IndexFunc(a.values(), func(v valueList) bool { return v.means.Status == status })
	switch {
	case a.StatusField == "" && status == supplier.Paid:
		return "", nil
	case a.StatusField == "" || at < 0:
		return "", wrong("status_field", "missing: there is no word for %q", status)
	}
	list := a.values()[at]
	if len(list.words) == 0 {
		return "", wrong(list.field, "missing: the word for %q", status)
	}
	return list.words[0], nil
}

// message puts parameters where the format has them, as readFields finds them.
func message(format string, fields map[string]string) (*supplier.Request, error) {
	values := url.Values{}
	for name, value := range fields {
		values.Set(name, value)
	}
	req := &supplier.Request{Method: http.MethodPost, Header: http.Header{}}
	var err error
	switch format {
	case "query":
		req.Method, req.RawQuery = http.MethodGet, values.Encode()
		return req, nil
	case "json":
		req.Header.Set("Content-Type", "application/json")
		req.Body, err = json.Marshal(fields)
	case "xml":
		req.Header.Set("Content-Type", "text/xml")
		req.Body, err = xml.Marshal(element(fields))
	default:
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Body = []byte(values.Encode())
	}
	if err != nil {
		return nil, fmt.Errorf("write the callback: %w", err)
	}
	return req, nil
}

// element is parameters as one element of XML.
type element map[string]string

// MarshalXML writes an element for each parameter.
func (e element) MarshalXML(out *xml.Encoder, _ xml.StartElement) error {
	root := xml.StartElement{Name: xml.Name{Local: "xml"}}
	if err := out.EncodeToken(root); err != nil {
		return err
	}
	for name, value := range e {
		if err := out.EncodeElement(value, xml.StartElement{Name: xml.Name{Local: name}}); err != nil {
			return err
		}
	}
	return out.EncodeToken(root.End())
}
