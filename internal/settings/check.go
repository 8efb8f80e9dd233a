package settings

import (
	"crypto/tls"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"backstop/internal/base/money"
	"backstop/internal/merchant"
	"backstop/internal/supplier"
)

const (
	// minAPIKey in bytes: keys are stored with a fast hash, which is safe only for long random
	// strings.
	minAPIKey = 20
	// maxSecrets: the new signing secret and the previous one.
	maxSecrets = 2
	// maxHeader bounds one header or credential, in bytes: a token is a tenth of it.
	maxHeader = 4096
)

// Channels with rules of their own.
const (
	websocketChannel = "websocket"
	emailChannel     = "email"
)

// Problem says what is wrong with one field and how to fix it. It contains no secret.
type Problem struct {
	Object Object
	Field  string // its path in the object, such as "notify.endpoints[0].url"; "" = the object as a whole
	Text   string
	Twin   string // path of the field with the same value, if duplicates are the problem
}

// Fix returns the problem's text; twin is the path of the twin as displayed.
func (p Problem) Fix(twin string) string {
	if p.Twin != "" {
		return fmt.Sprintf("the same as in %s: give each its own", twin)
	}
	return p.Text
}

// checker collects what is wrong with one object.
type checker struct {
	env    Env
	object Object
	found  []Problem
}

func (k *checker) wrong(field, format string, args ...any) {
	k.found = append(k.found, Problem{Object: k.object, Field: field, Text: fmt.Sprintf(format, args...)})
}

// Check returns what is wrong with the object after the change, independently of others. It
// also sets the account of a supplier's config.
func (c Change) Check(env Env) []Problem {
	k := &checker{env: env, object: c.Object}
	k.fields("", reflect.ValueOf(c.After).Elem())
	switch v := c.After.(type) {
	case *Supplier:
		k.supplier(v)
		k.charge("fees", v.Fees.Charge)
	case *Merchant:
		k.funds(v)
		if slices.Contains(v.unread, "payout_ips") {
			k.wrong("payout_ips", "missing: the stored value cannot be read, so give a new one")
		}
		k.signing(v.SigningSecrets)
		k.notify("notify", &v.Notify)
	case *Subscription:
		k.signing(v.SigningSecrets)
		k.notify("", &v.Notify)
		k.subscription(v)
	case *Account:
		k.currency("currency", v.Currency)
	case *PayoutAccount:
		k.payoutAccount(v)
	case *Role:
		k.role(v)
	case *Approval:
		k.approval(v)
	}
	return k.found
}

func (k *checker) currency(at, is string) {
	if _, err := money.Exponent(is); is != "" && err != nil {
		k.wrong(at, "%v", err)
	}
}

// fields checks fields by their tags.
func (k *checker) fields(path string, v reflect.Value) {
	for _, f := range Fields(v.Type()) {
		at, is := join(path, f.Word), f.Of(v)
		if problem := f.problem(is); problem != "" {
			k.wrong(at, "%s", problem)
			continue
		}
		switch x := is.Interface().(type) {
		case Notify, Breaker, Fee:
			k.fields(at, is)
		case []Endpoint, []TypedAbove, []SecondAbove, []MerchantFee, []PayoutFee, []Limit:
			for i, e := range is.Seq2() {
				k.fields(fmt.Sprintf("%s[%d]", at, i.Int()), e)
			}
		case []netip.Prefix:
			k.ranges(at, x)
		case []string:
			if f.Many == "types" {
				k.types(at, x)
			}
		case Followed:
			if x != nil && len(x) == 0 {
				k.wrong(at, "use all, or a list of merchants")
			}
			for i, merchant := range x {
				if problem := (Field{Form: "code", Max: 64, Need: "missing"}).textProblem(merchant); problem != "" {
					k.wrong(fmt.Sprintf("%s[%d]", at, i), "%s", problem)
				}
			}
			k.once(at+"[%d]", x)
		case map[string]Secret:
			k.texts(at, x)
		case Secret:
			k.secret(at, x, f)
		case []Secret:
			for i, s := range x {
				k.secret(fmt.Sprintf("signing_secrets[%d]", i), s, f)
			}
		}
	}
}

func (k *checker) ranges(at string, all []netip.Prefix) {
	for i, p := range all {
		if p.Addr().Is4In6() {
			k.wrong(fmt.Sprintf("%s[%d]", at, i), "%q: use a range such as 101.226.103.0/25, or one address", p)
		} else if p != p.Masked() {
			k.wrong(fmt.Sprintf("%s[%d]", at, i), "%s has bits set beyond its prefix length: use %s", p, p.Masked())
		}
	}
}

