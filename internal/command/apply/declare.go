package apply

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"backstop/internal/base/money"
	"backstop/internal/base/seal"
	"backstop/internal/base/textlimit"
	"backstop/internal/notify/webhook"
	"backstop/internal/supplier"
)

// Limits of what a file declares.
const (
	// maxEntries bounds one file: all of it is one transaction, which must not
	// hold up the orders of a running server for long.
	maxEntries  = 10_000
	maxText     = 200
	maxAllowIPs = 1000
	// minAPIKey: keys are stored as a fast hash, which is safe for long random
	// texts only.
	minAPIKey = 20
	maxAPIKey = 200
	// maxSecrets: the new signing secret and the one before it.
	maxSecrets = 2
	maxSecret  = 200
	maxStock   = 1_000_000_000_000
)

// code is what suppliers and merchants are called in addresses and in the API.
var code = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// declared is what a file says, checked as far as that goes without the database.
type declared struct {
	suppliers []supplierDecl
	merchants []merchantDecl
	skus      []skuDecl
	accounts  []accountDecl
	house     []subscriptionDecl
	problems  *problems
}

type supplierDecl struct {
	code     string
	kind     supplier.Kind
	enabled  bool
	allowIPs json.RawMessage
	config   json.RawMessage // with secrets readable
	account  string
	// What the file leaves out.
	keepsEnabled, keepsAllowIPs bool
}

type merchantDecl struct {
	at   object
	code string
	name string
	// keepsName: the file leaves the name out.
	keepsName bool
	keyHash   string   // of the API key; "" where the file gives none
	secrets   [][]byte // newest first; nil where the file gives none
	told      toldDecl
}

type skuDecl struct {
	sku   string
	stock int64
}

type accountDecl struct {
	at                 object
	merchant, currency string
	balance            int64
}

// declare reads the whole file and reports everything wrong with it at once.
func declare(env Env, f File) (*declared, error) {
	d := &declared{problems: &problems{file: f.Name}}
	top := parse(string(f.Text), d.problems).object("suppliers", "merchants", "skus", "accounts", "subscriptions")
	if !top.given() {
		if len(d.problems.found) == 0 {
			top.wrong("the file declares nothing: it wants suppliers, merchants, skus, accounts or subscriptions")
		}
		return nil, d.problems.err()
	}
	seen, files := names{}, &keyFiles{dir: f.Dir, texts: map[string]string{}}
	entries := 0
	for _, section := range []struct {
		name string
		read func(value)
	}{
		{"suppliers", func(v value) { d.supplier(env, v, files, seen) }},
		{"merchants", func(v value) { d.merchant(env, v, files, seen) }},
		{"skus", func(v value) { d.sku(v, seen) }},
		{"accounts", func(v value) { d.account(v, seen) }},
		{"subscriptions", func(v value) { d.subscription(env, v, files, seen) }},
	} {
		list := top.at(section.name).list()
		if entries += len(list); entries > maxEntries {
			top.at(section.name).wrong("more than %d entries in one file: split it", maxEntries)
			break
		}
		for _, v := range list {
			section.read(v)
		}
	}
	if err := d.problems.err(); err != nil {
		return nil, err
	}
	return d, nil
}

// names finds what is declared twice: by kind and name the path that had it first.
type names map[[2]string]string

func (n names) once(v value, kind, name string) {
	if name == "" {
		return
	}
	if first, twice := n[[2]string{kind, name}]; twice {
		v.wrong("the same as in %s: give each its own", first)
		return
	}
	n[[2]string{kind, name}] = v.path
}

func (v value) code() string {
	before := len(v.all.found)
	text := v.required(64)
	if len(v.all.found) == before && !code.MatchString(text) {
		v.wrong("%q: use 1 to 64 of a-z, 0-9, - and _, beginning with a letter or digit", textlimit.Clip(text, shownMost))
	}
	return text
}

func (d *declared) supplier(env Env, v value, files *keyFiles, seen names) {
	o := v.object("code", "kind", "enabled", "allow_ips", "config")
	s := supplierDecl{
		code: o.at("code").code(), enabled: o.at("enabled").flag(true), allowIPs: o.at("allow_ips").prefixes(),
		keepsEnabled: o.leftOut("enabled"), keepsAllowIPs: o.leftOut("allow_ips"),
	}
	seen.once(o.at("code"), "supplier", s.code)
	before := len(d.problems.found)
	name := o.at("kind").required(maxText)
	config := o.at("config").object()
	plain, _ := config.plain(files, 0).(map[string]any)
	if len(d.problems.found) > before {
		return
	}
	var err error
	if s.kind, err = env.Kinds.Find(name); err != nil {
		o.at("kind").wrong("%v", err)
		return
	}
	if plain == nil {
		plain = map[string]any{}
	}
	adapter, raw, err := newAdapter(s.kind, s.code, plain)
	if field := supplier.AsField(err); field != nil {
		config.find(field.Field).wrong("%s", field.Problem)
		return
	} else if err != nil {
		config.wrong("%v", err)
		return
	}
	s.config, s.account = raw, adapter.Account()
	d.suppliers = append(d.suppliers, s)
}

