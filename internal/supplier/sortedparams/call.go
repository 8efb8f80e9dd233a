package sortedparams

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"backstop/internal/supplier"
)

// call sends the parameters and returns the fields of the answer, after verifying its signature.
// With an error, the class says what is wrong with the answer; if there is no answer, the
// Exchange has the class.
func (c *calls) call(ctx context.Context, address string, params map[string]string) (map[string]string, supplier.Exchange, supplier.Class,
	error,
) {
	params[timeParam] = strconv.FormatInt(time.Now().Unix(), 10)
	params[nonceParam] = rand.Text()[:16]
	if c.AccountField != "" {
		params[c.AccountField] = c.config.Account
	}
	call, err := c.request(address, params)
	if err != nil {
		return nil, supplier.Exchange{}, supplier.ClassConnect, badCall.Say(err)
	}
	x, err := call.Send(ctx, c.out)
	if err != nil {
		return nil, x, "", err
	}
	if x.Status != http.StatusOK {
		return nil, x, supplier.ClassBadAnswer, httpStatus.Say(x.Status)
	}
	fields, err := readFields(c.AnswerFormat, &supplier.Request{Method: http.MethodPost, Header: x.Header, Body: x.Body})
	if err != nil {
		return nil, x, supplier.ClassBadAnswer, err
	}
	if _, err := c.verify(fields, nil); err != nil {
		return nil, x, supplier.ClassBadSignature, err
	}
	return fields, x, "", nil
}

// request signs the parameters and writes them in the format of callbacks.
func (c *calls) request(address string, params map[string]string) (supplier.Call, error) {
	u, err := url.Parse(address)
	if err != nil {
		return supplier.Call{}, err
	}
	// Without the URL's own query, which may contain a key.
	shown := cmp.Or(u.EscapedPath(), "/") + "\n\n" + supplier.JoinPairs(params, slices.Sorted(maps.Keys(params)))
	call := supplier.Call{Method: http.MethodPost, Shown: shown, Header: http.Header{}}
	signed := maps.Clone(params)
	if signed[c.SignField], err = c.sign(c.signedText(params, c.signedNames(params))); err != nil {
		return supplier.Call{}, err
	}
	switch c.Format {
	case "json":
		call.Body, err = json.Marshal(signed)
		call.Header.Set("Content-Type", "application/json; charset=utf-8")
	case "xml":
		call.Body, err = writeXML(signed)
		call.Header.Set("Content-Type", "text/xml; charset=utf-8")
	case "query":
		call.Method = http.MethodGet
		u.RawQuery = strings.TrimPrefix(u.RawQuery+"&"+encode(signed), "&")
	default:
		call.Body = []byte(encode(signed))
		call.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	}
	call.URL = u.String()
	return call, err
}

func encode(fields map[string]string) string {
	form := url.Values{}
	for name, value := range fields {
		form.Set(name, value)
	}
	return form.Encode()
}

// writeXML is the inverse of readXML.
func writeXML(fields map[string]string) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("<xml>")
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(&b, "<%s>", name)
		if err := xml.EscapeText(&b, []byte(fields[name])); err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "</%s>", name)
	}
	b.WriteString("</xml>")
	return b.Bytes(), nil
}

// sign makes the signature that holds would accept from the supplier. sign_case "any" means
// lower case here, as most of the family write it.
func (c *calls) sign(text []byte) (string, error) {
	var sum []byte
	switch c.Algorithm {
	case "md5":
		digest := md5.Sum(text)
		sum = digest[:]
	case "hmac-sha256":
		mac := hmac.New(sha256.New, []byte(c.Key))
		mac.Write(text)
		sum = mac.Sum(nil)
	default:
		digest := sha256.Sum256(text)
		raw, err := c.own.Sign(nil, digest[:], crypto.SHA256) // PKCS #1 v1.5
		return base64.StdEncoding.EncodeToString(raw), err
	}
	if c.SignCase == "upper" {
		return strings.ToUpper(hex.EncodeToString(sum)), nil
	}
	return hex.EncodeToString(sum), nil
}