func (k *checker) types(at string, all []string) {
	for i, name := range all {
		if !slices.Contains(k.env.Events, name) {
			k.wrong(fmt.Sprintf("%s[%d]", at, i), "%s", unknownWord(name, k.env.Events))
		}
	}
	k.once(at+"[%d]", all)
}

// once finds duplicates in a list; at is the path of entry %d.
func (k *checker) once(at string, all []string) {
	for i, name := range all {
		if first := slices.Index(all, name); first < i && name != "" {
			k.found = append(k.found, Problem{Object: k.object, Field: fmt.Sprintf(at, i), Twin: fmt.Sprintf(at, first)})
		}
	}
}

func (k *checker) texts(at string, all map[string]Secret) {
	for _, name := range sortedKeys(all) {
		if !all[name].IsSet() {
			k.wrong(join(at, name), "missing")
		}
		// A header or a password may have blanks inside, such as "Bearer …".
		if s := all[name]; len(s.plain) > maxHeader {
			k.wrong(join(at, name), "at most %d characters are allowed", maxHeader)
		} else if problem := padded(s.plain); problem != "" {
			k.wrong(join(at, name), "%s", problem)
		}
	}
}

// secret checks a secret by its field. What it signs, verifies or is compared with has every
// character: one that was copied along would refuse all of it.
func (k *checker) secret(at string, s Secret, f Field) {
	switch {
	case f.Max > 0 && int64(len(s.plain)) > f.Max:
		k.wrong(at, "at most %d characters are allowed", f.Max)
	case f.Form == "pem" || f.Form == "number": // their parsers skip blanks
		if strings.ContainsRune(s.plain, 0) {
			k.wrong(at, "NUL is not allowed here")
		}
	default:
		if problem := blank(s.plain); problem != "" {
			k.wrong(at, "%s", problem)
		} else if f.Form == "key" {
			k.key(at, s)
		}
	}
}

// blank says which character of a text is a blank, a line break or invisible; "" = none is. It
// does not show the text.
func blank(text string) string {
	i := 0
	for _, r := range text {
		i++
		name := ""
		switch {
		case r == ' ' || r == '\t':
			name = "a blank"
		case r == '\n' || r == '\r':
			name = "a line break"
		case unicode.IsSpace(r), unicode.IsControl(r), !unicode.IsPrint(r): // NBSP, BOM, zero-width blanks
			name = fmt.Sprintf("an invisible character (%U)", r)
		default:
			continue
		}
		return fmt.Sprintf("character %d of %d is %s: copy the value alone", i, utf8.RuneCountInString(text), name)
	}
	return ""
}

// padded is blank for a text that may have blanks inside.
func padded(text string) string {
	inner := strings.Trim(text, " \t")
	if inner != text {
		return blank(text)
	}
	return blank(strings.ReplaceAll(text, " ", "_"))
}

func (k *checker) supplier(v *Supplier) {
	if slices.Contains(v.unread, "allow_ips") {
		k.wrong("allow_ips", "missing: the stored value cannot be read, so give a new one")
	}
	if v.Kind == "" || slices.Contains(v.unread, "config") {
		return
	}
	kind, err := k.env.Kinds.Find(v.Kind)
	if err != nil {
		k.wrong("kind", "%v", err)
		return
	}
	if k.configSecrets(kind, v.Config); len(k.found) > 0 {
		return
	}
	raw, err := plainConfig(kind, v.Config)
	var adapter supplier.Adapter
	if err == nil {
		adapter, err = kind.New(v.Code, raw, nil)
	}
	if field := supplier.AsField(err); field != nil {
		k.wrong(join("config", field.Field), "%s", field.Problem)
	} else if err != nil {
		k.wrong("config", "%v", err)
	} else {
		v.account = adapter.Account()
	}
}

// configSecrets checks the secrets of a supplier's config.
func (k *checker) configSecrets(kind supplier.Kind, config map[string]any) {
	for field := range kind.Secrets() {
		f := Field{}
		if field.PEM {
			f.Form = "pem"
		}
		switch v := config[field.Name].(type) {
		case Secret:
			k.secret(join("config", field.Name), v, f)
		case []any:
			for i, one := range v {
				if s, ok := one.(Secret); ok {
					k.secret(fmt.Sprintf("config.%s[%d]", field.Name, i), s, f)
				}
			}
		}
	}
}

// key checks a key that is stored hashed.
func (k *checker) key(at string, s Secret) {
	if n := len(s.plain); n > 0 && n < minAPIKey {
		k.wrong(at, "%d characters: use a random text of at least %d (openssl rand -hex 24)", n, minAPIKey)
	}
}