// prefixes reads CIDRs; a single address is a range of one.
func (v value) prefixes() json.RawMessage {
	entries := v.list()
	if len(entries) > maxAllowIPs {
		v.wrong("at most %d ranges fit here", maxAllowIPs)
		return nil
	}
	ranges := []string{}
	for _, e := range entries {
		text := e.text(maxText)
		p, err := netip.ParsePrefix(text)
		if a, aErr := netip.ParseAddr(text); aErr == nil && a.Zone() == "" {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		switch {
		case err != nil || p.Addr().Is4In6():
			e.wrong("%q: use a range such as 101.226.103.0/25, or one address", textlimit.Clip(text, shownMost))
		case p != p.Masked():
			e.wrong("%s has bits behind its length: use %s", p, p.Masked())
		default:
			ranges = append(ranges, p.String())
		}
	}
	raw, _ := json.Marshal(ranges) // texts always have a JSON form
	return raw
}

func (d *declared) merchant(env Env, v value, files *keyFiles, seen names) {
	o := v.object("code", "name", "api_key", "signing_secret", "signing_secrets", "notify")
	m := merchantDecl{at: o, code: o.at("code").code(), name: o.at("name").text(maxText)}
	seen.once(o.at("code"), "merchant", m.code)
	if m.keepsName = o.leftOut("name"); m.name == "" {
		m.name = m.code
	}
	if o.at("api_key").given() {
		m.keyHash = o.at("api_key").apiKey()
		seen.once(o.at("api_key"), "api_key", m.keyHash)
	}
	m.secrets = o.secrets()
	m.told = o.at("notify").object(toldFields...).told(env, files)
	if !o.leftOut("notify") && !o.at("notify").given() {
		m.told.keeps = nil // null: all of it goes back
	}
	d.merchants = append(d.merchants, m)
}

// apiKey is the hash of a key; the key itself goes no further.
func (v value) apiKey() string {
	before := len(v.all.found)
	key := v.required(maxAPIKey)
	switch {
	case len(v.all.found) > before:
		return ""
	case len(key) < minAPIKey:
		v.wrong("%d characters: use a random text of at least %d (openssl rand -hex 24)", len(key), minAPIKey)
		return ""
	case strings.Contains(key, " "):
		v.wrong("a key has no spaces")
		return ""
	}
	return seal.HashToken(key)
}

// secrets reads signing_secret or signing_secrets, newest first.
func (o object) secrets() [][]byte {
	one, several := o.at("signing_secret"), o.at("signing_secrets")
	entries := several.list()
	switch {
	case one.given() && several.given():
		several.wrong("give signing_secret or signing_secrets, not both")
		return nil
	case one.given():
		entries = []value{one}
	case several.given() && (len(entries) == 0 || len(entries) > maxSecrets):
		several.wrong("give one secret, or two during rotation: [new, old]")
		return nil
	}
	var keys [][]byte
	for _, e := range entries {
		before := len(o.all.found)
		key, err := webhook.ParseSecret(e.required(maxSecret))
		switch {
		case len(o.all.found) > before:
			continue
		case err != nil:
			e.wrong("%v", err)
			continue
		case len(keys) == 1 && string(keys[0]) == string(key):
			e.wrong("both secrets are the same")
			continue
		}
		keys = append(keys, key)
	}
	return keys
}

func (d *declared) sku(v value, seen names) {
	o := v.object("sku", "stock")
	s := skuDecl{sku: o.at("sku").required(maxText)}
	seen.once(o.at("sku"), "sku", s.sku)
	if stock := o.at("stock"); stock.given() {
		s.stock = stock.whole(0, maxStock, 0)
	} else {
		stock.wrong("missing")
	}
	d.skus = append(d.skus, s)
}

func (d *declared) account(v value, seen names) {
	o := v.object("merchant", "currency", "balance")
	a := accountDecl{at: o, merchant: o.at("merchant").code(), currency: o.at("currency").required(maxText)}
	if a.currency != "" {
		if _, err := money.Exponent(a.currency); err != nil {
			o.at("currency").wrong("%v", err)
		}
	}
	if a.merchant != "" && a.currency != "" {
		seen.once(o.value, "account", fmt.Sprintf("%s %s", a.merchant, a.currency))
	}
	if balance := o.at("balance"); balance.given() {
		a.balance = balance.whole(0, money.MaxMinor, 0)
	} else {
		balance.wrong("missing: the opening balance in minor units")
	}
	d.accounts = append(d.accounts, a)
}
