package webhook

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/notify"
)

// Formats of a body. The forms are those of older payment gateways: sorted parameters with a
// signature over them, so that merchants' existing code works.
const standard, formHMAC, formMD5 = "standard", "form", "form-md5"

// formKey is the credential that replaces the signing secret as the key of a form.
const formKey = "form_key"

var formType = []string{"application/x-www-form-urlencoded"}

// form writes the frozen body as signed parameters: the fields of data, and id, type, timestamp
// (of this attempt, Unix seconds), sign_type and sign.
func form(m notify.Message) ([]byte, error) {
	fields, err := notify.Fields(m.Body) // without empty ones, which are never signed
	if err != nil {
		return nil, err
	}
	key, signType := m.Credentials[formKey], "HMAC-SHA256"
	if key == "" {
		// The text after "whsec_", as merchants know it.
		key = base64.StdEncoding.EncodeToString(m.Secrets[0])
	}
	if m.Format == formMD5 {
		signType = "MD5"
	}
	// Ours replace fields with the same name, which data must not forge.
	fields["id"], fields["type"] = m.ID, m.Type
	fields["timestamp"] = strconv.FormatInt(m.At.Unix(), 10)
	fields["sign_type"] = signType
	delete(fields, "sign")
	fields["sign"] = formSign(fields, signType, key)

	values := make(url.Values, len(fields))
	for name, value := range fields {
		values.Set(name, value)
	}
	return []byte(values.Encode()), nil
}

// formSign signs name=value pairs sorted by name and joined by &, followed by &key=KEY, as in
// version 2 of WeChat Pay, in upper-case hex.
func formSign(fields map[string]string, signType, key string) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		text.WriteString(name + "=" + fields[name] + "&")
	}
	text.WriteString("key=" + key)
	var sum []byte
	if signType == "MD5" {
		digest := md5.Sum([]byte(text.String())) // required by the format
		sum = digest[:]
	} else {
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(text.String()))
		sum = mac.Sum(nil)
	}
	return strings.ToUpper(hex.EncodeToString(sum))
}
