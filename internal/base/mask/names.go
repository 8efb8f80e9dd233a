package mask

import (
	"slices"
	"strings"
)

// What no declaration makes harmless: names of fields whose values concern a person or give
// access. Everything below such a field is masked: a Stripe response contains the client_secret
// of its payment. All other places ask this package.

// persons and credentials are words in such names.
var (
	persons = []string{
		"open_id", "union_id", "payer", "buyer", "customer", "card", "bank", "phone", "mobile", "email", "mail", "identity",
		"cert_no", "name", "address", "addr", "logon", "user_id", "birth", "billing", "shipping", "nick", "contact", "receiver",
		"recipient", "consignee", "passport", "msisdn", "postcode", "zipcode", "street", "avatar", "gender", "wechat_id", "client_ip",
		"create_ip",
	}
	credentials = []string{
		"secret", "private_key", "api_key", "v3_key", "app_key", "access_key", "passw", "passphrase", "token", "authorization", "auth_code",
		"authenticat", "cookie", "session", "credential", "jwt",
	}
)

// whole are such words that also occur within other names, so they must match whole.
var whole = []string{"key", "auth", "pan", "cvv", "cvc", "qq", "dob", "iban", "ssn", "sid", "pin", "otp", "tel", "id_no", "idno"}

// plainNames contain one of these words but concern nobody.
var plainNames = []string{"event_name", "notify_name", "trade_name", "bank_type", "payer_total", "payer_currency", "buyer_pay_amount"}

func isPersonal(name string) bool {
	name = snake(name)
	return slices.Contains(whole, name) || !slices.Contains(plainNames, name) && (contains(name, persons) || contains(name, credentials))
}

func isCredential(name string) bool { return contains(snake(name), credentials) }

// contains reports whether a name contains one of the words, also where it is written as one word
// what is two here.
func contains(name string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		return strings.Contains(name, word) || strings.Contains(name, strings.ReplaceAll(word, "_", ""))
	})
}

// snake makes the spellings of a name the same: X-Api-Key, apiKey and api_key.
func snake(name string) string {
	name = strings.TrimSpace(name)
	var b strings.Builder
	b.Grow(len(name) + 4)
	lower := false // the last letter was a lower-case one
	for _, r := range name {
		upper := r >= 'A' && r <= 'Z'
		switch {
		case r == '-' || r == '.' || r == ' ':
			r = '_'
		case upper && lower:
			b.WriteByte('_')
		}
		lower = r >= 'a' && r <= 'z'
		if upper {
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}
