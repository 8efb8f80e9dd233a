package supplier

import (
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"backstop/internal/base/textlimit"
)

// MaxFields bounds the parameters of one message. The longest known callback (Alipay's) has
// about 40; each is sorted and copied.
const MaxFields = 200

// ParseForm parses application/x-www-form-urlencoded text, a query or a body, and refuses what
// can be read in two ways. Duplicate names, broken percent escapes, unescaped semicolons
// (refused by net/url too; others treat them as separators), parameters without a name or with
// an escaped "&" or "=" in the name (parameters are signed as name=value&name=value), invalid
// UTF-8, NUL and more than MaxFields parameters are *Refused as malformed. "+" is a space; "a"
// without "=" is an empty value; empty pieces ("a=1&&b=2") are skipped.
func ParseForm(raw string) (map[string]string, error) {
	fields := make(map[string]string)
	for raw != "" {
		var pair string
		pair, raw, _ = strings.Cut(raw, "&")
		if pair == "" {
			continue
		}
		if strings.Contains(pair, ";") {
			return nil, RefuseMalformed(semicolon)
		}
		encodedName, encodedValue, _ := strings.Cut(pair, "=")
		name, err := unescape(encodedName)
		if err != nil {
			return nil, err
		}
		value, err := unescape(encodedValue)
		if err != nil {
			return nil, err
		}
		if name == "" {
			return nil, RefuseMalformed(noName)
		}
		if strings.ContainsAny(name, "&=") {
			return nil, RefuseMalformed(oddName)
		}
		if _, twice := fields[name]; twice {
			return nil, RefuseMalformed(nameTwice, strconv.Quote(textlimit.Clip(name, maxName)))
		}
		if len(fields) == MaxFields {
			return nil, RefuseMalformed(tooManyFields, MaxFields)
		}
		fields[name] = value
	}
	return fields, nil
}

// CheckCut refuses a signed value that allows a second reading of the signed text
// (name=value&name=value), cut at another "&". Values are not escaped before signing, so a
// buyer with the remark "x&total=1&zz=" could move the real total into a parameter of their own
// and keep the supplier's signature. A parameter that is read can be hidden only inside another
// value, where this check finds it. Other "&" and "=" in values (URLs, remarks) are harmless;
// names must not contain any.
func CheckCut(value string, read []string) error {
	for _, name := range read {
		if strings.Contains(value, "&"+name+"=") {
			return otherReading.Say(strconv.Quote("&" + name + "="))
		}
	}
	return nil
}

func unescape(s string) (string, error) {
	plain, err := url.QueryUnescape(s)
	if err != nil {
		return "", RefuseMalformed(badEscape)
	}
	if !utf8.ValidString(plain) {
		return "", RefuseMalformed(formNotUTF8)
	}
	if strings.ContainsRune(plain, 0) {
		return "", RefuseMalformed(formNUL)
	}
	return plain, nil
}