func (k *checker) signing(all []Secret) {
	if len(all) > maxSecrets {
		k.wrong("signing_secrets", "give one secret, or two during rotation: [new, old]")
	}
	for i, s := range all {
		at := fmt.Sprintf("signing_secrets[%d]", i)
		if s.plain == "" || blank(s.plain) != "" {
			continue // stored, but cannot be opened on this node; or said of it already
		}
		if _, err := k.env.ParseSecret(s.plain); err != nil {
			k.wrong(at, "%v", err)
		} else if i > 0 && s.Same(all[0]) {
			k.wrong(at, "both secrets are the same")
		}
	}
}

// notify checks what the tags do not describe.
func (k *checker) notify(path string, n *Notify) {
	for i, u := range n.URLs {
		at := fmt.Sprintf("%s[%d]", join(path, "urls"), i)
		if problem := (Field{Max: 2048, Need: "missing"}).textProblem(u); problem != "" {
			k.wrong(at, "%s", problem)
		} else if err := k.env.CheckURL(u); err != nil {
			k.wrong(at, "%v", err)
		}
	}
	if _, err := k.env.ParseSchedule(scheduleText(n.Schedule)); err != nil {
		k.wrong(join(path, "schedule"), "%v", err)
	}
	var names []string
	for i := range n.Endpoints {
		names = append(names, n.Endpoints[i].Name)
		k.endpoint(fmt.Sprintf("%s[%d]", join(path, "endpoints"), i), &n.Endpoints[i])
	}
	k.once(join(path, "endpoints[%d].name"), names)
}

func scheduleText(s Schedule) string {
	if s.Name != "list" {
		return s.Name
	}
	return strings.Join(s.Texts(), " ")
}

// AllChannels are the names of the channels, webhooks first.
func (e Env) AllChannels() []string {
	known := slices.DeleteFunc(sortedKeys(e.Channels), func(name string) bool { return name == merchant.WebhookChannel })
	return slices.Insert(known, 0, merchant.WebhookChannel)
}

// target checks addresses of a channel; nil = any is valid.
func (e Env) target(channel string) func(string) error {
	if check := e.Channels[channel]; check != nil {
		return check
	}
	if channel == merchant.WebhookChannel {
		return e.CheckURL
	}
	return nil
}

func (k *checker) endpoint(at string, e *Endpoint) {
	channel := string(e.Channel)
	if !slices.Contains(k.env.AllChannels(), channel) {
		k.wrong(join(at, "channel"), "%s", unknownWord(channel, k.env.AllChannels()))
	}
	if check := k.env.target(channel); check != nil && e.URL != "" {
		if err := check(e.URL); err != nil {
			k.wrong(join(at, "url"), "%v", err)
		}
	}
	if err := k.env.CheckHeaders(plainTexts(e.Headers)); err != nil {
		k.wrong(join(at, "headers"), "%v", err)
	}
	if check := k.env.Credentials[channel]; check != nil && e.Credentials != nil && !locked(e.Credentials) {
		if err := check(plainTexts(e.Credentials)); err != nil {
			k.wrong(join(at, "credentials"), "%v", err)
		}
	}
	if e.Digest > 0 && channel != emailChannel {
		k.wrong(join(at, "digest"), "only the email channel supports digests")
	}
	switch {
	case e.ClientCert == "" && e.ClientKey.IsSet():
		k.wrong(join(at, "client_cert"), "missing: a key needs its certificate")
	case e.ClientCert == "":
	case !e.ClientKey.IsSet():
		k.wrong(join(at, "client_key"), "missing: none is stored for this address")
	case e.ClientKey.plain != "":
		// The library's error is omitted: no part of a key may be printed.
		if _, err := tls.X509KeyPair([]byte(e.ClientCert), []byte(e.ClientKey.plain)); err != nil {
			k.wrong(join(at, "client_cert"), "certificate and key are not a pair in PEM: give both as they were issued")
		}
	}
}

func plainTexts(all map[string]Secret) map[string]string {
	if all == nil {
		return nil
	}
	texts := map[string]string{}
	for name, s := range all {
		texts[name] = s.plain
	}
	return texts
}

// locked reports whether a secret cannot be opened on this node, so that they cannot be
// checked.
func locked(all map[string]Secret) bool {
	for _, s := range all {
		if s.plain == "" {
			return true
		}
	}
	return false
}

func (n *Notify) hasWebhooks() bool {
	return len(n.URLs) > 0 || slices.ContainsFunc(n.Endpoints, func(e Endpoint) bool { return e.Channel == merchant.WebhookChannel })
}

func (k *checker) subscription(v *Subscription) {
	if len(v.URLs)+len(v.Endpoints) == 0 {
		k.wrong("endpoints", "missing: give at least one endpoint")
	}
	for i, e := range v.Endpoints {
		if e.Channel == websocketChannel {
			k.wrong(fmt.Sprintf("endpoints[%d].channel", i), "a subscription has no API key to connect with: use another channel")
		}
	}
}
