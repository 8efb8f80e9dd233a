package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/notify"
)

// Formats of a body. The forms are what gateways here have sent for years: sorted
// parameters and a sign over them, so that merchants' old code goes on working.
const standard, formHMAC, formMD5 = "standard", "form", "form-md5"

// formKey is the credential that replaces the signing secret as a form's key.
const formKey = "form_key"

var formType = []string{"application/x-www-form-urlencoded"}

// form writes the frozen body as signed parameters: the fields of data, and id,
// type, timestamp (of this attempt, Unix seconds), sign_type and sign.
func form(m notify.Message) ([]byte, error) {
	fields, err := flat(m.Body)
	if err != nil {
		return nil, err
	}
	key, signType := m.Credentials[formKey], "HMAC-SHA256"
	if key == "" {
		// The text behind "whsec_", which is what merchants hold.
		key = base64.StdEncoding.EncodeToString(m.Secrets[0])
	}
	if m.Format == formMD5 {
		signType = "MD5"
	}
	// Ours replace fields of the same name: nobody may forge them through data.
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

// formSign signs name=value pairs sorted by name and joined by &, with &key=KEY
// at their end, as WeChat Pay's version 2 did: in capital hex.
func formSign(fields map[string]string, signType, key string) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		text.WriteString(name + "=" + fields[name] + "&")
	}
	text.WriteString("key=" + key)
	var sum []byte
	if signType == "MD5" {
		digest := md5.Sum([]byte(text.String())) // the merchants' old rule, not our choice
		sum = digest[:]
	} else {
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(text.String()))
		sum = mac.Sum(nil)
	}
	return strings.ToUpper(hex.EncodeToString(sum))
}

// flat reads the fields of a body's data as texts. Numbers stay as they are
// written, lists and objects are JSON; empty values and null are left out, as an
// empty parameter is never signed.
func flat(body []byte) (map[string]string, error) {
	var frozen struct {
		Data map[string]json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &frozen); err != nil {
		return nil, errors.New("the frozen body is not JSON with a field data")
	}
	fields := make(map[string]string, len(frozen.Data)+5)
	for name, raw := range frozen.Data {
		text := string(raw)
		switch {
		case text == "null" || name == "":
			continue
		case strings.HasPrefix(text, `"`):
			if err := json.Unmarshal(raw, &text); err != nil {
				return nil, fmt.Errorf("field %s of the frozen body is not text", name)
			}
		case text[0] == '{' || text[0] == '[':
			var compact bytes.Buffer
			if err := json.Compact(&compact, raw); err != nil {
				return nil, fmt.Errorf("field %s of the frozen body is not JSON", name)
			}
			text = compact.String()
		}
		if text != "" {
			fields[name] = text
		}
	}
	return fields, nil
}
